package admin

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/app"
	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

const shellInventory = `accounts: [{name: acme, credit: 5, tokens: [{token: acme-all-0123456, scopes: [messaging, webhook]}]}]`

// testShell runs the commands for a running gateway.
func testShell(t *testing.T, s *e2e.Site) {
	g := e2e.Start(t, s, shellInventory)
	ask := []string{"--server", g.URL(), "--admin-token", e2e.AdminToken}
	penstock := func(args ...string) e2e.Result { return e2e.RunCommand(nil, "Hello from the standard input", args...) }
	t.Run("status shows back ends and gateways", func(t *testing.T) {
		var got e2e.Result
		relaytest.Eventually(t, "the gateway is registered", func() (any, bool) {
			got = penstock(append([]string{"status"}, ask...)...)
			return got.Stdout, strings.Contains(got.Stdout, "GATEWAY")
		})
		for _, words := range []string{"ready\n", "BACK END", "records ", "journal uplink ", "http://"} {
			if got.Code != 0 || !strings.Contains(got.Stdout, words) {
				t.Errorf("exit %d, no %q in\n%s%s", got.Code, words, got.Stdout, got.Stderr)
			}
		}
		if got := penstock(append([]string{"status", "--json"}, ask...)...); got.Code != 0 || !strings.HasPrefix(got.Stdout, `{"backends":{`) {
			t.Errorf("exit %d: %s", got.Code, got.Stdout)
		}
		if got := penstock("status", "--server", "http://127.0.0.1:1", "--admin-token", e2e.AdminToken); got.Code != 1 {
			t.Errorf("of no gateway: exit %d: %s", got.Code, got.Stdout)
		}
	})
	t.Run("send sends one message", func(t *testing.T) {
		send := func(args ...string) e2e.Result {
			return penstock(append([]string{"send", "447700900123", "--server", g.URL(), "--token", "acme-all-0123456"}, args...)...)
		}
		if got := send("-m", "Hello", "--preview"); got.Code != 0 || got.Stdout != "1 parts, 1 credits of 5 available\n" {
			t.Errorf("preview: exit %d: %s%s", got.Code, got.Stdout, got.Stderr)
		}
		if got := send("-m", "-", "--from", "Shop"); got.Code != 0 || !strings.Contains(got.Stdout, " to 447700900123 queued\n") {
			t.Errorf("exit %d: %s%s", got.Code, got.Stdout, got.Stderr)
		}
		g.Admin().Get("/admin/messages?account=acme").Mentions(t, 200, "447700900123", `"originator":"Shop"`)
		if got := send("-m", "Hello", "--from", "My Great Shop"); got.Code != 1 || !strings.Contains(got.Stderr, "The originator must be") {
			t.Errorf("refused: exit %d: %s", got.Code, got.Stderr)
		}
		if got := penstock("send", "447700900123", "-m", "Hello", "--server", g.URL(), "--token", "another"); got.Code != 1 || !strings.Contains(got.Stderr, "Unauthenticated.") {
			t.Errorf("another token: exit %d: %s", got.Code, got.Stderr)
		}
	})
	t.Run("tail prints events as they arrive", func(t *testing.T) { testTail(t, g, ask) })
}

func testTail(t *testing.T, g *e2e.Gateway, ask []string) {
	acme := g.As("acme-all-0123456")
	post := func(n int) {
		e2e.PostWebhook(t, acme, "/webhooks/lorawan", fmt.Sprintf(`{"nothing": "tail-%d"}`, n))
	}
	post(0)
	g.AwaitProcessed()
	ctx, interrupt := context.WithCancel(context.Background())
	defer interrupt()
	out := &e2e.Transcript{}
	ended := make(chan int, 1)
	go func() {
		var errs bytes.Buffer
		args := append([]string{"tail", "-n", "1", "--kind", "uplink", "--account", "acme", "-q", "tail-"}, ask...)
		ended <- app.Run(args, app.Environment{Context: ctx, Variables: nil, Stdin: strings.NewReader(""), Stdout: out, Stderr: &errs, Version: "test"})
	}()
	relaytest.Eventually(t, "the last event", func() (any, bool) {
		return out.String(), strings.Contains(out.String(), "tail-0") || strings.Contains(out.String(), "quarantined")
	})
	post(1)
	e2e.PostWebhook(t, acme, "/webhooks/lorawan", `{"other": 1}`)
	post(2)
	relaytest.Eventually(t, "what arrived", func() (any, bool) {
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
	g := e2e.Start(t, &e2e.Site{Name: "embedded"}, shellInventory, "PENSTOCK_SMTP_ADDR=127.0.0.1:1", "PENSTOCK_SMTP_FROM=gateway@example.com")
	got := e2e.RunCommand(nil, "", "status", "--server", g.URL(), "--admin-token", e2e.AdminToken)
	if got.Code != 1 || !strings.HasPrefix(got.Stdout, "not ready\n") || !strings.Contains(got.Stdout, "mail ") || !strings.Contains(got.Stderr, "not ready") {
		t.Errorf("exit %d: %s%s", got.Code, got.Stdout, got.Stderr)
	}
}
