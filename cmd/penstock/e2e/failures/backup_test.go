package failures

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/porttest"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestBackupRestoreRecover loses the data directory's databases after a backup, and
// puts them back: the journal has what came since, and what was there is not
// doubled.
func TestBackupRestoreRecover(t *testing.T) {
	t.Parallel()
	arrived, url := e2e.NewMessageCounter(t)
	inventory := e2e.Fixture(t, "load.yaml", "SINK", url, "    decoders:\n", fmt.Sprintf("    sims: [{iccid: %q, current_state: active}]\n    decoders:\n", e2e.SIMA))
	g := e2e.NewGateway(t, e2e.Embedded(), inventory, "PENSTOCK_LISTEN="+porttest.Address(t))
	g.Spawn()
	acme, copied := g.As("acme-all-0123456"), filepath.Join(g.Dir, "backup")

	const early = 10 // messages that the backup has as delivered
	for n := range early {
		acme.PostInboundText(fmt.Sprint("early-", n), "447800000001", fmt.Sprint("early ", n))
	}
	relaytest.Eventually(t, "the first messages are delivered", func() (any, bool) { all := g.Deliveries("state=delivered"); return all, len(all) == early })
	l := g.StartLoad(1)
	acme.Post("/inbound/cdr/sim", e2e.UsageRecord("before", e2e.SIMA, 100)).Mentions(t, 200, `"records":1`)
	l.AwaitMessages(t, 30)
	g.RunTool("backup", copied).Mentions(t, copied+", without the journal")
	l.AwaitMessages(t, 30)
	acme.Post("/inbound/cdr/sim", e2e.UsageRecord("before", e2e.SIMA, 100)+e2e.UsageRecord("after", e2e.SIMA, 20)).Mentions(t, 200, `"records":2`)
	l.End()
	g.AwaitProcessed()
	relaytest.Eventually(t, "everything was delivered once", func() (any, bool) { lost := arrived.Missing(maps.Keys(l.Texts)); return len(lost), len(lost) == 0 })
	g.Kill()

	g.RunTool("restore", copied).Mentions(t, "penstock recover")
	g.Spawn()
	relaytest.Eventually(t, "processing is halted", func() (any, bool) {
		status, r := g.Ready()
		b := r.Backends["gateways"]
		return r, status == http.StatusServiceUnavailable && b.Status == "down" && strings.Contains(b.Error, "restored from a backup") && strings.Contains(b.Error, "penstock recover")
	})
	halted(l)
	acme.Post("/inbound/cdr/sim", e2e.UsageRecord("halted", e2e.SIMA, 3)).Mentions(t, 200, `"records":1`)
	if lost := arrived.Missing(maps.Keys(l.Texts)); len(lost) != 1 {
		t.Errorf("%q are not delivered while processing is halted, want the one that came since", lost)
	}

	g.RunTool("recover").Mentions(t, "events were processed again; processing goes on", "may be missing if they were written between 20", " and 20")
	g.AwaitReady()
	l.Check(t, arrived)
	customer := e2e.CustomerOf(g)
	report := customer.CompleteJob("/v3/mno/job/usage", e2e.CurrentPeriod())
	relaytest.Equal(t, "the bytes of the SIM", fmt.Sprint(e2e.UsageBySIM(t, customer.Get("/v3/mno/job/"+report+"/usage"))[e2e.SIMA]), "123")
	deliveredOnce(arrived, t, g, len(l.Texts)+early)
	if out, err := g.Command("recover").CombinedOutput(); e2e.ExitCode(err) != 1 || !strings.Contains(string(out), "processing has not stopped") {
		t.Errorf("a second recover: %d %s", e2e.ExitCode(err), out)
	}
	g.EndCleanly()
}

// halted posts a frame and a message that wait in the journal.
func halted(l *e2e.Load) {
	l.G.T.Helper()
	before := len(l.Texts)
	l.Message(9, 9)
	l.Frame(9, 9)
	if len(l.Texts) != before+1 || len(l.Refused) > 0 {
		l.G.T.Errorf("posts were refused: %v", l.Refused)
	}
}

// deliveredOnce waits until there is one record of a delivery for each message, and
// each is delivered. What was under way when the backup was made is sent again once
// its lease has run out.
func deliveredOnce(c *e2e.Arrivals, t *testing.T, g *e2e.Gateway, count int) {
	t.Helper()
	relaytest.Eventually(t, "every delivery has ended", func() (any, bool) {
		open := g.Deliveries("state=queued&limit=1000")
		return open, len(open) == 0
	})
	ids := map[string]bool{}
	for _, p := range e2e.List[e2e.Delivery](g.Admin(), "/admin/deliveries?limit=1000&relay=g-load") {
		if p.State != "delivered" || ids[p.MessageID] {
			t.Errorf("the delivery %s is %s; its message has another one: %v", p.ID, p.State, ids[p.MessageID])
		}
		ids[p.MessageID] = true
	}
	c.Mu.Lock()
	defer c.Mu.Unlock()
	if len(ids) != count || len(c.Seen) != count {
		t.Errorf("%d messages have a delivery and %d arrived, want %d", len(ids), len(c.Seen), count)
	}
	for text, a := range c.Seen {
		if len(a.Hooks) != 1 {
			t.Errorf("%q came with the webhook-ids %v, want one", text, a.Hooks)
		}
		if strings.HasPrefix(text, "early ") && a.Count != 1 {
			t.Errorf("%q, which the backup has as delivered, came %d times", text, a.Count)
		}
	}
}

// TestABackupShowsNoSecret searches the files of a gateway's database and of its backup for
// secrets that their records hold. Without the master key the backup is not restored.
func TestABackupShowsNoSecret(t *testing.T) {
	t.Parallel()
	g := e2e.NewGateway(t, e2e.Embedded(), `accounts:
  - name: acme
    credit: 100
    tokens: [{token: acme-all-0123456, scopes: [messaging, carrier, cellular], source: hq, secret: planted-token-secret}]
    webhook_secret: whsec_cGxhbnRlZC13ZWJob29rLXNlY3JldC0y
    callback_url: https://hook:planted-callback@example.com/events?key=planted-callback-key
    soap: {username: acme, password: planted-soap-password}
    relays:
      vmn: [{id: v, number: "447800020001", action: http_post, parameters: ["http://user:planted-relay@127.0.0.1:2/in?key=planted-relay-key"]}]
    rules:
      - {id: r, name: r, on: silent, silent_for: 1h, actions: [{action: http_post, parameters: ["http://127.0.0.1:2/rule?key=planted-rule-key"]}]}
    sims: [{iccid: "8944000000000000001", pin: "73910", pin2: "73911", puk: "73912648", puk2: "73913648", current_state: active}]
`, "PENSTOCK_DELIVERY_SCHEDULE=100ms", "PENSTOCK_LISTEN="+porttest.Address(t))
	g.Spawn()
	customer := e2e.CustomerOf(g)
	g.As("acme-all-0123456").PostInboundText("m1", "447800020001", "hello")
	customer.SendMessages(e2e.SendBody(t, "http://reports:planted-report@127.0.0.1:2", nil, "447700900123"))
	g.AwaitDelivery("v", "dead")
	customer.Get("/v3/mno").Mentions(t, 200, `"puk":"73912648"`)
	copied := filepath.Join(g.Dir, "backup")
	key := filepath.Join(g.DataDir(), "ledger-key")
	g.RunTool("backup", copied).Mentions(t, "without the journal, keys and tokens", "copy "+key+" separately")

	secrets := []string{
		"planted-", "cGxhbnRlZC13ZWJob29rLXNlY3Jl", "73910", "73911", "73912648", "73913648", "acme-all-0123456", e2e.AdminToken,
		strings.TrimSpace(string(relaytest.Must(os.ReadFile(key))(t))),
	}
	for _, pattern := range []string{filepath.Join(g.DataDir(), "penstock.db*"), filepath.Join(copied, "*"), filepath.Join(copied, "*", "*")} {
		for _, name := range relaytest.Must(filepath.Glob(pattern))(t) {
			if info, err := os.Stat(name); err != nil || info.IsDir() {
				continue
			}
			data := relaytest.Must(os.ReadFile(name))(t)
			for _, secret := range secrets {
				if at := bytes.Index(data, []byte(secret)); at >= 0 {
					t.Errorf("%s shows %.30q: %.160q", filepath.Base(name), secret, data[max(at-60, 0):min(at+100, len(data))])
				}
			}
		}
	}

	g.EndCleanly()
	stolen := e2e.NewGateway(t, e2e.Embedded(), "accounts: []", "PENSTOCK_LISTEN="+porttest.Address(t))
	if out, err := stolen.Command("restore", copied).CombinedOutput(); e2e.ExitCode(err) != 1 || !strings.Contains(string(out), "which sealed the records of "+copied+", is missing: copy the file ledger-key") {
		t.Errorf("a restore without the master key: %d %s", e2e.ExitCode(err), out)
	}
	relaytest.NoError(t, os.MkdirAll(stolen.DataDir(), 0o700), os.WriteFile(filepath.Join(stolen.DataDir(), "ledger-key"), relaytest.Must(os.ReadFile(key))(t), 0o600))
	before := relaytest.Must(filepath.Glob(filepath.Join(copied, "*")))(t)
	stolen.RunTool("restore", copied).Mentions(t, "penstock recover")
	relaytest.Equal(t, "the files of the backup", relaytest.Must(filepath.Glob(filepath.Join(copied, "*")))(t), before)
}
