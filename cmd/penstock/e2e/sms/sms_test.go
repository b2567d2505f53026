// Package sms tests inbound messages, their relays, deliveries and attempts, end to end.
package sms

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestMain(m *testing.M) { e2e.Main(m) }

// TestGateway runs every suite of this folder.
func TestGateway(t *testing.T) {
	e2e.RunSuites(t, e2e.Suites{
		"messages":     testMessages,
		"placeholders": testPlaceholders,
		"mails":        testMails,
		"routes":       testRoutes,
		"attempts":     testAttempts,
		"egress":       testEgress,
		"breaker":      testBreaker,
	}, "mails", "attempts", "breaker")
}

// hostileText has characters that have a meaning in a URL, a form or a placeholder.
const hostileText = "Rock & roll? 100% #1 +1 =x; %orig %m %i \"ünï\" €𝄞\nend"

// testsStartedAt is the start of the tests of this package, in whole seconds.
var testsStartedAt = time.Now().Truncate(time.Second)

// checkRecent checks that a text is a wall-clock time since testsStartedAt.
func checkRecent(t *testing.T, label, text string, zone *time.Location) {
	t.Helper()
	parsed, err := time.ParseInLocation(time.DateTime, text, zone)
	if err != nil || parsed.Before(testsStartedAt) || parsed.After(time.Now()) {
		t.Errorf("%s = %q, want a time since the start of the tests: %v", label, text, err)
	}
}

func testPlaceholders(t *testing.T, s *e2e.Site) {
	g, sink, _ := e2e.StartWithRelays(t, s, nil)
	acme := g.WithToken("acme-all-0123456")
	london := relaytest.Must(time.LoadLocation("Europe/London"))(t)
	t.Run("a geographic relay's GET has every placeholder replaced and escaped", func(t *testing.T) {
		id := acme.PostInbound(map[string]any{"id": "p1", "from": "A/b c?%d#", "to": "447800055501", "text": hostileText})
		req := sink.Await(t, "/get/A%2Fb%20c%3F%25d%23/in", 1)
		e2e.SameValues(t, req.Query, map[string]string{
			"m": hostileText, "o": "A/b c?%d#", "d": "447800055501", "u": "", "i": id, "literal": "100%",
		})
		checkRecent(t, "%t", req.Query.Get("t"), time.UTC)
		seconds := relaytest.Must(time.ParseDuration(req.Query.Get("x") + "s"))(t)
		checkRecent(t, "%x", time.Unix(int64(seconds.Seconds()), 0).UTC().Format(time.DateTime), time.UTC)
		if req.Method != http.MethodGet || req.Body != "" {
			t.Errorf("request = %s with the body %q, want a GET without a body", req.Method, req.Body)
		}
	})
	t.Run("a virtual number's GET has every placeholder replaced and escaped", func(t *testing.T) {
		id := acme.PostInbound(map[string]any{
			"id": "p2", "from": "+447700900123", "to": "+447800019999", "text": hostileText,
			"sent_at": "2026-07-01T10:00:00Z", "network": "Some & Mobile",
		})
		req := sink.Await(t, "/vmn", 1)
		e2e.SameValues(t, req.Query, map[string]string{
			"id": id, "stat": "0", "orig": "447700900123", "dest": "447800019999", "msg": hostileText,
			"sms": "2026-07-01 11:00:00", "netw": "Some & Mobile", "code": "16", "udh": "",
			"zone": map[bool]string{true: "1", false: "0"}[time.Now().In(london).IsDST()],
		})
		checkRecent(t, "%time", req.Query.Get("time"), london)
	})
	t.Run("a binary message is in hex, with its UDH", func(t *testing.T) {
		acme.PostInbound(map[string]any{"id": "p3", "from": "447700900123", "to": "447800019999", "data": "00FF10", "udh": "06050423f40000", "coding": 8})
		e2e.SameValues(t, sink.Await(t, "/vmn", 2).Query, map[string]string{"msg": "00ff10", "udh": "06050423f40000", "code": "8", "stat": "0"})
	})
	t.Run("the parts of a long message are joined, and the status shows joined messages and invalid UDHs", func(t *testing.T) {
		postPart := func(id, octets, udh string) {
			acme.PostInbound(map[string]any{"id": id, "from": "447700900123", "to": "447800019999", "data": octets, "coding": 16, "udh": udh})
		}
		postPart("p4b", "dd1e0021", "0500032a0202")
		postPart("p4c", "dd1e0021", "0500032a0202")
		postPart("p4a", "0041d834", "0500032a0201") // 𝄞 is split between the parts
		e2e.SameValues(t, sink.Await(t, "/vmn", 3).Query, map[string]string{"stat": "1", "code": "16", "msg": "A𝄞!", "udh": ""})
		acme.PostInbound(map[string]any{"id": "p5", "from": "447700900123", "to": "447800019999", "text": "x", "udh": "ff00"})
		e2e.SameValues(t, sink.Await(t, "/vmn", 4).Query, map[string]string{"stat": "2"})
	})
	t.Run("texts in a known and in an unknown national language table", func(t *testing.T) {
		post := func(id, octets, udh string) string {
			return acme.PostInbound(map[string]any{"id": id, "from": "447700900123", "to": "447800019998", "data": octets, "coding": 7, "udh": udh})
		}
		post("n1", "4d501b1d", "06240106250106")
		e2e.SameValues(t, sink.Await(t, "/languages", 1).Query, map[string]string{"stat": "0", "code": "7", "msg": "हा१", "udh": "06240106250106"})
		id := post("n2", "40", "03250163")
		e2e.SameValues(t, sink.Await(t, "/languages", 2).Query, map[string]string{"stat": "2", "code": "7", "msg": "¡"})
		acme.PostInbound(map[string]any{"id": "n3", "from": "447700900123", "to": "447800019998", "data": "feff0041", "coding": 16})
		e2e.SameValues(t, sink.Await(t, "/languages", 3).Query, map[string]string{"stat": "0", "code": "16", "msg": "A"})
		g.Admin().Get("/admin/events/"+id).Mentions(t, 200, "one of the language tables 99 (locking) and 0 (single shift) is unknown")
	})
	t.Run("a request with Kannel's parameters is answered with an empty body", func(t *testing.T) {
		q := url.Values{"id": {"k1"}, "from": {"+447700900123"}, "to": {"447800019999"}, "text": {"Rock & roll? 100% ü"}, "coding": {"0"}, "time": {"1772359200"}, "smsc": {"link-7"}}
		acme.Get("/inbound/sms/kannel?"+q.Encode()).Expect(t, 200, "")
		e2e.SameValues(t, sink.Await(t, "/vmn", 5).Query, map[string]string{
			"msg": "Rock & roll? 100% ü", "orig": "447700900123", "sms": "2026-03-01 10:00:00", "netw": "link-7", "code": "7",
		})
	})
	t.Run("Kannel's UCS-2 octets are text", func(t *testing.T) {
		acme.Get("/inbound/sms/kannel?id=k2&from=447700900123&to=447800019999&coding=2&text=%20%AC%00%20%D8%34%DD%1E").Expect(t, 200, "")
		e2e.SameValues(t, sink.Await(t, "/vmn", 6).Query, map[string]string{"msg": "€ 𝄞", "code": "16"})
	})
	t.Run("a geographic relay's POST has the form fields of its placeholders", func(t *testing.T) {
		id := acme.PostInboundText("p6", "447800255501", hostileText)
		req := sink.Await(t, "/post", 1)
		e2e.SameValues(t, req.Form, map[string]string{"message": hostileText, "originator": "447700900123", "destination": "447800255501", "udh": "", "message_id": id})
		e2e.SameValues(t, req.Query, map[string]string{"for": "447800255501"})
		checkRecent(t, "timestamp", req.Form.Get("timestamp"), time.UTC)
		if got := req.Header.Get("Content-Type"); req.Method != http.MethodPost || got != "application/x-www-form-urlencoded" || req.Form.Get("unix_time") == "" {
			t.Errorf("request = %s of %s with %v, want a POST of a form with unix_time", req.Method, got, req.Form)
		}
	})
	t.Run("a virtual number's POST has the form fields of its placeholders", func(t *testing.T) {
		id := acme.PostInboundText("p7", "447800020001", "plain")
		req := sink.Await(t, "/vmn-post", 1)
		e2e.SameValues(t, req.Form, map[string]string{"id": id, "stat": "0", "orig": "447700900123", "dest": "447800020001", "msg": "plain", "code": "7", "netw": "", "udh": ""})
		checkRecent(t, "time", req.Form.Get("time"), london)
		checkRecent(t, "smsTime", req.Form.Get("smsTime"), london)
		if !req.Form.Has("timeZone") {
			t.Errorf("form = %v, want the field timeZone", req.Form)
		}
	})
}

func testMails(t *testing.T, s *e2e.Site) {
	g, _, mailbox := e2e.StartWithRelays(t, s, nil)
	acme := g.WithToken("acme-all-0123456")
	for _, tc := range []struct{ relay, number string }{{"g-mail", "447800455501"}, {"v-mail", "447800060002"}} {
		t.Run("the mail of "+tc.relay+" has the sender and the number in its subject and the text in its body", func(t *testing.T) {
			acme.PostInboundText(tc.relay, tc.number, "the text for "+tc.relay)
			m := g.AwaitMail(mailbox, "the text for "+tc.relay)
			if !strings.Contains(m, "\nSubject: SMS from 447700900123 to "+tc.number+"\n") {
				t.Errorf("mail = %s\nwant the sender and the number in the subject", m)
			}
			g.AwaitDelivery(tc.relay, s.DeliveredState())
		})
	}
	t.Run("CR and LF in a sender add no header", func(t *testing.T) {
		acme.PostInbound(map[string]any{
			"id": "m3", "from": "Eve\r\nBcc: victim@example.com\r\n\r\nX", "to": "447800455502", "text": "text of Eve\r\nBcc: second@example.com",
		})
		m := g.AwaitMail(mailbox, "text of Eve")
		header, _, _ := strings.Cut(m, "\n\n")
		for line := range strings.Lines(header) {
			if strings.HasPrefix(strings.ToLower(line), "bcc") || strings.HasPrefix(line, "X") && !strings.HasPrefix(line, "X-") {
				t.Errorf("header line %q, want no injected header", line)
			}
		}
		if !strings.Contains(header, "Subject: SMS from EveBcc: victim@example.com") {
			t.Errorf("header = %s\nwant the sender without CR and LF in the subject", header)
		}
	})
}

func testMessages(t *testing.T, s *e2e.Site) {
	g, sink, _ := e2e.StartWithRelays(t, s, nil)
	acme := g.WithToken("acme-all-0123456")
	for _, tc := range []struct{ action, relay, number string }{
		{"black_hole", "g-hole", "447800355501"}, {"inactive", "v-off", "447800060001"},
	} {
		t.Run(tc.action+" drops the message", func(t *testing.T) {
			id := acme.PostInboundText(tc.relay, tc.number, "for nobody")
			g.AwaitProcessed()
			relaytest.Equal(t, "the number of deliveries", len(g.Deliveries("relay="+tc.relay)), 0)
			g.Admin().Get("/admin/events?state=done&kind=sms").Mentions(t, 200, id)
		})
	}
	t.Run("a relay with two parameters makes two deliveries", func(t *testing.T) {
		acme.PostInboundText("n1", "447800555501", "for two")
		firstRequest, secondRequest := sink.Await(t, "/one", 1), sink.Await(t, "/two", 1)
		e2e.SameValues(t, firstRequest.Query, map[string]string{"m": "for two"})
		if firstRequest.Header.Get("Webhook-Id") == secondRequest.Header.Get("Webhook-Id") {
			t.Error("two deliveries have the same webhook-id")
		}
		relaytest.Eventually(t, "both deliveries are delivered", func() (any, bool) {
			got := g.Deliveries("relay=g-two&state=delivered")
			return got, len(got) == 2
		})
	})
	t.Run("the same carrier id twice is one message", func(t *testing.T) {
		firstID := acme.PostInboundText("n2", "447800055502", "once only")
		secondID := acme.PostInboundText("n2", "447800055502", "once only")
		acme.PostInboundText("n3", "447800055502", "another")
		g.AwaitProcessed()
		sink.Await(t, "/get/447700900123/in", 2)
		relaytest.Eventually(t, "no delivery is queued", func() (any, bool) {
			got := g.Deliveries("relay=g-get&state=queued")
			return got, len(got) == 0
		})
		count := 0
		for _, req := range sink.Requests("/get/447700900123/in") {
			if req.Query.Get("m") == "once only" {
				count++
				if id := req.Query.Get("i"); id != firstID && id != secondID {
					t.Errorf("id of the message = %s, want %s or %s", id, firstID, secondID)
				}
			}
		}
		relaytest.Equal(t, "the number of requests for the message", count, 1)
		relaytest.Equal(t, "the number of deliveries", len(g.Deliveries("relay=g-get")), 2)
	})
	t.Run("the same id from another carrier is another message", func(t *testing.T) {
		oldCount := len(sink.Requests("/get/447700900123/in"))
		acme.Get("/inbound/sms/kannel?id=n2&from=447700900123&to=447800055502&text=from+kannel").Expect(t, 200, "")
		e2e.SameValues(t, sink.Await(t, "/get/447700900123/in", oldCount+1).Query, map[string]string{"m": "from kannel"})
	})
}

func testRoutes(t *testing.T, s *e2e.Site) {
	g, sink, _ := e2e.StartWithRelays(t, s, nil)
	acme, globex := g.WithToken("acme-all-0123456"), g.WithToken("globex-all-0123456")
	t.Run("the longest prefix wins", func(t *testing.T) {
		acme.PostInboundText("r1", "447800015555", "long")
		e2e.SameValues(t, sink.Await(t, "/longer", 1).Query, map[string]string{"m": "long"})
	})
	t.Run("a virtual number wins over its prefixes", func(t *testing.T) {
		acme.PostInboundText("r2", "447800019999", "exact")
		e2e.SameValues(t, sink.Await(t, "/vmn", 1).Query, map[string]string{"msg": "exact"})
		g.AwaitProcessed()
		if n := len(sink.Requests("/longer")); n != 1 {
			t.Errorf("messages at the relay of the prefix = %d, want 1", n)
		}
	})
	t.Run("a carrier's token reaches its own account only", func(t *testing.T) {
		id := globex.PostInboundText("r3", "447800055501", "not mine")
		relaytest.Eventually(t, "the message is unrouted", func() (any, bool) {
			events := g.Events("state=unrouted")
			return events, len(events) == 1 && events[0].ID == id && strings.Contains(events[0].Reason, "447800055501")
		})
	})
	t.Run("a message without a relay is listed, and can be replayed after a relay was added", func(t *testing.T) {
		id := acme.PostInboundText("r4", "33123456789", "patience")
		relaytest.Eventually(t, "the message is unrouted", func() (any, bool) {
			events := g.Events("state=unrouted&q=33123456789")
			return events, len(events) == 1 && events[0].ID == id && events[0].Kind == "sms" && events[0].Source == "json"
		})
		g.Admin().Put("/admin/inventory", `{"accounts": [{"name": "acme", "relays": {"geo": [{"id": "g-new", "prefix": "33", "action": "http_get", "parameters": ["`+sink.URL+`/new?m=%m&i=%i"]}]}}]}`).
			Mentions(t, 200, `"acme"`)
		g.Admin().Post("/admin/events/replay", `{"state": "unrouted", "q": "33123456789"}`).Mentions(t, 200, `"count":1,`)
		e2e.SameValues(t, sink.Await(t, "/new", 1).Query, map[string]string{"m": "patience", "i": id})
		relaytest.Equal(t, "the number of events still unrouted", len(g.Events("state=unrouted&q=33123456789")), 0)
		relaytest.Equal(t, "the number of unrouted events of the other account", len(g.Events("state=unrouted")), 1)
	})
	t.Run("a replay sends nothing twice", func(t *testing.T) {
		g.Admin().Post("/admin/events/replay", `{"kind": "sms", "q": "patience"}`).Mentions(t, 200, `"count":1,`)
		g.AwaitDelivery("g-new", "delivered")
		if n := len(sink.Requests("/new")); n != 1 {
			t.Errorf("requests for the message = %d, want 1", n)
		}
	})
}
