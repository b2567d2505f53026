package carrier

import (
	"fmt"
	"slices"
	"testing"
)

// Each message is posted twice. Equal texts with different ids are different messages.
func TestARepeatedPostIsSentOnce(t *testing.T) {
	f := newFlow(t, toMessages("http://vmn/?m=%msg&n=%netw"))
	var want []string
	for name, query := range map[string]string{
		"twilio":  "MessageSid=%[1]s&AccountSid=AC1&From=%%2B447700900123&To=%%2B447860000001&Body=%[2]s",
		"vonage":  "messageId=%s&msisdn=447700900123&to=447860000001&text=%s&type=text",
		"infobip": "messageId=%s&from=447700900123&to=447860000001&text=%s",
		"plivo":   "MessageUUID=%s&From=447700900123&To=447860000001&Text=%s",
		"sinch":   "type=mo_text&id=%s&from=447700900123&to=447860000001&body=%s&operator_id=23415",
		"android": "receivedStamp=%s&from=447700900123&to=447860000001&text=%s",
	} {
		for n := range 3 {
			for range 2 {
				target := "/inbound/sms/" + name + "?" + fmt.Sprintf(query, fmt.Sprint("id", n), name)
				if status, body, _ := call(t, f.app, "GET", target, "carrier-1", ""); status != 200 {
					t.Fatalf("answer to %s = %d %s, want 200", target, status, body)
				}
			}
		}
		network := map[string]string{"twilio": "AC1", "sinch": "23415"}[name]
		want = append(want, "http://vmn/?m="+name+"&n="+network)
	}
	f.waitProcessed(t)
	slices.Sort(want)
	got, _ := f.targets()
	if !slices.Equal(got, want) {
		t.Errorf("targets = %q\nwant %q", got, want)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, target := range want {
		if f.sent[target] != 3 {
			t.Errorf("attempts for %s = %d, want 3", target, f.sent[target])
		}
	}
}

// Vonage sends the parts of a message in any order with its own reference. The parts of two messages
// from a sender must not mix.
func TestPartsFromVonageAreJoined(t *testing.T) {
	f := newFlow(t, toMessages("http://vmn/?m=%msg&s=%stat"))
	for _, part := range []string{"A-3", "B-2", "A-1", "B-1", "A-2", "A-1"} {
		ref, n := part[:1], part[2:]
		target := fmt.Sprintf("/inbound/sms/vonage?messageId=%s&msisdn=447700900123&to=447860000001&text=%s%%20&type=text&concat=true&concat-ref=%s&concat-total=%d&concat-part=%s",
			part, part, ref, map[string]int{"A": 3, "B": 2}[ref], n)
		if status, body, _ := call(t, f.app, "GET", target, "carrier-1", ""); status != 200 {
			t.Fatalf("answer to %s = %d %s, want 200", target, status, body)
		}
	}
	f.waitProcessed(t)
	f.wantSent(t, "http://vmn/?m=A-1%20A-2%20A-3%20&s=1", "http://vmn/?m=B-1%20B-2%20&s=1")
}
