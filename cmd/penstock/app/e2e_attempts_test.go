package app

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"
)

// signedBy verifies the headers of Standard Webhooks with a secret in base64.
func signedBy(h hit, secret string) bool {
	key, err := base64.StdEncoding.DecodeString(secret)
	if err != nil {
		return false
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", h.header.Get("Webhook-Id"), h.header.Get("Webhook-Timestamp"), h.body)
	return h.header.Get("Webhook-Signature") == "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// attempted writes the statuses of a delivery's attempts.
func attempted(p parcel) string {
	var list []string
	for _, a := range p.Attempts {
		list = append(list, fmt.Sprint(a.Status))
	}
	return strings.Join(list, " ")
}

func testAttempts(t *testing.T, s *site) {
	mended := make(chan struct{})
	g, k, _ := relaying(t, s, func(w http.ResponseWriter, h hit, before int) {
		select {
		case <-mended:
			return
		default:
		}
		switch {
		case h.path == "/one" && before == 0:
			http.Error(w, "not now", http.StatusInternalServerError)
		case h.path == "/longer":
			w.WriteHeader(http.StatusGone)
		case h.path == "/vmn":
			w.WriteHeader(http.StatusNotFound)
		case h.path == "/vmn-post":
			w.WriteHeader(http.StatusBadGateway)
		case h.path == "/post":
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(http.StatusFound)
		case h.path == "/two" && before == 0:
			w.Header().Set("Retry-After", "2")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}, "PENSTOCK_DELIVERY_SCHEDULE=100ms,100ms")
	acme := g.as("acme-all-0123456")
	t.Run("500 then 200 is tried again, and every attempt is kept", func(t *testing.T) {
		acme.text("a1", "447800555501", "try again")
		first, second := k.await(t, "/one", 1), k.await(t, "/one", 2)
		if first.header.Get("Webhook-Id") == "" || first.header.Get("Webhook-Id") != second.header.Get("Webhook-Id") {
			t.Errorf("the attempts have the ids %q and %q", first.header.Get("Webhook-Id"), second.header.Get("Webhook-Id"))
		}
		for _, h := range []hit{first, second} {
			if !signedBy(h, "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz") {
				t.Errorf("the signature is not the account's: %v", h.header)
			}
		}
		var sent []parcel
		eventually(t, "both deliveries are made", func() (any, bool) {
			sent = g.deliveries("relay=g-two&state=delivered")
			return g.deliveries("relay=g-two"), len(sent) == 2
		})
		for _, p := range sent {
			want := "500 200"
			if strings.Contains(p.Target, "/two") {
				want = "429 200"
				gap := between(t, p.Attempts[0].At, p.Attempts[1].At)
				if gap < 2*time.Second {
					t.Errorf("Retry-After: 2 was not honoured: %s", gap)
				}
			} else if !strings.Contains(p.Attempts[0].Response, "not now") {
				t.Errorf("the first answer is not kept: %+v", p.Attempts[0])
			}
			same(t, "attempts of "+p.Target, attempted(p), want)
		}
	})
	for _, tc := range []struct{ name, relay, to, statuses, reason string }{
		{"410", "g-longer", "447800015555", "410", "answered 410 Gone"},
		{"404", "v-get", "447800019999", "404", "answered 404 Not Found"},
		{"a redirect, which is not followed,", "g-post", "447800255501", "302", "redirects to"},
	} {
		t.Run(tc.name+" is dead at once", func(t *testing.T) {
			acme.text("a-"+tc.relay, tc.to, "no")
			p := g.reach(tc.relay, "dead")
			same(t, "attempts", attempted(p), tc.statuses)
			if !strings.Contains(p.Reason, tc.reason) || p.NextAttemptAt != nil {
				t.Errorf("the delivery: %+v, want the reason %q", p, tc.reason)
			}
		})
	}
	t.Run("after the last attempt of the schedule it is dead, and n entries are n+1 attempts", func(t *testing.T) {
		acme.text("a5", "447800020001", "never")
		same(t, "attempts", attempted(g.reach("v-post", "dead")), "502 502 502")
	})
	t.Run("targets are shown without the values of their query", func(t *testing.T) {
		if p := g.reach("v-get", "dead"); strings.Contains(p.Target, "447700900123") || !strings.HasPrefix(p.Target, k.url+"/vmn?") {
			t.Errorf("the target is %s", p.Target)
		}
	})
	close(mended)
	t.Run("what is dead is replayed with the same id", func(t *testing.T) {
		g.admin().post("/admin/deliveries/replay", `{}`).mentions(t, 422, "name ids or at least one filter")
		g.admin().post("/admin/deliveries/replay", `{"relay": "g-longer"}`).is(t, 200, `{"count": 1}`)
		same(t, "attempts", attempted(g.reach("g-longer", "delivered")), "410 200")
		hits := k.at("/longer")
		if len(hits) != 2 || hits[0].header.Get("Webhook-Id") != hits[1].header.Get("Webhook-Id") {
			t.Errorf("hits: %+v", hits)
		}
		g.admin().post("/admin/deliveries/replay", `{"state": "dead"}`).is(t, 200, `{"count": 3}`)
		for _, relay := range []string{"v-get", "v-post", "g-post"} {
			g.reach(relay, "delivered")
		}
		g.admin().post("/admin/deliveries/replay", `{"state": "dead"}`).is(t, 200, `{"count": 0}`)
	})
	t.Run("what was delivered is replayed only when that is asked for", func(t *testing.T) {
		g.admin().post("/admin/deliveries/replay", `{"relay": "g-longer"}`).is(t, 200, `{"count": 0}`)
		g.admin().post("/admin/deliveries/replay", `{"relay": "g-longer", "include_delivered": true}`).is(t, 200, `{"count": 1}`)
		k.await(t, "/longer", 3)
	})
	t.Run("filters are checked", func(t *testing.T) {
		g.admin().get("/admin/deliveries?state=lost").mentions(t, 422, `"state"`, "want one of queued")
		g.admin().get("/admin/deliveries?limit=0").mentions(t, 422, `"limit"`)
		g.admin().get("/admin/events?from=yesterday").mentions(t, 422, `"from"`)
	})
}

// between is the time from one moment to another.
func between(t *testing.T, from, to string) time.Duration {
	t.Helper()
	a, err := time.Parse(time.RFC3339Nano, from)
	if err != nil {
		t.Fatal(err)
	}
	b, err := time.Parse(time.RFC3339Nano, to)
	if err != nil {
		t.Fatal(err)
	}
	return b.Sub(a)
}

func testEgress(t *testing.T, s *site) {
	k := newSink(t, nil)
	g := start(t, s, `{"accounts": [{"name": "acme", "tokens": [{"token": "acme-all-0123456", "scopes": ["carrier"]}]}]}`, "PENSTOCK_EGRESS_ALLOW=")
	relay := func(endpoint string) string {
		return `{"accounts": [{"name": "acme", "relays": {"vmn": [{"id": "v", "number": "447800019999", "action": "http_get", "parameters": ["` + endpoint + `"]}]}}]}`
	}
	for _, host := range []string{
		"127.0.0.1", "10.1.2.3", "192.168.0.9:8080", "169.254.169.254", "100.64.0.1", "0.0.0.0", "[::1]", "[::ffff:10.0.0.1]",
		"[fd00::1]", "2130706433", "0x7f.1", "127.1", "localhost", "a.localhost",
	} {
		t.Run("a relay to "+host+" is 422 with the path", func(t *testing.T) {
			g.admin().put("/admin/inventory", relay("http://user:secret@"+host+"/in?m=%msg")).
				mentions(t, 422, "accounts[0].relays.vmn[0].parameters[0]", "expected a URL that may be reached")
		})
	}
	t.Run("a relay to a name that resolves to a private address is a dead delivery that says so", func(t *testing.T) {
		name := privateName(t)
		port := k.url[strings.LastIndex(k.url, ":"):]
		g.apply("", relay("http://"+name+port+"/in?m=%msg"))
		g.as("acme-all-0123456").text("e1", "447800019999", "inside")
		p := g.reach("v", "dead")
		if !strings.Contains(p.Reason, name+" is not public") || len(p.Attempts) != 1 {
			t.Errorf("the delivery: %+v", p)
		}
		if n := len(k.at("/in")); n != 0 {
			t.Errorf("%d requests came through", n)
		}
	})
}

// privateName is this machine's name, if that resolves to a private address.
func privateName(t *testing.T) string {
	t.Helper()
	name, err := os.Hostname()
	if err != nil {
		t.Skipf("skipped: the machine has no name: %v", err)
	}
	addrs, err := net.DefaultResolver.LookupNetIP(t.Context(), "ip", name)
	if err != nil {
		t.Skipf("skipped: the machine's name %s does not resolve (%v); delivery/guard tests names against a resolver of its own", name, err)
	}
	for _, a := range addrs {
		if private := func(a netip.Addr) bool { return a.IsLoopback() || a.IsPrivate() || a.IsLinkLocalUnicast() }; !private(a.Unmap()) {
			t.Skipf("skipped: the machine's name %s resolves to %s, which is public", name, a)
		}
	}
	return name
}
