package admin

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/app"
	"github.com/penstock/penstock/cmd/penstock/client"
	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

const shellInventory = `accounts: [{name: acme, credit: 5, tokens: [{token: acme-all-0123456, scopes: [messaging, webhook]}]}]`

// testShell runs the commands status, send and tail against a gateway.
func testShell(t *testing.T, s *e2e.Site) {
	g := e2e.Start(t, s, shellInventory)
	t.Run("status shows back ends and gateways", func(t *testing.T) {
		var got e2e.Result
		relaytest.Eventually(t, "the gateway is registered", func() (any, bool) {
			got = g.RunCommand("", "status")
			return got.Stdout, strings.Contains(got.Stdout, "GATEWAY")
		})
		got.Mentions(t, 0, "ready\n", "BACK END", "records ", "journal uplink ", "http://")
		if got := g.RunCommand("", "status", "--json"); got.Code != 0 || !strings.HasPrefix(got.Stdout, `{"backends":{`) {
			t.Errorf("status --json: exit code = %d, output = %s, want JSON", got.Code, got.Stdout)
		}
		e2e.RunCommand(nil, "", "status", "--server", "http://127.0.0.1:1", "--admin-token", e2e.AdminToken).Mentions(t, 1)
	})
	t.Run("send sends one message", func(t *testing.T) {
		send := func(token string, args ...string) e2e.Result {
			return e2e.RunCommand(nil, "Hello from the standard input", append([]string{"send", "447700900123", "--server", g.URL(), "--token", token}, args...)...)
		}
		const token = "acme-all-0123456"
		preview := send(token, "-m", "Hello", "--preview")
		preview.Mentions(t, 0)
		relaytest.Equal(t, "the preview", preview.Stdout, "1 part, 1 credit of 5 available\n")
		send(token, "-m", "-", "--from", "Shop").Mentions(t, 0, " to 447700900123 queued\n")
		g.Admin().Get("/admin/messages?account=acme").Mentions(t, 200, "447700900123", `"originator":"Shop"`)
		send(token, "-m", "Hello", "--from", "My Great Shop").Mentions(t, 1, "The originator must be")
		send("another", "-m", "Hello").Mentions(t, 1, "Unauthenticated.")
	})
	t.Run("tail prints events as they arrive", func(t *testing.T) { testTail(t, g) })
}

func testTail(t *testing.T, g *e2e.Gateway) {
	acme := g.WithToken("acme-all-0123456")
	post := func(n int) {
		e2e.PostWebhook(t, acme, "/webhooks/lorawan", fmt.Sprintf(`{"nothing": "tail-%d"}`, n))
	}
	post(0)
	g.AwaitProcessed()
	ctx, interrupt := context.WithCancel(context.Background())
	defer interrupt()
	output := &e2e.Transcript{}
	exitCode := make(chan int, 1)
	go func() {
		var stderr bytes.Buffer
		args := []string{"tail", "-n", "1", "--kind", "uplink", "--account", "acme", "-q", "tail-", "--server", g.URL(), "--admin-token", e2e.AdminToken}
		exitCode <- app.Run(args, client.Environment{Context: ctx, Variables: nil, Stdin: strings.NewReader(""), Stdout: output, Stderr: &stderr, Version: "test"})
	}()
	relaytest.Eventually(t, "the last event", func() (any, bool) {
		return output.String(), strings.Contains(output.String(), "tail-0") || strings.Contains(output.String(), "quarantined")
	})
	post(1)
	e2e.PostWebhook(t, acme, "/webhooks/lorawan", `{"other": 1}`)
	post(2)
	relaytest.Eventually(t, "the events that arrived", func() (any, bool) {
		return output.String(), strings.Count(output.String(), " quarantined ") == 3
	})
	interrupt()
	if code := <-exitCode; code != 0 {
		t.Errorf("exit code of tail after an interrupt = %d, want 0", code)
	}
	for line := range strings.Lines(output.String()) {
		if !strings.Contains(line, " uplink ") || !strings.Contains(line, " account 1 ") {
			t.Errorf("line = %q, want an uplink of account 1", line)
		}
	}
}

// TestStatusFailsIfTheGatewayIsNotReady runs the command status while the mail server is down.
func TestStatusFailsIfTheGatewayIsNotReady(t *testing.T) {
	t.Parallel()
	g := e2e.Start(t, e2e.Embedded(), shellInventory, "PENSTOCK_SMTP_ADDR=127.0.0.1:1", "PENSTOCK_SMTP_FROM=gateway@example.com")
	got := g.RunCommand("", "status")
	got.Mentions(t, 1, "mail ")
	if !strings.HasPrefix(got.Stdout, "not ready\n") {
		t.Errorf("output = %s\nwant it to begin with \"not ready\"", got.Stdout)
	}
	if !strings.Contains(got.Stderr, "not ready") {
		t.Errorf("error = %q, want \"not ready\" in it", got.Stderr)
	}
}
