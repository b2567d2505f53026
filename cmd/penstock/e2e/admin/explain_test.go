package admin

import (
	"encoding/base64"
	"strings"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestExplainShowsWhatGoesOut explains a message, sends it and compares the requests.
func TestExplainShowsWhatGoesOut(t *testing.T) {
	t.Parallel()
	g, k, box := e2e.StartWithRelays(t, e2e.Embedded(), nil)
	e := g.Explain(`{"account":1,"from":"447700900123","to":"447800020001","text":"Rock & roll %orig"}`)
	if e.Matched == nil {
		t.Fatal("no relay matched")
	}
	if len(e.Requests) != 1 || len(e.Considered) != 2 {
		t.Fatalf("%d requests and %d relays considered, want 1 and 2", len(e.Requests), len(e.Considered))
	}
	relaytest.Equal(t, "the kind of the matched relay", e.Matched.Kind, "vmn")
	relaytest.Equal(t, "the id of the matched relay", e.Matched.ID, "v-post")
	relaytest.Equal(t, "the reason of the match", e.Matched.Why, "is the virtual number 447800020001")
	relaytest.Equal(t, "the id of the other relay", e.Considered[1].ID, "g-get")
	if why := e.Considered[1].Why; !strings.HasSuffix(why, "vmn relay v-post goes before it") {
		t.Errorf("the reason of the other relay is %q", why)
	}
	explained := e.Requests[0]
	if explained.Refused != "" {
		t.Errorf("the explained request is refused: %s", explained.Refused)
	}
	g.As("acme-all-0123456").PostInboundText("x1", "447800020001", "Rock & roll %orig")
	sent := k.Await(t, "/vmn-post", 1)
	if explained.Method != sent.Method || explained.URL != k.URL+"/vmn-post" {
		t.Errorf("the explained request is %s %s, the sent one %s", explained.Method, explained.URL, sent.Method)
	}
	for name, value := range sent.Header {
		switch name {
		case "Webhook-Id", "Webhook-Timestamp", "Webhook-Signature", "Content-Length": // these depend on the id of the message
		default:
			if explained.Headers[name] != value[0] {
				t.Errorf("the header %s is explained as %q, sent as %q", name, explained.Headers[name], value[0])
			}
		}
	}
	for _, field := range strings.Split(sent.Body, "&") {
		if name, _, _ := strings.Cut(field, "="); name != "id" && name != "time" && name != "smsTime" && !strings.Contains(explained.Body, field) {
			t.Errorf("%s was sent, but is not in the explained body %s", field, explained.Body)
		}
	}
	wh, err := standardwebhooks.NewWebhook(base64.StdEncoding.EncodeToString([]byte("012345678901234567890123")))
	relaytest.NoError(t, err)
	headers := map[string][]string{}
	for name, value := range explained.Headers {
		headers[name] = []string{value}
	}
	if err := wh.Verify([]byte(explained.Body), headers); err != nil {
		t.Errorf("the explained signature: %v", err)
	}
	mail := g.Explain(`{"account":1,"from":"447700900123","to":"447800060002","text":"hi"}`)
	if len(mail.Requests) != 1 || mail.Requests[0].Mail == nil {
		t.Fatalf("%d requests, want one mail", len(mail.Requests))
	}
	relaytest.Equal(t, "the recipient of the mail", mail.Requests[0].Mail.To, box)
	relaytest.Equal(t, "the text of the mail", mail.Requests[0].Mail.Text, "hi")
	part := g.Explain(`{"from":"1","to":"447800300001","text":"one","udh":"050003cc0301"}`)
	if part.Joined == nil {
		t.Fatalf("the part is not joined: %s", part.Outcome)
	}
	relaytest.Equal(t, "the number of parts", part.Joined.Total, 3)
	relaytest.Equal(t, "the number of missing parts", len(part.Joined.Missing), 2)
	relaytest.Equal(t, "the outcome of the part", part.Outcome, "geo relay g-hole: black_hole, 0 deliveries")
	unrouted := g.Explain(`{"account":1,"from":"1","to":"4490","text":"a"}`)
	relaytest.Equal(t, "the state of a message to an unknown number", unrouted.State, "unrouted")
	relaytest.Equal(t, "whether a relay matched", unrouted.Matched != nil, false)
	relaytest.Equal(t, "the number of requests", len(unrouted.Requests), 0)
	other := g.Explain(`{"account":1,"from":"1","to":"447900000001","text":"a"}`)
	relaytest.Equal(t, "the state of a message to another account", other.State, "unrouted")
	if len(other.Considered) == 0 {
		t.Fatal("no relay was considered for a message to another account")
	}
	relaytest.Equal(t, "the reason of the first relay", other.Considered[0].Why, "belongs to another account")
	if n := len(k.Requests("/vmn-post")); n != 1 {
		t.Errorf("%d requests were sent, want 1", n)
	}
	g.Admin().Get("/admin/events?kind=sms").Mentions(t, 200, `"x1`)
	if found := g.Deliveries(""); len(found) != 1 {
		t.Errorf("%d deliveries, want 1", len(found))
	}
}
