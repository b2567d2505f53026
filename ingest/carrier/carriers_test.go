package carrier

import (
	"fmt"
	"slices"
	"testing"
)

// TestEveryCarriersMessageArrivesOnce posts the messages of six carriers repeatedly: each reaches
// its relay once. Equal texts with different ids are different messages.
func TestEveryCarriersMessageArrivesOnce(t *testing.T) {
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
				if status, body, _ := ask(t, f.app, "GET", target, "carrier-1", ""); status != 200 {
					t.Fatalf("%s: %d %s", target, status, body)
				}
			}
		}
		network := map[string]string{"twilio": "AC1", "sinch": "23415"}[name]
		want = append(want, "http://vmn/?m="+name+"&n="+network)
	}
	f.settled(t)
	slices.Sort(want)
	got, _ := f.targets()
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, target := range want {
		if f.sent[target] != 3 {
			t.Errorf("%s was sent %d times, want 3", target, f.sent[target])
		}
	}
}

// Vonage hands over the parts of a message in any order, under a reference of
// its own; two messages at once from one sender must not mix.
func TestPartsOfVonageAreJoined(t *testing.T) {
	f := newFlow(t, toMessages("http://vmn/?m=%msg&s=%stat"))
	for _, part := range []string{"A-3", "B-2", "A-1", "B-1", "A-2", "A-1"} {
		ref, n := part[:1], part[2:]
		target := fmt.Sprintf("/inbound/sms/vonage?messageId=%s&msisdn=447700900123&to=447860000001&text=%s%%20&type=text&concat=true&concat-ref=%s&concat-total=%d&concat-part=%s",
			part, part, ref, map[string]int{"A": 3, "B": 2}[ref], n)
		if status, body, _ := ask(t, f.app, "GET", target, "carrier-1", ""); status != 200 {
			t.Fatalf("%s: %d %s", target, status, body)
		}
	}
	f.settled(t)
	f.wantSent(t, "http://vmn/?m=A-1%20A-2%20A-3%20&s=1", "http://vmn/?m=B-1%20B-2%20&s=1")
}
