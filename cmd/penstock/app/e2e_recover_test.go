package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	registry "github.com/penstock/penstock/relay/gateway"
)

// TestALostGatewaysJournalIsRecoveredByAnother kills one of two gateways that has
// accepted entries of every kind and could not process them. It does not come back:
// its journal is recovered from its disk, beside the other gateway.
func TestALostGatewaysJournalIsRecoveredByAnother(t *testing.T) {
	t.Parallel()
	r := newRecovered(t)
	r.refused(t, "while the gateway runs", r.lost.data(), "the gateway runs", "directory is in use by process")
	r.refused(t, "while it sends heartbeats from another disk", r.copied(t), "sent a heartbeat", "stop it, or wait")
	r.refused(t, "of another directory", t.TempDir(), "is not the data directory of a gateway")

	r.accept(t)
	r.interrupted(t)
	out := r.recovered(t)
	out.mentions(t, "uplink", "sms", "receipt", "cdr", "nothing is left in "+filepath.Join(r.lost.data(), "journal"), "DELETE /admin/gateways/")
	r.check(t)

	r.tool(t).mentions(t, "processed uplink 0, sms 0, receipt 0, cdr 0\n")
	r.check(t)

	r.damaged(t)
	r.check(t)
	if code := r.other.terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// recovered is two gateways on the same back ends: one that will be lost, and another.
type recovered struct {
	site        *site
	lost, other *gateway
	load        *load
	arrived     *tally
	partner     *sink // a carrier
	sink        *sink // has reports
	usage       int   // bytes of simA
	calls       int
}

func newRecovered(t *testing.T) *recovered {
	t.Helper()
	s := realSite(t)
	arrived, sinkURL := newTally(t)
	inventory := fixture(t, "load.yaml", "SINK", sinkURL, "    decoders:\n", fmt.Sprintf("    credit: 10\n    sims: [{iccid: %q, current_state: active}]\n    decoders:\n", simA))
	r := &recovered{site: s, arrived: arrived, partner: newSink(t, nil), sink: newSink(t, nil)}
	c := newCluster(t, s, inventory)
	r.lost, r.other = c.all[0], c.all[1]
	for _, g := range []*gateway{r.lost, r.other} {
		g.configure("carriers:\n  - {type: http, name: partner, url: '" + r.partner.url + "/sms', token: secret}\n")
		g.spawn()
	}
	r.load = &load{
		g: r.lost, from: time.Now().UTC().Add(-12 * time.Hour).Truncate(time.Second),
		frames: map[string]map[string]float64{}, texts: map[string]bool{}, refused: map[string]int{},
	}
	return r
}

// accept has the gateway that will be lost accept entries that it cannot process,
// since the database is down, and kills it.
func (r *recovered) accept(t *testing.T) {
	t.Helper()
	customer(r.lost).send(order(t, r.sink.url, nil, "447700900123"))
	var m struct {
		ReportURL string `json:"report_url"`
	}
	must(t, json.Unmarshal([]byte(r.partner.await(t, "/sms", 1).body), &m))
	report, err := url.Parse(m.ReportURL)
	must(t, err)
	reports(t, r.sink, "447700900123:8") // the carrier's answer is recorded
	acme := carrierOf(r.lost)
	acme.post("/inbound/cdr/sim", used("known", simA, 1)).mentions(t, 200) // the token is known from now on
	r.lost.settled()
	r.usage = 1

	r.site.postgres.Kill()
	body := fixture(t, "chirpstack/up.json")
	for n := range 150 {
		r.load.frame(body, 0, n)
		r.load.message(0, n)
		id := fmt.Sprint("c", n)
		acme.post("/inbound/cdr/sim", used(id, simA, 10)).mentions(t, 200)
		acme.post("/inbound/cdr/sip", callRecord(id)).mentions(t, 200)
		r.usage, r.calls = r.usage+10, r.calls+1
	}
	r.lost.as("").post(report.RequestURI(), `{"state":"DELIVRD"}`).mentions(t, 200)
	if len(r.load.refused) > 0 {
		t.Errorf("posts were refused: %v", r.load.refused)
	}
	r.lost.kill()
	r.site.postgres.Start()
	r.load.g = r.other
	eventually(t, "the other gateway is ready", func() (any, bool) { status, r := r.other.ready(); return r, status == 200 })
}

// command is a recovery with the other gateway's settings.
func (r *recovered) command(dir string) (printed, int) {
	out, err := r.other.command("recover", "--journal", dir, "--config", r.other.file).CombinedOutput()
	return printed(out), exitCode(err)
}

func (r *recovered) refused(t *testing.T, when, dir string, words ...string) {
	t.Helper()
	out, code := r.command(dir)
	if code != 1 {
		t.Errorf("%s: exit code %d", when, code)
	}
	out.mentions(t, words...)
}

// copied returns a copy of what a recovery needs of the lost gateway's directory.
func (r *recovered) copied(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	must(t, os.CopyFS(filepath.Join(dir, "journal"), os.DirFS(filepath.Join(r.lost.data(), "journal"))))
	must(t, copyFile(filepath.Join(r.lost.data(), nodeFile), filepath.Join(dir, nodeFile)))
	return dir
}

// interrupted kills a recovery once it prints its progress.
func (r *recovered) interrupted(t *testing.T) {
	t.Helper()
	eventually(t, "a recovery begins", func() (any, bool) {
		cmd := r.other.command("recover", "--journal", r.lost.data(), "--config", r.other.file)
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		first := make([]byte, len("uplink"))
		n, _ := out.Read(first) // nothing, if it is refused
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return string(first[:n]), string(first[:n]) == "uplink"
	})
}

// recovered recovers as soon as the lost gateway counts as away.
func (r *recovered) recovered(t *testing.T) (out printed) {
	t.Helper()
	eventually(t, "the journal is recovered", func() (any, bool) {
		var code int
		out, code = r.command(r.lost.data())
		if code != 0 && !strings.Contains(string(out), "sent a heartbeat") {
			t.Fatalf("exit code %d:\n%s", code, out)
		}
		return out, code == 0
	})
	return out
}

func (r *recovered) tool(t *testing.T) printed {
	t.Helper()
	out, code := r.command(r.lost.data())
	if code != 0 {
		t.Fatalf("exit code %d:\n%s", code, out)
	}
	return out
}

// check compares what is stored and what was delivered with what was accepted.
func (r *recovered) check(t *testing.T) {
	t.Helper()
	r.load.check(t, r.arrived)
	if len(r.arrived.seen) != len(r.load.texts) {
		t.Errorf("%d messages arrived, want %d", len(r.arrived.seen), len(r.load.texts))
	}
	reports(t, r.sink, "447700900123:8", "447700900123:1")
	acme := customer(r.other)
	id := acme.ordered("/v3/mno/job/usage", currentTimeSpan())
	acme.finished(id, "completed")
	same(t, "the bytes of the SIM", fmt.Sprint(reportedUsage(t, acme.get("/v3/mno/job/"+id+"/usage"))[simA]), fmt.Sprint(r.usage))
	rows := acme.archive(acme.order(november))["cdr-20261101-20261130.csv"]
	same(t, "calls", fmt.Sprint(len(rows)), fmt.Sprint(r.calls))
}

// damaged starts the lost gateway again, without its database; after it was killed, one
// of three messages in its journal is damaged. The others are recovered.
func (r *recovered) damaged(t *testing.T) {
	t.Helper()
	r.lost.spawn()
	r.load.g = r.lost
	eventually(t, "the gateway has been up for two heartbeats: it has read the tokens", func() (any, bool) {
		var list struct {
			Data []struct {
				URL       string
				StartedAt time.Time `json:"started_at"`
				SeenAt    time.Time `json:"seen_at"`
			}
		}
		r.other.admin().get("/admin/gateways").into(t, &list)
		for _, g := range list.Data {
			if g.URL == r.lost.url() && g.SeenAt.Sub(g.StartedAt) > registry.HeartbeatEvery {
				return list, true
			}
		}
		return list, false
	})
	r.load.message(1, 1) // the token is known from now on
	r.lost.settled()
	r.site.postgres.Kill()
	r.load.message(2, 1)
	damaged := "message 1 of 3"
	r.load.message(3, 1)
	r.load.message(4, 1)
	if len(r.load.refused) > 0 {
		t.Fatalf("posts were refused: %v", r.load.refused)
	}
	r.lost.kill()
	segment, offset := flip(t, filepath.Join(r.lost.data(), "journal", "sms"), damaged)
	delete(r.load.texts, damaged)
	r.site.postgres.Start()
	r.load.g = r.other
	out := r.recovered(t)
	out.mentions(t, segment+" at offset ", "bytes cannot be read", "sms 2,")
	found := regexp.MustCompile(`at offset (\d+): (\d+) bytes`).FindStringSubmatch(string(out))
	var begin, length int
	if len(found) == 3 {
		_, err := fmt.Sscan(found[1]+" "+found[2], &begin, &length)
		must(t, err)
	}
	if offset < begin || offset >= begin+length {
		t.Errorf("byte %d of %s is damaged:\n%s", offset, segment, out)
	}
}

// flip changes a bit in the only segment that holds a text and returns the segment and
// the offset.
func flip(t *testing.T, dir, text string) (segment string, offset int) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	must(t, err)
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if at := bytes.Index(raw, []byte(text)); at >= 0 {
			raw[at] ^= 1
			must(t, os.WriteFile(path, raw, 0o600))
			return path, at
		}
	}
	t.Fatalf("no segment in %s holds %q", dir, text)
	return "", 0
}
