package failures

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/delivery/email/smtptest"
	"github.com/penstock/penstock/delivery/influx/influxtest"
	"github.com/penstock/penstock/relay/cache/redistest"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/sqlstore/sqltest"
)

// mixedFault is what happens to a site under load: where it is configured, and the
// fault.
type mixedFault struct {
	name string
	soak bool // strikes only in a soak
	// prepare starts the servers that fail, and returns settings of the gateway and
	// what happens in each round.
	prepare func(t *testing.T, s *e2e.Site) (settings []string, strike func())
}

func mixedFaults() []mixedFault {
	return []mixedFault{
		{"Redis is emptied", false, func(t *testing.T, s *e2e.Site) ([]string, func()) {
			return nil, func() {
				c := s.Redis.Client()
				defer func() { _ = c.Close() }()
				relaytest.NoError(t, c.FlushAll(context.Background()).Err())
			}
		}},
		{"Redis is killed and starts empty", true, func(_ *testing.T, s *e2e.Site) ([]string, func()) {
			return nil, func() { s.Redis.Restart() }
		}},
		{"a Sentinel failover is planned", true, func(t *testing.T, _ *e2e.Site) ([]string, func()) {
			set := redistest.StartSentinels(t)
			return []string{"PENSTOCK_REDIS_URL=" + set.URL}, func() { set.Switch(t) }
		}},
		{"the master of a Sentinel is killed", false, func(t *testing.T, _ *e2e.Site) ([]string, func()) {
			set := redistest.StartSentinels(t)
			return []string{"PENSTOCK_REDIS_URL=" + set.URL}, func() { set.Crash(t) }
		}},
		{"PostgreSQL is killed", true, func(_ *testing.T, s *e2e.Site) ([]string, func()) {
			return nil, func() { s.Postgres.Kill(); s.Postgres.Start() }
		}},
		{"PostgreSQL's standby takes over", false, func(t *testing.T, _ *e2e.Site) ([]string, func()) {
			pair := sqltest.StartPair(t)
			return []string{"PENSTOCK_DATABASE_URL=" + pair.NewDatabase(t)}, pair.Fail
		}},
	}
}

// TestFaultsLoseNothing has a back end fail under a mixed load, once, three times in a soak
// or PENSTOCK_TEST_FAULTS times. What strikes only in a soak, TestOutageLosesNothing sees under
// a load of frames and messages: what was acknowledged is there afterwards, nothing
// that was done is undone, nothing that exists is refused meanwhile, and what the
// endpoint gets twice has the same ids.
func TestFaultsLoseNothing(t *testing.T) {
	t.Parallel()
	rounds := e2e.Rounds(t, "PENSTOCK_TEST_FAULTS", 1, 3)
	s := &e2e.Site{T: t, Name: "real", Postgres: sqltest.StartPostgres(t), Influx: influxtest.Start(t, influxtest.Options{}), SMTP: smtptest.Shared(t)}
	for _, fault := range mixedFaults() {
		if fault.soak && !e2e.Soak() {
			continue
		}
		t.Run(fault.name, func(t *testing.T) {
			s.Redis = redistest.Start(t, "--databases", "100", "--appendonly", "no")
			settings, strike := fault.prepare(t, s)
			e := newEndpoint(t)
			g := e2e.NewGateway(t, s, mixedInventory(t, e.url), append(settings, "PENSTOCK_EGRESS_ALLOW_HTTP_CALLBACK=true")...)
			g.Spawn()
			m := mix(g, e.url)
			m.awaitProgress(t, 5)
			began := time.Now()
			for range rounds {
				strike()
				m.awaitProgress(t, 5)
			}
			took := time.Since(began)
			m.End()
			f := m.find(t, e)
			g.EndCleanly()
			f.verifyLedger(g)
			f.report(t, m)
			t.Logf("%s, %d times in %s: %s", fault.name, rounds, took.Round(time.Second), f)
		})
	}
}

// findings are what a load came to.
type findings struct {
	acknowledged, stored map[string]int
	lost                 []string // acknowledged, and not there
	undone               []string // deleted, and there; done, and not so
	twice                []string // there more than once
	repeated             int      // came to the endpoint more than once, with the same ids
	unlike               []string // came with other ids, or torn
	refused, later       int
	waited               time.Duration
}

func (f *findings) String() string {
	total, kept := 0, 0
	var each []string
	for _, kind := range mixedKinds() {
		total, kept = total+f.acknowledged[kind], kept+f.stored[kind]
		each = append(each, fmt.Sprintf("%s %d", kind, f.acknowledged[kind]))
	}
	return fmt.Sprintf("acknowledged %d, stored %d, lost %d, refused %d, undone %d, stored twice %d, duplicates with the same id %d, with another %d; "+
		"%d answers that something is away; quiet after %s (%s)", total, kept, len(f.lost), f.refused, len(f.undone), len(f.twice), f.repeated, len(f.unlike),
		f.later, f.waited.Round(100*time.Millisecond), strings.Join(each, ", "))
}

// report fails the test for what must not be.
func (f *findings) report(t *testing.T, m *mixed) {
	t.Helper()
	for what, list := range map[string][]string{
		"lost": f.lost, "undone": f.undone, "stored twice": f.twice, "came with different ids, or torn": f.unlike,
		"refused": slices.Sorted(maps.Keys(m.refused)),
	} {
		if len(list) > 0 {
			t.Errorf("%d %s:\n%.4000s", len(list), what, strings.Join(list[:min(len(list), 20)], "\n"))
		}
	}
}

// find waits until the gateway is quiet and looks for everything.
func (m *mixed) find(t *testing.T, e *endpoint) *findings {
	t.Helper()
	f := &findings{acknowledged: m.counts(), stored: map[string]int{}}
	for _, n := range m.later {
		f.later += n
	}
	for _, n := range m.refused {
		f.refused += n
	}
	ended := time.Now()
	m.awaitQuiet(e)
	f.waited = time.Since(ended)
	f.arrived(m, e)
	f.messages(m, sends(m.g))
	f.devices(m)
	f.jobs(m)
	f.records(t, m)
	return f
}

// kept counts a thing of a kind as stored, or as lost.
func (f *findings) kept(kind, what string, there bool) {
	if there {
		f.stored[kind]++
		return
	}
	f.lost = append(f.lost, kind+": "+what)
}

// expected is what must come to the endpoint.
func (m *mixed) expected() (all []string) {
	for _, kind := range []string{ofTexts, ofJoined} {
		for text := range m.acked[kind] {
			all = append(all, "message "+text)
		}
	}
	for _, kind := range []string{ofSends, ofScheduled} {
		for text, id := range m.acked[kind] {
			if !strings.HasSuffix(text, e2e.TomorrowMark) {
				all = append(all, "report "+id+" 8", "report "+id+" 1")
			}
		}
	}
	for id := range m.acked[ofJobs] {
		all = append(all, "job.completed "+id)
	}
	for id := range m.acked[ofClaims] {
		all = append(all, "token.claimed "+id)
	}
	return all
}

// awaitQuiet waits until everything is processed, and everything told that must be; not
// for ever.
func (m *mixed) awaitQuiet(e *endpoint) {
	m.g.AwaitProcessed()
	all, states := m.expected(), []string{"queued", "retrying"}
	waitFor(func() bool {
		return len(e.Missing(slices.Values(all))) == 0 && !slices.ContainsFunc(states, func(s string) bool { return len(m.g.Deliveries("limit=1&state="+s)) > 0 })
	})
}

// arrived looks at what the endpoint got.
func (f *findings) arrived(m *mixed, e *endpoint) {
	lost := map[string]bool{}
	for _, what := range e.Missing(slices.Values(m.expected())) {
		lost[what] = true
	}
	for _, kind := range []string{ofTexts, ofJoined} {
		for text := range m.acked[kind] {
			f.kept(kind, text, !lost["message "+text])
			delete(lost, "message "+text)
		}
	}
	for _, what := range slices.Sorted(maps.Keys(lost)) {
		f.lost = append(f.lost, "the endpoint was not told: "+what)
	}
	f.repeated, f.unlike = e.Repeated()
	e.Mu.Lock()
	defer e.Mu.Unlock()
	for what := range e.Seen {
		text, message := strings.CutPrefix(what, "message ")
		_, whole := m.acked[ofJoined][text]
		_, plain := m.acked[ofTexts][text]
		if message && !whole && !plain {
			f.unlike = append(f.unlike, fmt.Sprintf("%q is no message that was sent", text))
		}
	}
}

// sendShown is a message as the operator sees it.
type sendShown struct {
	id    string
	text  string
	state string // of all parts, with blanks between those that differ
	parts int
}

// sends lists all that the account has sent, by text.
func sends(g *e2e.Gateway) map[string][]sendShown {
	g.T.Helper()
	found := map[string][]sendShown{}
	for _, m := range e2e.List[e2e.SentParts](g.Admin(), "/admin/messages?account=1&limit=1000") {
		one := sendShown{id: fmt.Sprint(m.ID), parts: len(m.Parts)}
		var states []string
		for _, p := range m.Parts {
			one.text += p.Data
			states = append(states, p.State)
		}
		one.state = strings.Join(slices.Compact(states), " ")
		found[one.text] = append(found[one.text], one)
	}
	return found
}

// messages compares what was ordered with what the operator sees.
func (f *findings) messages(m *mixed, found map[string][]sendShown) {
	for _, kind := range []string{ofSends, ofSOAP, ofScheduled, ofCancelled} {
		for text, id := range m.acked[kind] {
			state := map[bool]string{true: "pending", false: "delivered"}[strings.HasSuffix(text, e2e.TomorrowMark)]
			if kind == ofCancelled {
				state = "removed"
			}
			all := found[text]
			n := slices.IndexFunc(all, func(s sendShown) bool { return s.id == id })
			f.kept(kind, fmt.Sprintf("%.40q as %s", text, id), n >= 0)
			if n >= 0 && all[n].state != state {
				f.undone = append(f.undone, fmt.Sprintf("%s: %.40q is %s, want %s", kind, text, all[n].state, state))
			}
			if len(all) > 1 {
				f.twice = append(f.twice, fmt.Sprintf("%s: %.40q: %+v", kind, text, all))
			}
		}
	}
}

// devices looks for frames and devices.
func (f *findings) devices(m *mixed) {
	m.g.T.Helper()
	acme := m.g.As("acme-all-0123456")
	for devEUI, values := range m.frames.Acked {
		stored := acme.ReadingsByTime(devEUI)
		for at, value := range values {
			got, found := stored[at]
			reading := fmt.Sprintf("%s at %s: %v, want %v", devEUI, at, got, value)
			if !found || got != value {
				m.explain(devEUI)
			}
			f.kept(ofFrames, reading, found && got == value)
		}
	}
	for identifier := range m.acked[ofDevices] {
		f.kept(ofDevices, identifier, acme.Get("/iot/devices/identifier/"+identifier).Status == 200)
	}
	for identifier := range m.acked[ofDeleted] {
		if a := acme.Get("/iot/devices/identifier/" + identifier); a.Status == 404 || a.Status == 422 {
			f.stored[ofDeleted]++
		} else {
			f.undone = append(f.undone, fmt.Sprintf("the device %s was deleted: %d %s", identifier, a.Status, a.Body))
		}
	}
}

// explain logs what the gateway says of the first frames of a device, and the readings
// that InfluxDB has of the device.
func (m *mixed) explain(devEUI string) {
	m.g.T.Helper()
	for _, event := range m.g.Events("limit=1000&device=" + devEUI) {
		m.g.T.Logf("event %s of %s: %s", event.ID, devEUI, m.g.Trace(event.ID))
	}
	query := url.Values{
		"db": {m.g.Setting("PENSTOCK_INFLUX_BUCKET")},
		"q":  {"SELECT * FROM /.*/ WHERE identifier = '" + devEUI + "'"},
	}
	resp := relaytest.Must(http.Get(m.g.Site.Influx.URL + "/query?" + query.Encode()))(m.g.T)
	defer func() { _ = resp.Body.Close() }()
	m.g.T.Logf("InfluxDB has of %s: %s", devEUI, relaytest.Must(io.ReadAll(resp.Body))(m.g.T))
}

// waitFor waits for a condition, but not for ever, and reports whether it holds. A
// job whose end could not be recorded runs again when its lease ends, after its end was
// told.
func waitFor(holds func() bool) bool {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(relaytest.Patience); ; {
		if holds() {
			return true
		}
		select {
		case <-tick.C:
		case <-late:
			return false
		}
	}
}

// jobs looks for jobs, claims and subscribers.
func (f *findings) jobs(m *mixed) {
	m.g.T.Helper()
	acme := e2e.CustomerOf(m.g)
	ended := map[string]string{}
	waitFor(func() bool {
		for _, j := range acme.SIMJobs() {
			ended[j.ID] = j.Action + " " + j.Status
		}
		return !slices.ContainsFunc(slices.Collect(maps.Keys(m.acked[ofJobs])), func(id string) bool { return !strings.HasSuffix(ended[id], " completed") })
	})
	for id, action := range m.acked[ofJobs] {
		f.kept(ofJobs, id+": "+ended[id], ended[id] == action+" completed")
	}
	for id := range m.acked[ofClaims] {
		var a e2e.Response
		completed := waitFor(func() bool {
			a = m.g.As("acme-all-0123456").Get("/ledgers/jobs/" + id)
			return a.Status == 200 && strings.Contains(a.Body, `"completed"`)
		})
		f.kept(ofClaims, a.Body, completed)
	}
	known := map[string]int{}
	for _, one := range e2e.ListNumbered[struct{ Surname string }](acme, "/v3/mno/subscriber") {
		known[one.Surname]++
	}
	for surname := range m.acked[ofSubscribers] {
		f.kept(ofSubscribers, surname, known[surname] == 1)
	}
}

// records looks for what SIMs used and for calls: each is there once.
func (f *findings) records(t *testing.T, m *mixed) {
	t.Helper()
	acme := e2e.CustomerOf(m.g)
	file := acme.CompleteJob("/v3/mno/job/cdr", e2e.CurrentPeriod())
	rows, err := csv.NewReader(strings.NewReader(acme.Get("/v3/mno/job/" + file + "/cdr/stream").Body)).ReadAll()
	relaytest.NoError(t, err)
	there := map[string]int{}
	for _, row := range rows {
		there[row[0]]++
	}
	for _, rows := range acme.DownloadArchive(acme.RequestArchive(e2e.ArchiveOfNovember)) {
		for _, row := range rows {
			id, _, _ := strings.Cut(row, "|")
			there[id]++
		}
	}
	for _, kind := range []string{ofUses, ofCalls} {
		for id := range m.acked[kind] {
			f.kept(kind, id, there[id] > 0)
			if there[id] > 1 {
				f.twice = append(f.twice, fmt.Sprintf("%s: %s is there %d times", kind, id, there[id]))
			}
		}
	}
}

// verifyLedger looks whether the ledger is whole and has every claim.
func (f *findings) verifyLedger(g *e2e.Gateway) {
	out, err := g.Command("ledger", "verify").CombinedOutput()
	m := regexp.MustCompile(`acme/assets: (\d+) entries are as they were signed`).FindSubmatch(out)
	entries := 0
	if m != nil {
		_, _ = fmt.Sscan(string(m[1]), &entries)
	}
	if err != nil || entries < 1+f.acknowledged[ofClaims] {
		f.lost = append(f.lost, fmt.Sprintf("the ledger has %d entries for %d claims: %v %s", entries, f.acknowledged[ofClaims], err, out))
	}
}
