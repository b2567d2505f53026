package sms

import (
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

func testAttempts(t *testing.T, s *e2e.Site) {
	corrected := make(chan struct{})
	g, sink, _ := e2e.StartWithRelays(t, s, func(w http.ResponseWriter, req e2e.SinkRequest, earlier int) {
		select {
		case <-corrected:
			return
		default:
		}
		switch {
		case req.Path == "/one" && earlier == 0:
			http.Error(w, "not now", http.StatusInternalServerError)
		case req.Path == "/longer":
			w.WriteHeader(http.StatusGone)
		case req.Path == "/vmn":
			w.WriteHeader(http.StatusNotFound)
		case req.Path == "/vmn-post":
			w.WriteHeader(http.StatusBadGateway)
		case req.Path == "/post":
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(http.StatusFound)
		case req.Path == "/two" && earlier == 0:
			w.Header().Set("Retry-After", "2")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}, "PENSTOCK_DELIVERY_SCHEDULE=100ms,100ms")
	acme := g.WithToken("acme-all-0123456")
	t.Run("a delivery is attempted again after 500, and every attempt is recorded", func(t *testing.T) {
		acme.PostInboundText("a1", "447800555501", "try again")
		firstAttempt, secondAttempt := sink.Await(t, "/one", 1), sink.Await(t, "/one", 2)
		if firstAttempt.Header.Get("Webhook-Id") == "" || firstAttempt.Header.Get("Webhook-Id") != secondAttempt.Header.Get("Webhook-Id") {
			t.Errorf("webhook-ids of the attempts = %q and %q, want one id", firstAttempt.Header.Get("Webhook-Id"), secondAttempt.Header.Get("Webhook-Id"))
		}
		for _, req := range []e2e.SinkRequest{firstAttempt, secondAttempt} {
			if !e2e.SignedBy(req, "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz") {
				t.Errorf("headers = %v, want the signature of the account", req.Header)
			}
		}
		var delivered []e2e.Delivery
		relaytest.Eventually(t, "both messages are delivered", func() (any, bool) {
			delivered = g.Deliveries("relay=g-two&state=delivered")
			return g.Deliveries("relay=g-two"), len(delivered) == 2
		})
		for _, delivery := range delivered {
			want := "500 200"
			if strings.Contains(delivery.Target, "/two") {
				want = "429 200"
				attemptTime := func(n int) time.Time { return relaytest.Must(time.Parse(time.RFC3339Nano, delivery.Attempts[n].At))(t) }
				if gap := attemptTime(1).Sub(attemptTime(0)); gap < 2*time.Second {
					t.Errorf("pause after Retry-After: 2 = %s, want at least 2s", gap)
				}
			} else if !strings.Contains(delivery.Attempts[0].Response, "not now") {
				t.Errorf("recorded first answer = %q, want \"not now\"", delivery.Attempts[0].Response)
			}
			relaytest.Equal(t, "attempts of "+delivery.Target, e2e.AttemptStatuses(delivery), want)
		}
	})
	for _, tc := range []struct{ name, relay, number, statuses, reason string }{
		{"a delivery with the answer 410", "g-longer", "447800015555", "410", "answered 410 Gone"},
		{"a delivery with the answer 404", "v-get", "447800019999", "404", "answered 404 Not Found"},
		{"a delivery with a redirect as answer", "g-post", "447800255501", "302", "redirects to"},
	} {
		t.Run(tc.name+" is dead at once", func(t *testing.T) {
			acme.PostInboundText("a-"+tc.relay, tc.number, "no")
			delivery := g.AwaitDelivery(tc.relay, "dead")
			relaytest.Equal(t, "attempts", e2e.AttemptStatuses(delivery), tc.statuses)
			if !strings.Contains(delivery.Reason, tc.reason) || delivery.NextAttemptAt != nil {
				t.Errorf("reason = %q, want %q; next attempt = %v, want none", delivery.Reason, tc.reason, delivery.NextAttemptAt)
			}
		})
	}
	t.Run("a delivery is dead after the last attempt; n entries of the schedule are n+1 attempts", func(t *testing.T) {
		acme.PostInboundText("a5", "447800020001", "never")
		relaytest.Equal(t, "attempts", e2e.AttemptStatuses(g.AwaitDelivery("v-post", "dead")), "502 502 502")
	})
	t.Run("targets are shown without the values of their query", func(t *testing.T) {
		if delivery := g.AwaitDelivery("v-get", "dead"); strings.Contains(delivery.Target, "447700900123") || !strings.HasPrefix(delivery.Target, sink.URL+"/vmn?") {
			t.Errorf("target = %s, want the path without the values of its query", delivery.Target)
		}
	})
	close(corrected)
	t.Run("dead deliveries are replayed with the same id", func(t *testing.T) {
		g.Admin().Post("/admin/deliveries/replay", `{}`).Mentions(t, 422, "Give ids or at least one filter")
		g.Admin().Post("/admin/deliveries/replay", `{"relay": "g-longer"}`).Expect(t, 200, `{"count": 1}`)
		relaytest.Equal(t, "attempts", e2e.AttemptStatuses(g.AwaitDelivery("g-longer", "delivered")), "410 200")
		requests := sink.Requests("/longer")
		if len(requests) != 2 || requests[0].Header.Get("Webhook-Id") != requests[1].Header.Get("Webhook-Id") {
			t.Errorf("number of requests = %d, want 2 with one webhook-id", len(requests))
		}
		g.Admin().Post("/admin/deliveries/replay", `{"state": "dead"}`).Expect(t, 200, `{"count": 3}`)
		for _, relay := range []string{"v-get", "v-post", "g-post"} {
			g.AwaitDelivery(relay, "delivered")
		}
		g.Admin().Post("/admin/deliveries/replay", `{"state": "dead"}`).Expect(t, 200, `{"count": 0}`)
	})
	t.Run("delivered deliveries are replayed only with include_delivered", func(t *testing.T) {
		g.Admin().Post("/admin/deliveries/replay", `{"relay": "g-longer"}`).Expect(t, 200, `{"count": 0}`)
		g.Admin().Post("/admin/deliveries/replay", `{"relay": "g-longer", "include_delivered": true}`).Expect(t, 200, `{"count": 1}`)
		sink.Await(t, "/longer", 3)
	})
	t.Run("filters are checked", func(t *testing.T) {
		g.Admin().Get("/admin/deliveries?state=lost").Mentions(t, 422, `"state"`, "must be queued or retrying")
		g.Admin().Get("/admin/deliveries?limit=0").Mentions(t, 422, `"limit"`)
		g.Admin().Get("/admin/events?from=yesterday").Mentions(t, 422, `"from"`)
	})
}

func testEgress(t *testing.T, s *e2e.Site) {
	sink := e2e.NewSink(t, nil)
	g := e2e.Start(t, s, `{"accounts": [{"name": "acme", "tokens": [{"token": "acme-all-0123456", "scopes": ["carrier"]}]}]}`, "PENSTOCK_EGRESS_ALLOW=")
	relay := func(endpoint string) string {
		return `{"accounts": [{"name": "acme", "relays": {"vmn": [{"id": "v", "number": "447800019999", "action": "http_get", "parameters": ["` + endpoint + `"]}]}}]}`
	}
	for _, host := range []string{
		"127.0.0.1", "10.1.2.3", "192.168.0.9:8080", "169.254.169.254", "100.64.0.1", "0.0.0.0", "[::1]", "[::ffff:10.0.0.1]",
		"[fd00::1]", "2130706433", "0x7f.1", "127.1", "localhost", "a.localhost",
	} {
		t.Run("a relay to "+host+" is refused with the path of the field", func(t *testing.T) {
			g.Admin().Put("/admin/inventory", relay("http://user:secret@"+host+"/in?m=%msg")).
				Mentions(t, 422, "accounts[0].relays.vmn[0].parameters[0]", "expected a URL that may be reached")
		})
	}
	t.Run("a delivery to a name that resolves to a private address is dead", func(t *testing.T) {
		name := privateName(t)
		port := sink.URL[strings.LastIndex(sink.URL, ":"):]
		g.Apply("", relay("http://"+name+port+"/in?m=%msg"))
		g.WithToken("acme-all-0123456").PostInboundText("e1", "447800019999", "inside")
		delivery := g.AwaitDelivery("v", "dead")
		relaytest.Equal(t, "the reason", delivery.Reason, "the address is not public")
		if len(delivery.Attempts) != 1 || !strings.Contains(delivery.Attempts[0].Error, name+" is not public") {
			t.Errorf("attempts = %v, want one that names the host", delivery.Attempts)
		}
		if n := len(sink.Requests("/in")); n != 0 {
			t.Errorf("number of requests = %d, want 0", n)
		}
	})
}

// privateName returns the host name of this machine. It skips the test unless the name resolves to a
// private address.
func privateName(t *testing.T) string {
	t.Helper()
	name, err := os.Hostname()
	if err != nil {
		t.Skipf("skipped: the machine has no name: %v", err)
	}
	addrs, err := net.DefaultResolver.LookupNetIP(t.Context(), "ip", name)
	if err != nil {
		t.Skipf("skipped: the machine's name %s does not resolve (%v); delivery/guard tests names with its own resolver", name, err)
	}
	for _, a := range addrs {
		if a = a.Unmap(); !a.IsLoopback() && !a.IsPrivate() && !a.IsLinkLocalUnicast() {
			t.Skipf("skipped: the machine's name %s resolves to %s, which is public", name, a)
		}
	}
	return name
}
