package admin

import (
	"encoding/base64"
	"strings"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestExplainedRequestIsTheSentRequest explains a message, sends the message and compares the requests.
func TestExplainedRequestIsTheSentRequest(t *testing.T) {
	t.Parallel()
	g, sink, mailbox := e2e.StartWithRelays(t, e2e.Embedded(), nil)
	e := g.Explain(`{"account":1,"from":"447700900123","to":"447800020001","text":"Rock & roll %orig"}`)
	if e.Matched == nil {
		t.Fatal("no relay matched")
	}
	if len(e.Requests) != 1 || len(e.Considered) != 2 {
		t.Fatalf("requests = %d, considered relays = %d, want 1 and 2", len(e.Requests), len(e.Considered))
	}
	relaytest.Equal(t, "the kind of the matched relay", e.Matched.Kind, "vmn")
	relaytest.Equal(t, "the id of the matched relay", e.Matched.ID, "v-post")
	relaytest.Equal(t, "the reason of the match", e.Matched.Reason, "its number is 447800020001")
	relaytest.Equal(t, "the id of the other relay", e.Considered[1].ID, "g-get")
	if reason := e.Considered[1].Reason; !strings.HasSuffix(reason, "the virtual number relay v-post takes precedence") {
		t.Errorf("reason of the other relay = %q, want the relay v-post, which takes precedence", reason)
	}
	explained := e.Requests[0]
	if explained.Refused != "" {
		t.Errorf("refusal of the explained request = %s, want none", explained.Refused)
	}
	g.WithToken("acme-all-0123456").PostInboundText("x1", "447800020001", "Rock & roll %orig")
	request := sink.Await(t, "/vmn-post", 1)
	if explained.Method != request.Method || explained.URL != sink.URL+"/vmn-post" {
		t.Errorf("explained request = %s %s, sent method = %s, want the same", explained.Method, explained.URL, request.Method)
	}
	for name, value := range request.Header {
		switch name {
		case "Webhook-Id", "Webhook-Timestamp", "Webhook-Signature", "Content-Length": // depend on the id of the message
		default:
			if explained.Headers[name] != value[0] {
				t.Errorf("header %s: explained = %q, sent = %q, want the same", name, explained.Headers[name], value[0])
			}
		}
	}
	for _, field := range strings.Split(request.Body, "&") {
		if name, _, _ := strings.Cut(field, "="); name != "id" && name != "time" && name != "smsTime" && !strings.Contains(explained.Body, field) {
			t.Errorf("sent field %s is missing in the explained body %s", field, explained.Body)
		}
	}
	wh, err := standardwebhooks.NewWebhook(base64.StdEncoding.EncodeToString([]byte("012345678901234567890123")))
	relaytest.NoError(t, err)
	headers := map[string][]string{}
	for name, value := range explained.Headers {
		headers[name] = []string{value}
	}
	if err := wh.Verify([]byte(explained.Body), headers); err != nil {
		t.Errorf("verify the explained signature: %v", err)
	}
	mail := g.Explain(`{"account":1,"from":"447700900123","to":"447800060002","text":"hi"}`)
	if len(mail.Requests) != 1 || mail.Requests[0].Mail == nil {
		t.Fatalf("number of requests = %d, want one mail", len(mail.Requests))
	}
	relaytest.Equal(t, "the recipient of the mail", mail.Requests[0].Mail.To, mailbox)
	relaytest.Equal(t, "the text of the mail", mail.Requests[0].Mail.Text, "hi")
	part := g.Explain(`{"from":"1","to":"447800300001","text":"one","udh":"050003cc0301"}`)
	if part.Joined == nil {
		t.Fatalf("outcome = %s, want a joined part", part.Outcome)
	}
	relaytest.Equal(t, "the number of parts", part.Joined.Total, 3)
	relaytest.Equal(t, "the number of missing parts", len(part.Joined.Missing), 2)
	relaytest.Equal(t, "the outcome of the part", part.Outcome, "the geographic relay g-hole discards the message")
	unrouted := g.Explain(`{"account":1,"from":"1","to":"4490","text":"a"}`)
	relaytest.Equal(t, "the state of a message to an unknown number", unrouted.State, "unrouted")
	relaytest.Equal(t, "whether a relay matched", unrouted.Matched != nil, false)
	relaytest.Equal(t, "the number of requests", len(unrouted.Requests), 0)
	toOtherAccount := g.Explain(`{"account":1,"from":"1","to":"447900000001","text":"a"}`)
	relaytest.Equal(t, "the state of a message to another account", toOtherAccount.State, "unrouted")
	if len(toOtherAccount.Considered) == 0 {
		t.Fatal("no relay was considered for a message to another account")
	}
	relaytest.Equal(t, "the reason of the first relay", toOtherAccount.Considered[0].Reason, "it belongs to another account")
	if n := len(sink.Requests("/vmn-post")); n != 1 {
		t.Errorf("sent requests = %d, want 1", n)
	}
	g.Admin().Get("/admin/events?kind=sms").Mentions(t, 200, `"x1`)
	if found := g.Deliveries(""); len(found) != 1 {
		t.Errorf("number of deliveries = %d, want 1", len(found))
	}
}
