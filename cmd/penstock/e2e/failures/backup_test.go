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

// TestRecoverAfterARestoredBackup replaces the databases with a backup and recovers: entries that are
// newer than the backup are processed from the journal, and older entries are not processed again.
func TestRecoverAfterARestoredBackup(t *testing.T) {
	t.Parallel()
	arrivals, url := e2e.NewMessageCounter(t)
	inventory := e2e.Fixture(t, "load.yaml", "SINK", url, "    decoders:\n", fmt.Sprintf("    sims: [{iccid: %q, current_state: active}]\n    decoders:\n", e2e.SIMA))
	g := e2e.NewGateway(t, e2e.Embedded(), inventory, "PENSTOCK_LISTEN="+porttest.Address(t))
	g.Spawn()
	acme, backupDir := g.WithToken("acme-all-0123456"), filepath.Join(g.Dir, "backup")

	const earlyCount = 10 // messages that are delivered before the backup
	for n := range earlyCount {
		acme.PostInboundText(fmt.Sprint("early-", n), "447800000001", fmt.Sprint("early ", n))
	}
	relaytest.Eventually(t, "the first messages are delivered", func() (any, bool) {
		delivered := g.Deliveries("state=delivered")
		return delivered, len(delivered) == earlyCount
	})
	l := g.StartLoad(1)
	acme.Post("/inbound/cdr/sim", e2e.UsageRecord("before", e2e.SIMA, 100)).Mentions(t, 200, `"records":1`)
	l.AwaitMessages(t, 30)
	g.RunTool("backup", backupDir).Mentions(t, backupDir+", without the journal")
	l.AwaitMessages(t, 30)
	acme.Post("/inbound/cdr/sim", e2e.UsageRecord("before", e2e.SIMA, 100)+e2e.UsageRecord("after", e2e.SIMA, 20)).Mentions(t, 200, `"records":2`)
	l.End()
	g.AwaitProcessed()
	relaytest.Eventually(t, "every message is delivered", func() (any, bool) {
		missing := arrivals.MissingItems(maps.Keys(l.Texts))
		return len(missing), len(missing) == 0
	})
	g.Kill()

	g.RunTool("restore", backupDir).Mentions(t, "penstock recover")
	g.Spawn()
	relaytest.Eventually(t, "processing is halted", func() (any, bool) {
		status, r := g.Ready()
		b := r.Backends["gateways"]
		return r, status == http.StatusServiceUnavailable && b.Status == "down" && strings.Contains(b.Error, "restored from a backup") && strings.Contains(b.Error, "penstock recover")
	})
	postWhileHalted(l)
	acme.Post("/inbound/cdr/sim", e2e.UsageRecord("halted", e2e.SIMA, 3)).Mentions(t, 200, `"records":1`)
	if missing := arrivals.MissingItems(maps.Keys(l.Texts)); len(missing) != 1 {
		t.Errorf("undelivered messages = %q, want only the message that was posted while processing was halted", missing)
	}

	g.RunTool("recover").Mentions(t, "events were processed again; processing continues", "may be missing if they were written between 20", " and 20")
	g.AwaitReady()
	l.Check(t, arrivals)
	customer := e2e.CustomerOf(g)
	report := customer.CompleteJob("/v3/mno/job/usage", e2e.CurrentPeriod())
	relaytest.Equal(t, "the bytes of the SIM", fmt.Sprint(e2e.UsageBySIM(t, customer.Get("/v3/mno/job/"+report+"/usage"))[e2e.SIMA]), "123")
	checkDeliveredOnce(t, arrivals, g, len(l.Texts)+earlyCount)
	if output, err := g.Command("recover").CombinedOutput(); e2e.ExitCode(err) != 1 || !strings.Contains(string(output), "processing has not stopped") {
		t.Errorf("a second recover: exit code = %d, output = %s, want 1 and a conflict", e2e.ExitCode(err), output)
	}
	g.TerminateCleanly()
}

// postWhileHalted posts a frame and a message. They wait in the journal.
func postWhileHalted(l *e2e.Load) {
	l.G.T.Helper()
	oldCount := len(l.Texts)
	l.Message(9, 9)
	l.Frame(9, 9)
	if len(l.Texts) != oldCount+1 || len(l.Refused) > 0 {
		l.G.T.Errorf("posts were refused: %v", l.Refused)
	}
}

// checkDeliveredOnce waits until no delivery is queued, and checks that every message has one delivery
// in the state delivered. A delivery that was in flight when the backup was made is sent again after
// its lease has expired.
func checkDeliveredOnce(t *testing.T, arrivals *e2e.Arrivals, g *e2e.Gateway, count int) {
	t.Helper()
	relaytest.Eventually(t, "every delivery has ended", func() (any, bool) {
		queued := g.Deliveries("state=queued&limit=1000")
		return queued, len(queued) == 0
	})
	ids := map[string]bool{}
	for _, delivery := range e2e.List[e2e.Delivery](g.Admin(), "/admin/deliveries?limit=1000&relay=g-load") {
		if delivery.State != "delivered" || ids[delivery.MessageID] {
			t.Errorf("delivery %s: state = %s, another delivery of the message = %v; want delivered and false", delivery.ID, delivery.State, ids[delivery.MessageID])
		}
		ids[delivery.MessageID] = true
	}
	arrivals.Mu.Lock()
	defer arrivals.Mu.Unlock()
	if len(ids) != count || len(arrivals.ByItem) != count {
		t.Errorf("messages with a delivery = %d, arrived messages = %d, want %d", len(ids), len(arrivals.ByItem), count)
	}
	for text, arrival := range arrivals.ByItem {
		if len(arrival.WebhookIDs) != 1 {
			t.Errorf("%q arrived with the webhook-ids %v, want one", text, arrival.WebhookIDs)
		}
		if strings.HasPrefix(text, "early ") && arrival.Count != 1 {
			t.Errorf("%q was delivered before the backup and arrived %d times, want once", text, arrival.Count)
		}
	}
}

// TestBackupContainsNoSecret checks that the files of a gateway's database and of its backup contain no
// secret in clear text, and that a backup cannot be restored without the master key.
func TestBackupContainsNoSecret(t *testing.T) {
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
	g.WithToken("acme-all-0123456").PostInboundText("m1", "447800020001", "hello")
	customer.SendMessages(e2e.SendBody(t, "http://reports:planted-report@127.0.0.1:2", nil, "447700900123"))
	g.AwaitDelivery("v", "dead")
	customer.Get("/v3/mno").Mentions(t, 200, `"puk":"73912648"`)
	backupDir := filepath.Join(g.Dir, "backup")
	key := filepath.Join(g.DataDir(), "ledger-key")
	g.RunTool("backup", backupDir).Mentions(t, "without the journal, keys and tokens", "copy "+key+" separately")

	secrets := []string{
		"planted-", "cGxhbnRlZC13ZWJob29rLXNlY3Jl", "73910", "73911", "73912648", "73913648", "acme-all-0123456", e2e.AdminToken,
		strings.TrimSpace(string(relaytest.Must(os.ReadFile(key))(t))),
	}
	for _, pattern := range []string{filepath.Join(g.DataDir(), "penstock.db*"), filepath.Join(backupDir, "*"), filepath.Join(backupDir, "*", "*")} {
		names := relaytest.Must(filepath.Glob(pattern))(t)
		if len(names) == 0 {
			t.Errorf("no file matches %s", pattern)
		}
		for _, name := range names {
			if info, err := os.Stat(name); err != nil || info.IsDir() {
				continue
			}
			data := relaytest.Must(os.ReadFile(name))(t)
			for _, secret := range secrets {
				if offset := bytes.Index(data, []byte(secret)); offset >= 0 {
					t.Errorf("%s contains the secret %.30q: %.160q", filepath.Base(name), secret, data[max(offset-60, 0):min(offset+100, len(data))])
				}
			}
		}
	}

	g.TerminateCleanly()
	otherGateway := e2e.NewGateway(t, e2e.Embedded(), "accounts: []", "PENSTOCK_LISTEN="+porttest.Address(t))
	if output, err := otherGateway.Command("restore", backupDir).CombinedOutput(); e2e.ExitCode(err) != 1 || !strings.Contains(string(output), "which sealed the records of "+backupDir+", is missing: copy the file ledger-key") {
		t.Errorf("a restore without the master key: exit code = %d, output = %s, want 1 and the missing key", e2e.ExitCode(err), output)
	}
	relaytest.NoError(t, os.MkdirAll(otherGateway.DataDir(), 0o700), os.WriteFile(filepath.Join(otherGateway.DataDir(), "ledger-key"), relaytest.Must(os.ReadFile(key))(t), 0o600))
	backupFiles := relaytest.Must(filepath.Glob(filepath.Join(backupDir, "*")))(t)
	otherGateway.RunTool("restore", backupDir).Mentions(t, "penstock recover")
	relaytest.Equal(t, "the files of the backup", relaytest.Must(filepath.Glob(filepath.Join(backupDir, "*")))(t), backupFiles)
}
