package failures

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestBackupRestoreRecover loses the data directory's databases after a backup, and
// puts them back: the journal has what came since, and what was there is not
// doubled.
func TestBackupRestoreRecover(t *testing.T) {
	t.Parallel()
	arrived, url := e2e.NewMessageCounter(t)
	inventory := e2e.Fixture(t, "load.yaml", "SINK", url, "    decoders:\n", fmt.Sprintf("    sims: [{iccid: %q, current_state: active}]\n    decoders:\n", e2e.SIMA))
	g := e2e.NewGateway(t, &e2e.Site{Name: "embedded"}, inventory, "PENSTOCK_LISTEN="+e2e.FixedAddress(t))
	g.Spawn()
	acme, copied := g.As("acme-all-0123456"), filepath.Join(g.Dir, "backup")

	const early = 10 // messages that the backup has as delivered
	for n := range early {
		acme.PostInboundText(fmt.Sprint("early-", n), "447800000001", fmt.Sprint("early ", n))
	}
	relaytest.Eventually(t, "the first messages are delivered", func() (any, bool) { all := g.Deliveries("state=delivered"); return all, len(all) == early })
	l := g.StartLightLoad()
	acknowledged := func() int { l.Mu.Lock(); defer l.Mu.Unlock(); return len(l.Texts) }
	more := func(n int) {
		t.Helper()
		n += acknowledged()
		relaytest.Eventually(t, "more messages are acknowledged", func() (any, bool) { now := acknowledged(); return now, now >= n })
	}
	acme.Post("/inbound/cdr/sim", e2e.UsageRecord("before", e2e.SIMA, 100)).Mentions(t, 200, `"records":1`)
	more(30)
	g.RunTool("backup", copied).Mentions(t, copied+" holds what")
	more(30)
	acme.Post("/inbound/cdr/sim", e2e.UsageRecord("before", e2e.SIMA, 100)+e2e.UsageRecord("after", e2e.SIMA, 20)).Mentions(t, 200, `"records":2`)
	l.End()
	g.AwaitProcessed()
	relaytest.Eventually(t, "everything was delivered once", func() (any, bool) { lost := arrived.Missing(l.Texts); return len(lost), len(lost) == 0 })
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
	if lost := arrived.Missing(l.Texts); len(lost) != 1 {
		t.Errorf("%q are not delivered while processing is halted, want the one that came since", lost)
	}

	g.RunTool("recover").Mentions(t, "events were processed again; processing goes on")
	relaytest.Eventually(t, "the gateway is ready", func() (any, bool) { status, r := g.Ready(); return r, status == http.StatusOK })
	l.Check(t, arrived)
	report := acme.Cellular().StartJob("/v3/mno/job/usage", e2e.CurrentPeriod())
	acme.Cellular().AwaitJobStatus(report, "completed")
	relaytest.Equal(t, "the bytes of the SIM", fmt.Sprint(e2e.UsageBySIM(t, acme.Cellular().Get("/v3/mno/job/"+report+"/usage"))[e2e.SIMA]), "123")
	deliveredOnce(arrived, t, g, len(l.Texts)+early)
	if out, err := g.Command("recover").CombinedOutput(); e2e.ExitCode(err) != 1 || !strings.Contains(string(out), "processing has not stopped") {
		t.Errorf("a second recover: %d %s", e2e.ExitCode(err), out)
	}
	if code := g.Terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// halted posts a frame and a message that wait in the journal.
func halted(l *e2e.Load) {
	l.G.T.Helper()
	before := len(l.Texts)
	l.Message(9, 9)
	l.Frame(e2e.Fixture(l.G.T, "chirpstack/up.json"), 9, 9)
	if len(l.Texts) != before+1 || len(l.Refused) > 0 {
		l.G.T.Errorf("posts were refused: %v", l.Refused)
	}
}

// deliveredOnce waits until there is one record of a delivery for each message, and
// each is delivered. What was under way when the backup was made is sent again once
// its lease has run out.
func deliveredOnce(c *e2e.MessageCounter, t *testing.T, g *e2e.Gateway, count int) {
	t.Helper()
	relaytest.Eventually(t, "every delivery has ended", func() (any, bool) {
		open := g.Deliveries("state=queued&limit=1000")
		return open, len(open) == 0
	})
	ids := map[string]bool{}
	for cursor := ""; ; {
		var page struct {
			Data []e2e.Delivery
			Meta struct{ Next string }
		}
		g.Admin().Get("/admin/deliveries?limit=1000&relay=g-load"+cursor).Decode(t, &page)
		for _, p := range page.Data {
			if p.State != "delivered" || ids[p.MessageID] {
				t.Errorf("delivery %+v; its message has another one: %v", p, ids[p.MessageID])
			}
			ids[p.MessageID] = true
		}
		if page.Meta.Next == "" {
			break
		}
		cursor = "&cursor=" + page.Meta.Next
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
