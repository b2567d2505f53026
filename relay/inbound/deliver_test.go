package inbound

import (
	"encoding/json"
	"maps"
	"net/url"
	"strings"
	"testing"

	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/outbox"
)

// decided is what becomes of a message at a virtual number with one action.
func decided(t *testing.T, m *Message, action string, parameters ...string) Decision {
	t.Helper()
	d := Decide(m, []*Route{Compile(vmn("v1", m.To, action, parameters...))}, Settings{Zone: london(t), MailDomain: "gw.example"})
	if d.State != event.Done {
		t.Fatalf("%s: %+v", action, d)
	}
	return d
}

func binaryMessage() *Message {
	m := sample()
	makeBinary(m)
	return m
}

func unicodeMessage() *Message {
	m := sample()
	m.Text, m.Coding = "日本 & 😀", sms.UCS2
	return m
}

func TestDialogueFields(t *testing.T) {
	common := func(more map[string]string) map[string]string {
		all := map[string]string{
			"X-E3-ID": "n1-42", "X-E3-Originating-Address": "447700900123", "X-E3-Destination-Address": "447860000001",
			"X-E3-Timestamp": "2026-07-01 11:00:02.000000", "X-E3-User-Data-Header": "",
		}
		maps.Copy(all, more)
		return all
	}
	for name, tc := range map[string]struct {
		m    *Message
		want map[string]string
	}{
		"7-bit text":   {sample(), common(map[string]string{"X-E3-Data-Coding-Scheme": "00", "X-E3-Message": "héllo & bye"})},
		"Unicode text": {unicodeMessage(), common(map[string]string{"X-E3-Data-Coding-Scheme": "08", "X-E3-Message": "日本 & 😀"})},
		"octets": {binaryMessage(), common(map[string]string{
			"X-E3-Data-Coding-Scheme": "04", "X-E3-Hex-Message": "00ff10", "X-E3-User-Data-Header": "0605040b8423f0",
		})},
	} {
		t.Run(name, func(t *testing.T) {
			posted := decided(t, tc.m, DialoguePost, "http://h/in/%orig").Deliveries[0].Request
			if posted.Method != "POST" || posted.URL != "http://h/in/447700900123" || posted.ContentType != "application/x-www-form-urlencoded" {
				t.Errorf("posted %+v", posted)
			}
			sameFields(t, string(posted.Body), tc.want)
			got := decided(t, tc.m, DialogueGet, "http://h/in").Deliveries[0].Request
			path, query, _ := strings.Cut(got.URL, "?")
			if got.Method != "GET" || path != "http://h/in" || len(got.Body) != 0 {
				t.Errorf("got %+v", got)
			}
			sameFields(t, query, tc.want)
		})
	}
}

func sameFields(t *testing.T, encoded string, want map[string]string) {
	t.Helper()
	q, err := url.ParseQuery(encoded)
	if err != nil || len(q) != len(want) {
		t.Errorf("%s: %v", encoded, err)
	}
	for name, value := range want {
		if q.Get(name) != value {
			t.Errorf("%s is %q, want %q", name, q.Get(name), value)
		}
	}
}

func TestAQueryIsAdded(t *testing.T) {
	for in, want := range map[string]string{
		"http://h":        "http://h?a=b",
		"http://h/x":      "http://h/x?a=b",
		"http://h/x?":     "http://h/x?a=b",
		"http://h/x?c=d":  "http://h/x?c=d&a=b",
		"http://h/x?c=d&": "http://h/x?c=d&a=b",
	} {
		if got := addQuery(in, []byte("a=b")); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func TestOutlookMails(t *testing.T) {
	change := func(f func(*Message)) *Message { m := sample(); f(m); return m }
	for name, tc := range map[string]struct {
		m                  *Message
		sender, subj, text string
	}{
		"a number":            {sample(), "+447700900123", "héllo & bye", "héllo & bye"},
		"a short code":        {change(func(m *Message) { m.From = "66777" }), "66777", "héllo & bye", "héllo & bye"},
		"a name in two lines": {change(func(m *Message) { m.From = "Ba\r\nnk" }), "Bank", "héllo & bye", "héllo & bye"},
		"a long text": {change(func(m *Message) { m.Text = strings.Repeat("é", 50) + "\nend" }), "+447700900123",
			strings.Repeat("é", 40) + "…", strings.Repeat("é", 50) + "\nend"},
		"octets": {binaryMessage(), "+447700900123", "00ff10", "00ff10"},
	} {
		t.Run(name, func(t *testing.T) {
			ds := decided(t, tc.m, MSOutlook, "a@example.com", "b@example.com").Deliveries
			if len(ds) != 2 || ds[1].Mail.To != "b@example.com" || ds[0].Mail.MessageID != ds[0].ID+"@gw.example" {
				t.Fatalf("got %+v", ds)
			}
			m := ds[0].Mail
			want := map[string]string{"Content-class": "MS-OMS-SMS", "X-MS-Reply-To-Mobile": tc.sender}
			if !maps.Equal(m.Header, want) || m.Subject != tc.subj || m.Text != tc.text {
				t.Errorf("got %+v", m)
			}
		})
	}
}

func TestInboundGatewayBodies(t *testing.T) {
	for name, tc := range map[string]struct {
		m    *Message
		want string
	}{
		"text": {sample(), `{"id":"n1-42","from":"447700900123","to":"447860000001","text":"héllo \u0026 bye","udh":"","coding":7,"received_at":"2026-07-01T11:00:02Z"}`},
		"an empty text is there": {&Message{ID: "e", From: "1", To: "2", Coding: sms.GSM, ReceivedAt: sample().ReceivedAt},
			`{"id":"e","from":"1","to":"2","text":"","udh":"","coding":7,"received_at":"2026-07-01T11:00:02Z"}`},
		"octets": {binaryMessage(), `{"id":"n1-42","from":"447700900123","to":"447860000001","data":"00ff10","udh":"0605040b8423f0","coding":8,"received_at":"2026-07-01T11:00:02Z"}`},
	} {
		t.Run(name, func(t *testing.T) {
			r := decided(t, tc.m, InboundGW, "http://gw/%dest").Deliveries[0].Request
			if r.Method != "POST" || r.ContentType != "application/json" || r.URL != "http://gw/"+tc.m.To || !json.Valid(r.Body) {
				t.Errorf("got %+v", r)
			}
			if string(r.Body) != tc.want {
				t.Errorf("got  %s\nwant %s", r.Body, tc.want)
			}
		})
	}
}

func TestDesktopMessagesAreKept(t *testing.T) {
	d := decided(t, sample(), DesktopSMS, "front", "back")
	if d.InboxMessage == nil || d.InboxMessage.Relay != "v1" || d.InboxMessage.Account != 1 || len(d.InboxMessage.Labels) != 2 || d.InboxMessage.Message.Text != "héllo & bye" {
		t.Fatalf("kept %+v", d.InboxMessage)
	}
	if len(d.Deliveries) != 0 || d.Outcome != "vmn relay v1: desktopsms, kept in the inbox" {
		t.Errorf("got %+v", d)
	}
	w := newWorld(vmn("v1", "447860000001", DesktopSMS, "front"))
	if got := receive(t, w.service(t), numbered("e1", "447860000001")); got[0].State != event.Done || len(w.kept) != 1 {
		t.Errorf("got %+v, kept %+v", got, w.kept)
	}
}

func TestEachParameterOfARelayIsAnEndpointWithItsPace(t *testing.T) {
	r := vmn("v1", "447860000001", HTTPGet, "http://h/a?m=%msg", "http://h/b")
	r.Pace = outbox.Pace{Concurrency: 2, PerSecond: 0.5, Ordered: true}
	first := Decide(sample(), []*Route{Compile(r)}, Settings{}).Deliveries
	m := sample()
	m.ID, m.Text = "other", "another text"
	second := Decide(m, []*Route{Compile(r)}, Settings{}).Deliveries
	if first[0].Endpoint == first[1].Endpoint || first[0].Endpoint != second[0].Endpoint || first[1].Endpoint != second[1].Endpoint {
		t.Errorf("endpoints %q %q, then %q %q", first[0].Endpoint, first[1].Endpoint, second[0].Endpoint, second[1].Endpoint)
	}
	if first[0].Pace != r.Pace || first[0].EndpointName() != first[0].Endpoint {
		t.Errorf("got %+v", first[0])
	}
}
