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
	g, k, _ := e2e.StartWithRelays(t, s, func(w http.ResponseWriter, h e2e.SinkRequest, earlier int) {
		select {
		case <-corrected:
			return
		default:
		}
		switch {
		case h.Path == "/one" && earlier == 0:
			http.Error(w, "not now", http.StatusInternalServerError)
		case h.Path == "/longer":
			w.WriteHeader(http.StatusGone)
		case h.Path == "/vmn":
			w.WriteHeader(http.StatusNotFound)
		case h.Path == "/vmn-post":
			w.WriteHeader(http.StatusBadGateway)
		case h.Path == "/post":
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(http.StatusFound)
		case h.Path == "/two" && earlier == 0:
			w.Header().Set("Retry-After", "2")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}, "PENSTOCK_DELIVERY_SCHEDULE=100ms,100ms")
	acme := g.As("acme-all-0123456")
	t.Run("500 then 200 is tried again, and every attempt is recorded", func(t *testing.T) {
		acme.PostInboundText("a1", "447800555501", "try again")
		first, second := k.Await(t, "/one", 1), k.Await(t, "/one", 2)
		if first.Header.Get("Webhook-Id") == "" || first.Header.Get("Webhook-Id") != second.Header.Get("Webhook-Id") {
			t.Errorf("the attempts have the ids %q and %q", first.Header.Get("Webhook-Id"), second.Header.Get("Webhook-Id"))
		}
		for _, h := range []e2e.SinkRequest{first, second} {
			if !e2e.SignedBy(h, "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz") {
				t.Errorf("the signature is not the account's: %v", h.Header)
			}
		}
		var sent []e2e.Delivery
		relaytest.Eventually(t, "both messages are delivered", func() (any, bool) {
			sent = g.Deliveries("relay=g-two&state=delivered")
			return g.Deliveries("relay=g-two"), len(sent) == 2
		})
		for _, p := range sent {
			want := "500 200"
			if strings.Contains(p.Target, "/two") {
				want = "429 200"
				attemptTime := func(n int) time.Time { return relaytest.Must(time.Parse(time.RFC3339Nano, p.Attempts[n].At))(t) }
				if gap := attemptTime(1).Sub(attemptTime(0)); gap < 2*time.Second {
					t.Errorf("Retry-After: 2 was not honoured: %s", gap)
				}
			} else if !strings.Contains(p.Attempts[0].Response, "not now") {
				t.Errorf("the recorded first answer is %q", p.Attempts[0].Response)
			}
			relaytest.Equal(t, "attempts of "+p.Target, e2e.AttemptStatuses(p), want)
		}
	})
	for _, tc := range []struct{ name, relay, to, statuses, reason string }{
		{"410", "g-longer", "447800015555", "410", "answered 410 Gone"},
		{"404", "v-get", "447800019999", "404", "answered 404 Not Found"},
		{"a redirect, which is not followed,", "g-post", "447800255501", "302", "redirects to"},
	} {
		t.Run(tc.name+" is dead at once", func(t *testing.T) {
			acme.PostInboundText("a-"+tc.relay, tc.to, "no")
			p := g.AwaitDelivery(tc.relay, "dead")
			relaytest.Equal(t, "attempts", e2e.AttemptStatuses(p), tc.statuses)
			if !strings.Contains(p.Reason, tc.reason) || p.NextAttemptAt != nil {
				t.Errorf("the delivery is dead for %q, want %q, and the next attempt is at %v", p.Reason, tc.reason, p.NextAttemptAt)
			}
		})
	}
	t.Run("after the last attempt of the schedule a delivery is dead, and n entries of the schedule are n+1 attempts", func(t *testing.T) {
		acme.PostInboundText("a5", "447800020001", "never")
		relaytest.Equal(t, "attempts", e2e.AttemptStatuses(g.AwaitDelivery("v-post", "dead")), "502 502 502")
	})
	t.Run("targets are shown without the values of their query", func(t *testing.T) {
		if p := g.AwaitDelivery("v-get", "dead"); strings.Contains(p.Target, "447700900123") || !strings.HasPrefix(p.Target, k.URL+"/vmn?") {
			t.Errorf("the target is %s", p.Target)
		}
	})
	close(corrected)
	t.Run("dead deliveries are replayed with the same id", func(t *testing.T) {
		g.Admin().Post("/admin/deliveries/replay", `{}`).Mentions(t, 422, "Give ids or at least one filter")
		g.Admin().Post("/admin/deliveries/replay", `{"relay": "g-longer"}`).Is(t, 200, `{"count": 1}`)
		relaytest.Equal(t, "attempts", e2e.AttemptStatuses(g.AwaitDelivery("g-longer", "delivered")), "410 200")
		hits := k.Requests("/longer")
		if len(hits) != 2 || hits[0].Header.Get("Webhook-Id") != hits[1].Header.Get("Webhook-Id") {
			t.Errorf("%d requests, want two with one id", len(hits))
		}
		g.Admin().Post("/admin/deliveries/replay", `{"state": "dead"}`).Is(t, 200, `{"count": 3}`)
		for _, relay := range []string{"v-get", "v-post", "g-post"} {
			g.AwaitDelivery(relay, "delivered")
		}
		g.Admin().Post("/admin/deliveries/replay", `{"state": "dead"}`).Is(t, 200, `{"count": 0}`)
	})
	t.Run("delivered deliveries are replayed only with include_delivered", func(t *testing.T) {
		g.Admin().Post("/admin/deliveries/replay", `{"relay": "g-longer"}`).Is(t, 200, `{"count": 0}`)
		g.Admin().Post("/admin/deliveries/replay", `{"relay": "g-longer", "include_delivered": true}`).Is(t, 200, `{"count": 1}`)
		k.Await(t, "/longer", 3)
	})
	t.Run("filters are checked", func(t *testing.T) {
		g.Admin().Get("/admin/deliveries?state=lost").Mentions(t, 422, `"state"`, "must be queued or retrying")
		g.Admin().Get("/admin/deliveries?limit=0").Mentions(t, 422, `"limit"`)
		g.Admin().Get("/admin/events?from=yesterday").Mentions(t, 422, `"from"`)
	})
}

func testEgress(t *testing.T, s *e2e.Site) {
	k := e2e.NewSink(t, nil)
	g := e2e.Start(t, s, `{"accounts": [{"name": "acme", "tokens": [{"token": "acme-all-0123456", "scopes": ["carrier"]}]}]}`, "PENSTOCK_EGRESS_ALLOW=")
	relay := func(endpoint string) string {
		return `{"accounts": [{"name": "acme", "relays": {"vmn": [{"id": "v", "number": "447800019999", "action": "http_get", "parameters": ["` + endpoint + `"]}]}}]}`
	}
	for _, host := range []string{
		"127.0.0.1", "10.1.2.3", "192.168.0.9:8080", "169.254.169.254", "100.64.0.1", "0.0.0.0", "[::1]", "[::ffff:10.0.0.1]",
		"[fd00::1]", "2130706433", "0x7f.1", "127.1", "localhost", "a.localhost",
	} {
		t.Run("a relay to "+host+" is 422 with the path", func(t *testing.T) {
			g.Admin().Put("/admin/inventory", relay("http://user:secret@"+host+"/in?m=%msg")).
				Mentions(t, 422, "accounts[0].relays.vmn[0].parameters[0]", "expected a URL that may be reached")
		})
	}
	t.Run("a relay to a name that resolves to a private address is a dead delivery with the reason", func(t *testing.T) {
		name := privateName(t)
		port := k.URL[strings.LastIndex(k.URL, ":"):]
		g.Apply("", relay("http://"+name+port+"/in?m=%msg"))
		g.As("acme-all-0123456").PostInboundText("e1", "447800019999", "inside")
		p := g.AwaitDelivery("v", "dead")
		relaytest.Equal(t, "the reason", p.Reason, "the address is not public")
		if len(p.Attempts) != 1 || !strings.Contains(p.Attempts[0].Error, name+" is not public") {
			t.Errorf("the attempts: %v", p.Attempts)
		}
		if n := len(k.Requests("/in")); n != 0 {
			t.Errorf("%d requests arrived, want none", n)
		}
	})
}

// privateName returns this machine's name. It skips the test unless the name resolves to a private address.
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
