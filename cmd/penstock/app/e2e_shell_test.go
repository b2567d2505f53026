package app

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
)

const shellInventory = `accounts: [{name: acme, credit: 5, tokens: [{token: acme-all-0123456, scopes: [messaging, webhook]}]}]`

// testShell runs the commands for a running gateway.
func testShell(t *testing.T, s *site) {
	g := start(t, s, shellInventory)
	ask := []string{"--server", g.url(), "--admin-token", adminToken}
	penstock := func(args ...string) ran { return command(nil, "Hello from the standard input", args...) }
	t.Run("status shows back ends and gateways", func(t *testing.T) {
		var got ran
		eventually(t, "the gateway is registered", func() (any, bool) {
			got = penstock(append([]string{"status"}, ask...)...)
			return got.out, strings.Contains(got.out, "GATEWAY")
		})
		for _, words := range []string{"ready\n", "BACK END", "records ", "journal uplink ", "http://"} {
			if got.code != 0 || !strings.Contains(got.out, words) {
				t.Errorf("exit %d, no %q in\n%s%s", got.code, words, got.out, got.err)
			}
		}
		if got := penstock(append([]string{"status", "--json"}, ask...)...); got.code != 0 || !strings.HasPrefix(got.out, `{"backends":{`) {
			t.Errorf("exit %d: %s", got.code, got.out)
		}
		if got := penstock("status", "--server", "http://127.0.0.1:1", "--admin-token", adminToken); got.code != 1 {
			t.Errorf("of no gateway: exit %d: %s", got.code, got.out)
		}
	})
	t.Run("send sends one message", func(t *testing.T) {
		send := func(args ...string) ran {
			return penstock(append([]string{"send", "447700900123", "--server", g.url(), "--token", "acme-all-0123456"}, args...)...)
		}
		if got := send("-m", "Hello", "--preview"); got.code != 0 || got.out != "1 parts, 1 credits of 5 available\n" {
			t.Errorf("preview: exit %d: %s%s", got.code, got.out, got.err)
		}
		if got := send("-m", "-", "--from", "Shop"); got.code != 0 || !strings.Contains(got.out, " to 447700900123 queued\n") {
			t.Errorf("exit %d: %s%s", got.code, got.out, got.err)
		}
		g.admin().get("/admin/messages?account=acme").mentions(t, 200, "447700900123", `"originator":"Shop"`)
		if got := send("-m", "Hello", "--from", "My Great Shop"); got.code != 1 || !strings.Contains(got.err, "The originator must be") {
			t.Errorf("refused: exit %d: %s", got.code, got.err)
		}
		if got := penstock("send", "447700900123", "-m", "Hello", "--server", g.url(), "--token", "another"); got.code != 1 || !strings.Contains(got.err, "Unauthenticated.") {
			t.Errorf("another token: exit %d: %s", got.code, got.err)
		}
	})
	t.Run("tail prints events as they arrive", func(t *testing.T) { testTail(t, g, ask) })
}

func testTail(t *testing.T, g *gateway, ask []string) {
	acme := g.as("acme-all-0123456")
	post := func(n int) {
		hook(t, acme, "/webhooks/lorawan", fmt.Sprintf(`{"nothing": "tail-%d"}`, n))
	}
	post(0)
	g.settled()
	ctx, interrupt := context.WithCancel(context.Background())
	defer interrupt()
	out := &transcript{}
	ended := make(chan int, 1)
	go func() {
		var errs bytes.Buffer
		args := append([]string{"tail", "-n", "1", "--kind", "uplink", "--account", "acme", "-q", "tail-"}, ask...)
		ended <- Run(args, Environment{ctx, nil, strings.NewReader(""), out, &errs, "test"})
	}()
	eventually(t, "the last event", func() (any, bool) {
		return out.String(), strings.Contains(out.String(), "tail-0") || strings.Contains(out.String(), "quarantined")
	})
	post(1)
	hook(t, acme, "/webhooks/lorawan", `{"other": 1}`)
	post(2)
	eventually(t, "what arrived", func() (any, bool) {
		return out.String(), strings.Count(out.String(), " quarantined ") == 3
	})
	interrupt()
	if code := <-ended; code != 0 {
		t.Errorf("interrupted, it exits with %d", code)
	}
	for line := range strings.Lines(out.String()) {
		if !strings.Contains(line, " uplink ") || !strings.Contains(line, " account 1 ") {
			t.Errorf("line %q", line)
		}
	}
}

// TestStatusOfAGatewayThatIsNotReady reads what /readyz says with the admin token.
func TestStatusOfAGatewayThatIsNotReady(t *testing.T) {
	t.Parallel()
	g := start(t, &site{name: "embedded"}, shellInventory, "PENSTOCK_SMTP_ADDR=127.0.0.1:1", "PENSTOCK_SMTP_FROM=gateway@example.com")
	got := command(nil, "", "status", "--server", g.url(), "--admin-token", adminToken)
	if got.code != 1 || !strings.HasPrefix(got.out, "not ready\n") || !strings.Contains(got.out, "mail ") || !strings.Contains(got.err, "not ready") {
		t.Errorf("exit %d: %s%s", got.code, got.out, got.err)
	}
}
