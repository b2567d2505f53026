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
	"github.com/penstock/penstock/relay/relaytest"
)

// decide returns the decision on a message to a virtual number with the action.
func decide(t *testing.T, m *Message, action string, parameters ...string) Decision {
	t.Helper()
	d := Decide(m, []*CompiledRelay{Compile(vmn("v1", m.To, action, parameters...))}, Settings{Zone: london(t), MailDomain: "gw.example"})
	if d.State != event.Done {
		t.Fatalf("state with action %s = %s (%s), want done", action, d.State, d.Reason)
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
	withCommon := func(fields map[string]string) map[string]string {
		allFields := map[string]string{
			"X-E3-ID": "n1-42", "X-E3-Originating-Address": "447700900123", "X-E3-Destination-Address": "447860000001",
			"X-E3-Timestamp": "2026-07-01 11:00:02.000000", "X-E3-User-Data-Header": "",
		}
		maps.Copy(allFields, fields)
		return allFields
	}
	for name, tc := range map[string]struct {
		m    *Message
		want map[string]string
	}{
		"7-bit text":   {sample(), withCommon(map[string]string{"X-E3-Data-Coding-Scheme": "00", "X-E3-Message": "héllo & bye"})},
		"Unicode text": {unicodeMessage(), withCommon(map[string]string{"X-E3-Data-Coding-Scheme": "08", "X-E3-Message": "日本 & 😀"})},
		"octets": {binaryMessage(), withCommon(map[string]string{
			"X-E3-Data-Coding-Scheme": "04", "X-E3-Hex-Message": "00ff10", "X-E3-User-Data-Header": "0605040b8423f0",
		})},
	} {
		t.Run(name, func(t *testing.T) {
			posted := decide(t, tc.m, DialoguePost, "http://h/in/%orig").Deliveries[0].Request
			relaytest.Equal(t, "method, URL and content type of the POST", []string{posted.Method, posted.URL, posted.ContentType},
				[]string{"POST", "http://h/in/447700900123", "application/x-www-form-urlencoded"})
			wantFields(t, string(posted.Body), tc.want)
			got := decide(t, tc.m, DialogueGet, "http://h/in").Deliveries[0].Request
			path, query, _ := strings.Cut(got.URL, "?")
			relaytest.Equal(t, "method, path and body of the GET", []string{got.Method, path, string(got.Body)}, []string{"GET", "http://h/in", ""})
			wantFields(t, query, tc.want)
		})
	}
}

func wantFields(t *testing.T, encoded string, want map[string]string) {
	t.Helper()
	q, err := url.ParseQuery(encoded)
	relaytest.NoError(t, err)
	got := make(map[string]string)
	for name := range q {
		got[name] = q.Get(name)
	}
	relaytest.Equal(t, "the fields", got, want)
}

func TestAddQueryKeepsTheQuery(t *testing.T) {
	for base, want := range map[string]string{
		"http://h":        "http://h?a=b",
		"http://h/x":      "http://h/x?a=b",
		"http://h/x?":     "http://h/x?a=b",
		"http://h/x?c=d":  "http://h/x?c=d&a=b",
		"http://h/x?c=d&": "http://h/x?c=d&a=b",
	} {
		relaytest.Equal(t, "the URL "+base+" with a query", addQuery(base, []byte("a=b")), want)
	}
}

func TestOutlookMailsHaveTheSendersNumber(t *testing.T) {
	change := func(f func(*Message)) *Message { m := sample(); f(m); return m }
	for name, tc := range map[string]struct {
		m                     *Message
		sender, subject, text string
	}{
		"a number":            {sample(), "+447700900123", "héllo & bye", "héllo & bye"},
		"a short code":        {change(func(m *Message) { m.From = "66777" }), "66777", "héllo & bye", "héllo & bye"},
		"a name in two lines": {change(func(m *Message) { m.From = "Ba\r\nnk" }), "Bank", "héllo & bye", "héllo & bye"},
		"a long text": {change(func(m *Message) { m.Text = strings.Repeat("é", 50) + "\nend" }), "+447700900123",
			strings.Repeat("é", 40) + "…", strings.Repeat("é", 50) + "\nend"},
		"octets": {binaryMessage(), "+447700900123", "00ff10", "00ff10"},
	} {
		t.Run(name, func(t *testing.T) {
			ds := decide(t, tc.m, MSOutlook, "a@example.com", "b@example.com").Deliveries
			if len(ds) != 2 {
				t.Fatalf("%d deliveries, want 2", len(ds))
			}
			relaytest.Equal(t, "the address of the second mail", ds[1].Mail.To, "b@example.com")
			m := ds[0].Mail
			relaytest.Equal(t, "the message id", m.MessageID, ds[0].ID+"@gw.example")
			relaytest.Equal(t, "the header", m.Header, map[string]string{"Content-class": "MS-OMS-SMS", "X-MS-Reply-To-Mobile": tc.sender})
			relaytest.Equal(t, "subject and text", []string{m.Subject, m.Text}, []string{tc.subject, tc.text})
		})
	}
}

func TestInboundGatewayBodies(t *testing.T) {
	for name, tc := range map[string]struct {
		m    *Message
		want string
	}{
		"text": {sample(), `{"id":"n1-42","from":"447700900123","to":"447860000001","text":"héllo \u0026 bye","udh":"","coding":7,"received_at":"2026-07-01T11:00:02Z"}`},
		"an empty text": {&Message{ID: "e", From: "1", To: "2", Coding: sms.GSM, ReceivedAt: sample().ReceivedAt},
			`{"id":"e","from":"1","to":"2","text":"","udh":"","coding":7,"received_at":"2026-07-01T11:00:02Z"}`},
		"octets": {binaryMessage(), `{"id":"n1-42","from":"447700900123","to":"447860000001","data":"00ff10","udh":"0605040b8423f0","coding":8,"received_at":"2026-07-01T11:00:02Z"}`},
	} {
		t.Run(name, func(t *testing.T) {
			r := decide(t, tc.m, InboundGW, "http://gw/%dest").Deliveries[0].Request
			relaytest.Equal(t, "method, content type and URL", []string{r.Method, r.ContentType, r.URL}, []string{"POST", "application/json", "http://gw/" + tc.m.To})
			if !json.Valid(r.Body) {
				t.Errorf("the body is not JSON: %s", r.Body)
			}
			relaytest.Equal(t, "the body", string(r.Body), tc.want)
		})
	}
}

func TestDesktopMessagesAreStoredInTheInbox(t *testing.T) {
	d := decide(t, sample(), DesktopSMS, "front", "back")
	if d.InboxMessage == nil {
		t.Fatal("the decision has no inbox message")
	}
	relaytest.Equal(t, "relay and text of the inbox message", []string{d.InboxMessage.Relay, d.InboxMessage.Message.Text}, []string{"v1", "héllo & bye"})
	relaytest.Equal(t, "the account of the inbox message", d.InboxMessage.Account, 1)
	relaytest.Equal(t, "the number of labels", len(d.InboxMessage.Labels), 2)
	relaytest.Equal(t, "the number of deliveries", len(d.Deliveries), 0)
	relaytest.Equal(t, "the outcome", d.Outcome, "the virtual number relay v1 keeps the message in its inbox")
	w := newWorld(t, vmn("v1", "447860000001", DesktopSMS, "front"))
	got := receive(t, w.service(), numbered("e1", "447860000001"))
	relaytest.Equal(t, "the state of the event", got[0].State, event.Done)
	relaytest.Equal(t, "the number of messages in the inbox", w.rows("inbox"), 1)
}

func TestEachParameterIsAnEndpointWithThePaceOfTheRelay(t *testing.T) {
	r := vmn("v1", "447860000001", HTTPGet, "http://h/a?m=%msg", "http://h/b")
	r.Pace = outbox.Pace{Concurrency: 2, PerSecond: 0.5, Ordered: true}
	first := Decide(sample(), []*CompiledRelay{Compile(r)}, Settings{}).Deliveries
	m := sample()
	m.ID, m.Text = "other", "another text"
	second := Decide(m, []*CompiledRelay{Compile(r)}, Settings{}).Deliveries
	if first[0].Endpoint == first[1].Endpoint {
		t.Errorf("both parameters have the endpoint %q", first[0].Endpoint)
	}
	relaytest.Equal(t, "the endpoints of the second message", []string{second[0].Endpoint, second[1].Endpoint}, []string{first[0].Endpoint, first[1].Endpoint})
	relaytest.Equal(t, "the pace", first[0].Pace, r.Pace)
	relaytest.Equal(t, "the name of the endpoint", first[0].EndpointKey(), first[0].Endpoint)
}
