package usage

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/sim"
)

// take counts records as the intake does: until it works.
func (w *fixture) take(records ...Record) {
	w.t.Helper()
	m := w.meter()
	for try := range 10 {
		unknown, err := m.Take(w.t.Context(), records)
		if err == nil && len(unknown) == 0 {
			return
		}
		if relay.KindOf(err) != relay.KindUnavailable || try == 9 {
			w.t.Fatalf("strangers %v: %v", unknown, err)
		}
	}
}

// block runs the jobs that ask for suspensions, and those that they make.
func (w *fixture) block() {
	w.t.Helper()
	m := w.meter()
	for run := true; run; {
		run = false
		for _, id := range slices.Sorted(maps.Keys(w.jobs)) {
			j := w.jobs[id]
			if j.Kind != BlockKind || j.State.Ended() {
				continue
			}
			run = true
			_, err := m.RunBlock(w.t.Context(), j)
			if relay.KindOf(err) == relay.KindUnavailable {
				continue
			}
			j.State = "completed"
			w.jobs[id] = j
		}
	}
}

func (w *fixture) is(want ...string) {
	w.t.Helper()
	if !slices.Equal(w.events, want) {
		w.t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(w.events, "\n\t"), strings.Join(want, "\n\t"))
	}
}

const (
	warnedA  = "usage.limit_warning A"
	reachedA = "usage.limit_reached A"
)

func TestEachLimitNotifiesOnceAMonth(t *testing.T) {
	w := newFixture(t)
	w.sims["A"] = sim.SIM{Limit: sim.Limit{Monthly: 100, Warning: 80, Cap: sim.Notify}, Recipients: mailed("a@example.com", "b@example.com")}
	w.take(use("1", "A", at(1, 0), 79), use("2", "B", at(1, 0), 500))
	w.is()
	w.take(use("3", "A", at(1, 0), 1))
	warned := []string{warnedA, "mail a@example.com A", "mail b@example.com A"}
	w.is(warned...)
	w.take(use("4", "A", at(2, 0), 10), use("3", "A", at(1, 0), 1)) // also a replay
	w.is(warned...)
	w.take(use("5", "A", at(3, 0), 10))
	reached := append(warned, reachedA, "mail a@example.com A", "mail b@example.com A")
	w.is(reached...)
	w.take(use("6", "A", at(4, 0), 1000))
	w.is(reached...)
	w.take(use("7", "A", at(4, 0).AddDate(0, -1, 0), 80)) // another month
	w.is(append(reached, warned...)...)
	if body := string(w.sent["usage.limit_reached-1-sim-A-2026-11"].Request.Body); !strings.Contains(body,
		`"data":{"cap_limit_type":"notify","iccid":"A","month":"2026-11","monthly_usage_limit":100,"monthly_usage_limit_warning":80,"unit":"bytes","usage":100}`) {
		t.Error(body)
	}
}

func TestWhatALimitAsksFor(t *testing.T) {
	for name, tc := range map[string]struct {
		limit sim.Limit
		bytes int64
		want  []string
	}{
		"a limit that is crossed at once is near, too": {sim.Limit{Monthly: 100, Warning: 80, Cap: sim.Notify}, 100, []string{warnedA, reachedA}},
		"a limit without a warning":                    {sim.Limit{Monthly: 100, Cap: sim.Notify}, 100, []string{reachedA}},
		"a warning without a limit":                    {sim.Limit{Warning: 80, Cap: sim.Notify}, 1000, []string{warnedA}},
		"no cap, but a warning":                        {sim.Limit{Monthly: 100, Warning: 80, Cap: sim.NoCap}, 100, []string{warnedA}},
		"no cap":                                       {sim.Limit{Monthly: 100, Cap: sim.NoCap}, 100, nil},
		"no limit":                                     {sim.Limit{Cap: sim.Block}, 1000, nil},
		"a limit that blocks":                          {sim.Limit{Monthly: 100, Cap: sim.Block}, 100, []string{reachedA, "suspend A"}},
		"a limit that would block":                     {sim.Limit{Monthly: 100, Warning: 80, Cap: sim.Block}, 99, []string{warnedA}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.sims["A"] = sim.SIM{Limit: tc.limit}
			w.take(use("1", "A", at(1, 0), tc.bytes))
			w.block()
			w.is(tc.want...)
		})
	}
}

func TestALimitOfAPoolCountsAllItsSIMs(t *testing.T) {
	w := newFixture(t)
	w.pools["p"] = sim.Pool{Name: "Vans", Limit: sim.Limit{Monthly: 100, Cap: sim.Block}, Recipients: mailed("p@example.com")}
	w.sims["A"] = sim.SIM{Pool: "p", Limit: sim.Limit{Monthly: 60, Cap: sim.Notify}}
	w.sims["B"] = sim.SIM{Pool: "p"}
	w.take(use("1", "B", at(1, 0), 40), use("2", "C", at(1, 0), 1000))
	w.is()
	w.take(use("3", "A", at(1, 0), 60)) // crosses both
	w.block()
	w.is(reachedA, "usage.limit_reached p", "mail p@example.com p", "suspend A", "suspend B")
	m := w.sent["usage.limit_reached-1-pool-p-2026-11-"+hashOf("p@example.com")].Mail
	if m == nil {
		t.Fatal("no mail was sent")
	}
	relaytest.Equal(t, "the subject", m.Subject, "SIM pool Vans (p) has reached its monthly limit")
	w.sims["A"] = sim.SIM{Pool: "gone"}
	w.take(use("4", "A", at(1, 0), 1))
}

func (w *fixture) out() (n int) {
	for _, line := range w.sims {
		if line.State == sim.Suspended {
			n++
		}
	}
	return n
}

func TestALargePoolIsBlockedPieceByPiece(t *testing.T) {
	w := newFixture(t)
	w.pools["p"] = sim.Pool{Limit: sim.Limit{Monthly: 1, Cap: sim.Block}}
	for i := range 2*pageSize + 1 {
		w.sims[sim.ICCID(fmt.Sprintf("P%05d", i))] = sim.SIM{Pool: "p"}
	}
	w.broken = "suspend P00700" // another job has it in its hands
	w.take(use("1", "P00000", at(1, 0), 1))
	w.block()
	if w.out() != 2*pageSize+1 || len(w.jobs) != 4 { // three pieces, and the SIM of the record
		t.Errorf("%d were suspended by %d jobs", w.out(), len(w.jobs))
	}
	w.take(use("2", "P00001", at(1, 0), 1))
	w.block()
	if len(w.jobs) != 4 {
		t.Errorf("%d jobs for what is out of service already", len(w.jobs))
	}
}

// A limit that blocks is enforced whenever usage is at or above it, whatever made it
// apply to the SIM; notifications are sent once a month.
func TestABlockingLimitIsEnforcedWithinTheMonth(t *testing.T) {
	const reachedP = "usage.limit_reached p"
	enforce := func(t *testing.T, w *fixture, err error) {
		t.Helper()
		relaytest.NoError(t, err)
		w.block()
	}
	back := func(l *sim.SIM) { l.State = sim.Active } // unsuspended by a client
	for name, tc := range map[string]struct {
		then func(t *testing.T, w *fixture, m *Meter)
		want []string
	}{
		"a SIM that is unsuspended": {func(t *testing.T, w *fixture, m *Meter) {
			w.set("A", back)
			enforce(t, w, m.EnforceSIMs(t.Context(), 1, []sim.ICCID{"A", "C", "nobody's"}))
		}, []string{"suspend A"}},
		"a SIM that is unsuspended in a blocked pool": {func(t *testing.T, w *fixture, m *Meter) {
			w.set("B", back)
			enforce(t, w, m.EnforceSIMs(t.Context(), 1, []sim.ICCID{"B"}))
		}, []string{"suspend B"}},
		"one that is unsuspended unseen, with its next record": {func(_ *testing.T, w *fixture, _ *Meter) {
			w.set("A", back)
			w.set("B", back)
			w.take(use("a2", "A", at(2, 0), 0), use("b2", "B", at(2, 0), 0))
			w.block()
		}, []string{"suspend A", "suspend B"}},
		"a limit that is raised and reached again": {func(_ *testing.T, w *fixture, _ *Meter) {
			w.set("A", func(l *sim.SIM) { l.State, l.Limit.Monthly = sim.Active, 200 })
			w.take(use("a2", "A", at(2, 0), 99))
			w.block()
			w.sorted(reachedA, reachedP, "suspend A", "suspend B")
			w.take(use("a3", "A", at(2, 0), 1))
			w.block()
		}, []string{"suspend A"}},
		"a limit that is lowered below what is used": {func(t *testing.T, w *fixture, m *Meter) {
			w.sims["C"] = sim.SIM{Limit: sim.Limit{Monthly: 100, Cap: sim.Block}}
			w.take(use("c1", "C", at(2, 0), 50))
			w.sims["C"] = sim.SIM{Limit: sim.Limit{Monthly: 50, Cap: sim.Block}}
			enforce(t, w, m.EnforceSIMs(t.Context(), 1, []sim.ICCID{"C"}))
		}, []string{"suspend C"}},
		"a SIM that is attached to a blocked pool": {func(t *testing.T, w *fixture, m *Meter) {
			w.sims["C"] = sim.SIM{Pool: "p"}
			enforce(t, w, m.EnforceSIMs(t.Context(), 1, []sim.ICCID{"C"}))
		}, []string{"suspend C"}},
		"a pool's limit that is raised and reached again by one of its SIMs": {func(t *testing.T, w *fixture, m *Meter) {
			w.sims["B"], w.sims["C"] = sim.SIM{Pool: "p"}, sim.SIM{Pool: "p"}
			w.pools["p"] = sim.Pool{Limit: sim.Limit{Monthly: 300, Cap: sim.Block}}
			enforce(t, w, m.EnforcePool(t.Context(), 1, "p"))
			w.take(use("c1", "C", at(2, 0), 200))
			w.block()
		}, []string{"suspend B", "suspend C"}},
		"a pool's limit that is lifted and set again": {func(t *testing.T, w *fixture, m *Meter) {
			w.sims["B"] = sim.SIM{Pool: "p"}
			w.pools["p"] = sim.Pool{Limit: sim.Limit{Monthly: 100, Cap: sim.Notify}}
			enforce(t, w, m.EnforcePool(t.Context(), 1, "p"))
			w.pools["p"] = sim.Pool{Limit: sim.Limit{Monthly: 100, Cap: sim.Block}}
			enforce(t, w, m.EnforcePool(t.Context(), 1, "p"))
		}, []string{"suspend B"}},
		"what has no limit, or is below it": {func(t *testing.T, w *fixture, m *Meter) {
			w.sims["D"] = sim.SIM{Pool: "q", Limit: sim.Limit{Monthly: 100, Cap: sim.Notify}}
			w.sims["E"] = sim.SIM{Limit: sim.Limit{Monthly: 100, Cap: sim.Block}}
			w.pools["q"] = sim.Pool{Limit: sim.Limit{Monthly: 1000, Cap: sim.Block}}
			w.take(use("d1", "D", at(2, 0), 99), use("e1", "E", at(2, 0), 99))
			enforce(t, w, m.EnforceSIMs(t.Context(), 1, []sim.ICCID{"C", "D", "E"}))
			enforce(t, w, m.EnforcePool(t.Context(), 1, "q"))
			enforce(t, w, m.EnforcePool(t.Context(), 1, "nobody's"))
		}, nil},
		"in the next month": {func(t *testing.T, w *fixture, m *Meter) {
			w.clock.Advance(30 * 24 * time.Hour)
			w.set("A", back)
			w.set("B", back)
			enforce(t, w, m.EnforceSIMs(t.Context(), 1, []sim.ICCID{"A", "B"}))
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.sims["A"] = sim.SIM{Limit: sim.Limit{Monthly: 100, Cap: sim.Block}}
			w.sims["B"], w.pools["p"] = sim.SIM{Pool: "p"}, sim.Pool{Limit: sim.Limit{Monthly: 100, Cap: sim.Block}}
			w.take(use("a1", "A", at(1, 0), 100), use("b1", "B", at(1, 0), 100))
			w.block()
			w.sorted(reachedA, reachedP, "suspend A", "suspend B")
			tc.then(t, w, w.meter())
			w.events = w.events[4:]
			w.sorted(tc.want...)
		})
	}
}

// sorted is is, whatever the order.
func (w *fixture) sorted(want ...string) {
	w.t.Helper()
	slices.Sort(w.events)
	slices.Sort(want)
	w.is(want...)
}

func TestOnlyTheCurrentMonthIsBlocked(t *testing.T) {
	w := newFixture(t)
	w.sims["A"] = sim.SIM{Limit: sim.Limit{Monthly: 100, Cap: sim.Block}}
	w.take(use("1", "A", at(1, 0).AddDate(0, 0, -1), 100))
	w.block()
	w.is(reachedA)
	w.take(use("2", "A", at(1, 0), 100))
	w.clock.Advance(30 * 24 * time.Hour) // the job was long in coming
	w.block()
	w.is(reachedA, reachedA)
}

func TestALimitThatIsRaisedBeforeItBlocks(t *testing.T) {
	w := newFixture(t)
	w.sims["A"] = sim.SIM{Limit: sim.Limit{Monthly: 100, Cap: sim.Block}}
	w.sims["B"] = sim.SIM{Pool: "p"}
	w.pools["p"] = sim.Pool{Limit: sim.Limit{Monthly: 100, Cap: sim.Block}}
	w.take(use("1", "A", at(1, 0), 100), use("2", "B", at(1, 0), 100))
	w.sims["A"] = sim.SIM{Limit: sim.Limit{Monthly: 101, Cap: sim.Block}}
	delete(w.pools, "p")
	w.block()
	if len(w.jobs) == 0 || w.out() != 0 {
		t.Errorf("%d jobs; %d were suspended", len(w.jobs), w.out())
	}
}

func TestALimitThatBlocksLaterStillBlocks(t *testing.T) {
	w := newFixture(t)
	w.sims["A"] = sim.SIM{Limit: sim.Limit{Monthly: 100, Cap: sim.Notify}}
	w.take(use("1", "A", at(1, 0), 100))
	w.sims["A"] = sim.SIM{Limit: sim.Limit{Monthly: 100, Cap: sim.Block}}
	w.take(use("2", "A", at(1, 0), 1))
	w.block()
	w.is(reachedA, "suspend A")
	w.take(use("3", "A", at(1, 0), 1))
	w.block()
	w.is(reachedA, "suspend A")
}

// A process that dies anywhere leaves what the next one completes, once.
func TestARetryAfterAnyFailureNotifiesOnce(t *testing.T) {
	for _, broken := range []string{"lines", "put", "tell", "create", "did", "submit"} {
		t.Run(broken, func(t *testing.T) {
			w := newFixture(t)
			w.sims["A"] = sim.SIM{Limit: sim.Limit{Monthly: 100, Warning: 80, Cap: sim.Block}, Recipients: mailed("a@example.com")}
			w.broken = broken
			w.take(use("1", "A", at(1, 0), 100))
			w.block()
			w.is(warnedA, "mail a@example.com A", reachedA, "mail a@example.com A", "suspend A")
			relaytest.Equal(t, "the bytes of the SIM", w.totals[Subject{OfSIM, "A", 202611}].Bytes, 100)
		})
	}
}

func TestManySIMsAreLookedUpPieceByPiece(t *testing.T) {
	w := newFixture(t)
	var records []Record
	for i := range 2*lookupBatch + 1 {
		iccid := fmt.Sprintf("M%05d", i)
		w.sims[sim.ICCID(iccid)] = sim.SIM{}
		records = append(records, use(iccid, iccid, at(1, 0), 1))
	}
	w.take(records...)
	if len(w.records) != len(records) || w.maxLookup != lookupBatch {
		t.Errorf("%d kept, %d looked up at one time", len(w.records), w.maxLookup)
	}
}

func TestRecordsOfUnknownSIMsAreNotCounted(t *testing.T) {
	w := newFixture(t)
	other := use("3", "A", at(1, 0), 1)
	other.Account = 2
	unknown, err := w.meter().Take(t.Context(), []Record{use("1", "X", at(1, 0), 1), use("2", "A", at(1, 0), 1), other})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the records of unknown SIMs", unknown, []int{0, 2})
	relaytest.Equal(t, "the number of stored records", len(w.records), 1)
}
