package app

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// TestBackupRestoreRecover loses the data directory's databases after a backup, and
// puts them back: the journal has what came since, and what was there is not
// doubled.
func TestBackupRestoreRecover(t *testing.T) {
	t.Parallel()
	arrived, url := newTally(t)
	inventory := fixture(t, "load.yaml", "SINK", url, "    decoders:\n", fmt.Sprintf("    sims: [{iccid: %q, current_state: active}]\n    decoders:\n", simA))
	g := newGateway(t, &site{name: "embedded"}, inventory, "PENSTOCK_LISTEN="+fixedAddress(t))
	g.spawn()
	acme, copied := g.as("acme-all-0123456"), filepath.Join(g.dir, "backup")

	const early = 10 // messages that the backup has as delivered
	for n := range early {
		acme.text(fmt.Sprint("early-", n), "447800000001", fmt.Sprint("early ", n))
	}
	eventually(t, "the first messages are delivered", func() (any, bool) { all := g.deliveries("state=delivered"); return all, len(all) == early })
	l := g.lightLoad()
	acknowledged := func() int { l.mu.Lock(); defer l.mu.Unlock(); return len(l.texts) }
	more := func(n int) {
		t.Helper()
		n += acknowledged()
		eventually(t, "more messages are acknowledged", func() (any, bool) { now := acknowledged(); return now, now >= n })
	}
	acme.post("/inbound/cdr/sim", used("before", simA, 100)).mentions(t, 200, `"records":1`)
	more(30)
	g.tool("backup", copied).mentions(t, copied+" holds what")
	more(30)
	acme.post("/inbound/cdr/sim", used("before", simA, 100)+used("after", simA, 20)).mentions(t, 200, `"records":2`)
	l.end()
	g.settled()
	eventually(t, "everything was delivered once", func() (any, bool) { lost := arrived.missing(l.texts); return len(lost), len(lost) == 0 })
	g.kill()

	g.tool("restore", copied).mentions(t, "penstock recover")
	g.spawn()
	eventually(t, "processing is halted", func() (any, bool) {
		status, r := g.ready()
		b := r.Backends["gateways"]
		return r, status == http.StatusServiceUnavailable && b.Status == "down" && strings.Contains(b.Error, "restored from a backup") && strings.Contains(b.Error, "penstock recover")
	})
	l.halted()
	acme.post("/inbound/cdr/sim", used("halted", simA, 3)).mentions(t, 200, `"records":1`)
	if lost := arrived.missing(l.texts); len(lost) != 1 {
		t.Errorf("%q are not delivered while processing is halted, want the one that came since", lost)
	}

	g.tool("recover").mentions(t, "events were processed again; processing goes on")
	eventually(t, "the gateway is ready", func() (any, bool) { status, r := g.ready(); return r, status == http.StatusOK })
	l.check(t, arrived)
	report := acme.mno().ordered("/v3/mno/job/usage", currentTimeSpan())
	acme.mno().finished(report, "completed")
	same(t, "the bytes of the SIM", fmt.Sprint(reportedUsage(t, acme.mno().get("/v3/mno/job/"+report+"/usage"))[simA]), "123")
	arrived.deliveredOnce(t, g, len(l.texts)+early)
	if out, err := g.command("recover").CombinedOutput(); exitCode(err) != 1 || !strings.Contains(string(out), "processing has not stopped") {
		t.Errorf("a second recover: %d %s", exitCode(err), out)
	}
	if code := g.terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// halted posts a frame and a message that wait in the journal.
func (l *load) halted() {
	l.g.t.Helper()
	before := len(l.texts)
	l.message(9, 9)
	l.frame(fixture(l.g.t, "chirpstack/up.json"), 9, 9)
	if len(l.texts) != before+1 || len(l.refused) > 0 {
		l.g.t.Errorf("posts were refused: %v", l.refused)
	}
}

// deliveredOnce waits until there is one record of a delivery for each message, and
// each is delivered. What was under way when the backup was made is sent again once
// its lease has run out.
func (c *tally) deliveredOnce(t *testing.T, g *gateway, count int) {
	t.Helper()
	eventually(t, "every delivery has ended", func() (any, bool) {
		open := g.deliveries("state=queued&limit=1000")
		return open, len(open) == 0
	})
	ids := map[string]bool{}
	for cursor := ""; ; {
		var page struct {
			Data []parcel
			Meta struct{ Next string }
		}
		g.admin().get("/admin/deliveries?limit=1000&relay=g-load"+cursor).into(t, &page)
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
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(ids) != count || len(c.seen) != count {
		t.Errorf("%d messages have a delivery and %d arrived, want %d", len(ids), len(c.seen), count)
	}
	for text, a := range c.seen {
		if len(a.hooks) != 1 {
			t.Errorf("%q came with the webhook-ids %v, want one", text, a.hooks)
		}
		if strings.HasPrefix(text, "early ") && a.count != 1 {
			t.Errorf("%q, which the backup has as delivered, came %d times", text, a.count)
		}
	}
}

// tool runs one of the program's commands with the gateway's settings and returns
// what it printed. It must succeed.
func (g *gateway) tool(args ...string) printed {
	g.t.Helper()
	out, err := g.command(args...).CombinedOutput()
	if err != nil {
		g.t.Fatalf("penstock %s: %v\n%s", args[0], err, out)
	}
	return printed(out)
}

// printed is what a command printed.
type printed string

// mentions checks that it holds some words.
func (p printed) mentions(t *testing.T, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(string(p), w) {
			t.Errorf("%s\nwant %q in it", p, w)
		}
	}
}
