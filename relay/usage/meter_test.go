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

// takeRecords counts records and retries while a dependency is unavailable, as the intake does.
func (f *fixture) takeRecords(records ...Record) {
	f.t.Helper()
	m := f.meter()
	for try := range 10 {
		unknown, err := m.Take(f.t.Context(), records)
		if err == nil && len(unknown) == 0 {
			return
		}
		if relay.KindOf(err) != relay.KindUnavailable || try == 9 {
			f.t.Fatalf("Take: unknown SIMs %v, error %v; want none", unknown, err)
		}
	}
}

// runBlockJobs runs the queued block jobs and the jobs that they submit.
func (f *fixture) runBlockJobs() {
	f.t.Helper()
	m := f.meter()
	for run := true; run; {
		run = false
		for _, id := range slices.Sorted(maps.Keys(f.jobs)) {
			j := f.jobs[id]
			if j.Kind != BlockKind || j.State.Ended() {
				continue
			}
			run = true
			_, err := m.RunBlock(f.t.Context(), j)
			if relay.KindOf(err) == relay.KindUnavailable {
				continue
			}
			j.State = "completed"
			f.jobs[id] = j
		}
	}
}

func (f *fixture) wantEvents(want ...string) {
	f.t.Helper()
	if !slices.Equal(f.events, want) {
		f.t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(f.events, "\n\t"), strings.Join(want, "\n\t"))
	}
}

const (
	warnedA  = "usage.limit_warning A"
	reachedA = "usage.limit_reached A"
)

func TestEachLimitNotifiesOnceAMonth(t *testing.T) {
	f := newFixture(t)
	f.sims["A"] = sim.SIM{Limit: sim.Limit{Monthly: 100, Warning: 80, Action: sim.Notify}, Recipients: recipients("a@example.com", "b@example.com")}
	f.takeRecords(use("1", "A", atHour(1, 0), 79), use("2", "B", atHour(1, 0), 500))
	f.wantEvents()
	f.takeRecords(use("3", "A", atHour(1, 0), 1))
	warned := []string{warnedA, "mail a@example.com A", "mail b@example.com A"}
	f.wantEvents(warned...)
	f.takeRecords(use("4", "A", atHour(2, 0), 10), use("3", "A", atHour(1, 0), 1)) // includes a repeated record
	f.wantEvents(warned...)
	f.takeRecords(use("5", "A", atHour(3, 0), 10))
	reached := append(warned, reachedA, "mail a@example.com A", "mail b@example.com A")
	f.wantEvents(reached...)
	f.takeRecords(use("6", "A", atHour(4, 0), 1000))
	f.wantEvents(reached...)
	f.takeRecords(use("7", "A", atHour(4, 0).AddDate(0, -1, 0), 80)) // in the previous month
	f.wantEvents(append(reached, warned...)...)
	if body := string(f.sent["usage.limit_reached-1-sim-A-2026-11"].Request.Body); !strings.Contains(body,
		`"data":{"cap_limit_type":"notify","iccid":"A","month":"2026-11","monthly_usage_limit":100,"monthly_usage_limit_warning":80,"unit":"bytes","usage":100}`) {
		t.Error(body)
	}
}

func TestNotificationsAndSuspensionsOfALimit(t *testing.T) {
	for name, tc := range map[string]struct {
		limit sim.Limit
		bytes int64
		want  []string
	}{
		"limit and warning crossed by one record": {sim.Limit{Monthly: 100, Warning: 80, Action: sim.Notify}, 100, []string{warnedA, reachedA}},
		"limit without a warning":                 {sim.Limit{Monthly: 100, Action: sim.Notify}, 100, []string{reachedA}},
		"warning without a limit":                 {sim.Limit{Warning: 80, Action: sim.Notify}, 1000, []string{warnedA}},
		"warning without an action":               {sim.Limit{Monthly: 100, Warning: 80, Action: sim.NoAction}, 100, []string{warnedA}},
		"limit without an action":                 {sim.Limit{Monthly: 100, Action: sim.NoAction}, 100, nil},
		"no limit":                                {sim.Limit{Action: sim.Block}, 1000, nil},
		"blocking limit":                          {sim.Limit{Monthly: 100, Action: sim.Block}, 100, []string{reachedA, "suspend A"}},
		"usage below a blocking limit":            {sim.Limit{Monthly: 100, Warning: 80, Action: sim.Block}, 99, []string{warnedA}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.sims["A"] = sim.SIM{Limit: tc.limit}
			f.takeRecords(use("1", "A", atHour(1, 0), tc.bytes))
			f.runBlockJobs()
			f.wantEvents(tc.want...)
		})
	}
}

func TestAPoolLimitCountsTheUsageOfAllItsSIMs(t *testing.T) {
	f := newFixture(t)
	f.pools["p"] = sim.Pool{Name: "Vans", Limit: sim.Limit{Monthly: 100, Action: sim.Block}, Recipients: recipients("p@example.com")}
	f.sims["A"] = sim.SIM{Pool: "p", Limit: sim.Limit{Monthly: 60, Action: sim.Notify}}
	f.sims["B"] = sim.SIM{Pool: "p"}
	f.takeRecords(use("1", "B", atHour(1, 0), 40), use("2", "C", atHour(1, 0), 1000))
	f.wantEvents()
	f.takeRecords(use("3", "A", atHour(1, 0), 60)) // crosses both limits
	f.runBlockJobs()
	f.wantEvents(reachedA, "usage.limit_reached p", "mail p@example.com p", "suspend A", "suspend B")
	m := f.sent["usage.limit_reached-1-pool-p-2026-11-"+hashOf("p@example.com")].Mail
	if m == nil {
		t.Fatal("no mail was sent")
	}
	relaytest.Equal(t, "the subject of the mail", m.Subject, "SIM pool Vans (p) has reached its monthly limit")
	f.sims["A"] = sim.SIM{Pool: "gone"}
	f.takeRecords(use("4", "A", atHour(1, 0), 1))
}

func (f *fixture) suspendedCount() (n int) {
	for _, s := range f.sims {
		if s.State == sim.Suspended {
			n++
		}
	}
	return n
}

func TestALargePoolIsBlockedInBatches(t *testing.T) {
	f := newFixture(t)
	f.pools["p"] = sim.Pool{Limit: sim.Limit{Monthly: 1, Action: sim.Block}}
	for i := range 2*pageSize + 1 {
		f.sims[sim.ICCID(fmt.Sprintf("P%05d", i))] = sim.SIM{Pool: "p"}
	}
	f.broken = "suspend P00700" // fails once, as if another job had the SIM
	f.takeRecords(use("1", "P00000", atHour(1, 0), 1))
	f.runBlockJobs()
	if f.suspendedCount() != 2*pageSize+1 || len(f.jobs) != 4 { // three batches and the SIM of the record
		t.Errorf("%d SIMs were suspended by %d jobs, want %d and 4", f.suspendedCount(), len(f.jobs), 2*pageSize+1)
	}
	f.takeRecords(use("2", "P00001", atHour(1, 0), 1))
	f.runBlockJobs()
	if len(f.jobs) != 4 {
		t.Errorf("got %d jobs after usage of a suspended pool, want 4", len(f.jobs))
	}
}

// A blocking limit is enforced whenever the usage of the month is at or above the limit,
// regardless of how the limit came to apply. Notifications are sent once a month.
func TestABlockingLimitIsEnforcedWithinTheMonth(t *testing.T) {
	const reachedP = "usage.limit_reached p"
	enforce := func(t *testing.T, f *fixture, err error) {
		t.Helper()
		relaytest.NoError(t, err)
		f.runBlockJobs()
	}
	unsuspend := func(s *sim.SIM) { s.State = sim.Active }
	for name, tc := range map[string]struct {
		change func(t *testing.T, f *fixture, m *Meter)
		want   []string
	}{
		"unsuspended SIM": {func(t *testing.T, f *fixture, m *Meter) {
			f.changeSIM("A", unsuspend)
			enforce(t, f, m.EnforceSIMs(t.Context(), 1, []sim.ICCID{"A", "C", "unknown"}))
		}, []string{"suspend A"}},
		"unsuspended SIM of a blocked pool": {func(t *testing.T, f *fixture, m *Meter) {
			f.changeSIM("B", unsuspend)
			enforce(t, f, m.EnforceSIMs(t.Context(), 1, []sim.ICCID{"B"}))
		}, []string{"suspend B"}},
		"next records of unsuspended SIMs": {func(_ *testing.T, f *fixture, _ *Meter) {
			f.changeSIM("A", unsuspend)
			f.changeSIM("B", unsuspend)
			f.takeRecords(use("a2", "A", atHour(2, 0), 0), use("b2", "B", atHour(2, 0), 0))
			f.runBlockJobs()
		}, []string{"suspend A", "suspend B"}},
		"raised limit that is reached again": {func(_ *testing.T, f *fixture, _ *Meter) {
			f.changeSIM("A", func(s *sim.SIM) { s.State, s.Limit.Monthly = sim.Active, 200 })
			f.takeRecords(use("a2", "A", atHour(2, 0), 99))
			f.runBlockJobs()
			f.wantSortedEvents(reachedA, reachedP, "suspend A", "suspend B")
			f.takeRecords(use("a3", "A", atHour(2, 0), 1))
			f.runBlockJobs()
		}, []string{"suspend A"}},
		"limit lowered to the usage": {func(t *testing.T, f *fixture, m *Meter) {
			f.sims["C"] = sim.SIM{Limit: sim.Limit{Monthly: 100, Action: sim.Block}}
			f.takeRecords(use("c1", "C", atHour(2, 0), 50))
			f.sims["C"] = sim.SIM{Limit: sim.Limit{Monthly: 50, Action: sim.Block}}
			enforce(t, f, m.EnforceSIMs(t.Context(), 1, []sim.ICCID{"C"}))
		}, []string{"suspend C"}},
		"SIM attached to a blocked pool": {func(t *testing.T, f *fixture, m *Meter) {
			f.sims["C"] = sim.SIM{Pool: "p"}
			enforce(t, f, m.EnforceSIMs(t.Context(), 1, []sim.ICCID{"C"}))
		}, []string{"suspend C"}},
		"raised pool limit that is reached again by one SIM": {func(t *testing.T, f *fixture, m *Meter) {
			f.sims["B"], f.sims["C"] = sim.SIM{Pool: "p"}, sim.SIM{Pool: "p"}
			f.pools["p"] = sim.Pool{Limit: sim.Limit{Monthly: 300, Action: sim.Block}}
			enforce(t, f, m.EnforcePool(t.Context(), 1, "p"))
			f.takeRecords(use("c1", "C", atHour(2, 0), 200))
			f.runBlockJobs()
		}, []string{"suspend B", "suspend C"}},
		"pool limit that blocks again": {func(t *testing.T, f *fixture, m *Meter) {
			f.sims["B"] = sim.SIM{Pool: "p"}
			f.pools["p"] = sim.Pool{Limit: sim.Limit{Monthly: 100, Action: sim.Notify}}
			enforce(t, f, m.EnforcePool(t.Context(), 1, "p"))
			f.pools["p"] = sim.Pool{Limit: sim.Limit{Monthly: 100, Action: sim.Block}}
			enforce(t, f, m.EnforcePool(t.Context(), 1, "p"))
		}, []string{"suspend B"}},
		"usage below the limits": {func(t *testing.T, f *fixture, m *Meter) {
			f.sims["D"] = sim.SIM{Pool: "q", Limit: sim.Limit{Monthly: 100, Action: sim.Notify}}
			f.sims["E"] = sim.SIM{Limit: sim.Limit{Monthly: 100, Action: sim.Block}}
			f.pools["q"] = sim.Pool{Limit: sim.Limit{Monthly: 1000, Action: sim.Block}}
			f.takeRecords(use("d1", "D", atHour(2, 0), 99), use("e1", "E", atHour(2, 0), 99))
			enforce(t, f, m.EnforceSIMs(t.Context(), 1, []sim.ICCID{"C", "D", "E"}))
			enforce(t, f, m.EnforcePool(t.Context(), 1, "q"))
			enforce(t, f, m.EnforcePool(t.Context(), 1, "unknown"))
		}, nil},
		"next month": {func(t *testing.T, f *fixture, m *Meter) {
			f.clock.Advance(30 * 24 * time.Hour)
			f.changeSIM("A", unsuspend)
			f.changeSIM("B", unsuspend)
			enforce(t, f, m.EnforceSIMs(t.Context(), 1, []sim.ICCID{"A", "B"}))
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.sims["A"] = sim.SIM{Limit: sim.Limit{Monthly: 100, Action: sim.Block}}
			f.sims["B"], f.pools["p"] = sim.SIM{Pool: "p"}, sim.Pool{Limit: sim.Limit{Monthly: 100, Action: sim.Block}}
			f.takeRecords(use("a1", "A", atHour(1, 0), 100), use("b1", "B", atHour(1, 0), 100))
			f.runBlockJobs()
			f.wantSortedEvents(reachedA, reachedP, "suspend A", "suspend B")
			tc.change(t, f, f.meter())
			f.events = f.events[4:]
			f.wantSortedEvents(tc.want...)
		})
	}
}

// wantSortedEvents compares the events regardless of their order.
func (f *fixture) wantSortedEvents(want ...string) {
	f.t.Helper()
	slices.Sort(f.events)
	slices.Sort(want)
	f.wantEvents(want...)
}

func TestOnlyTheCurrentMonthIsBlocked(t *testing.T) {
	f := newFixture(t)
	f.sims["A"] = sim.SIM{Limit: sim.Limit{Monthly: 100, Action: sim.Block}}
	f.takeRecords(use("1", "A", atHour(1, 0).AddDate(0, 0, -1), 100))
	f.runBlockJobs()
	f.wantEvents(reachedA)
	f.takeRecords(use("2", "A", atHour(1, 0), 100))
	f.clock.Advance(30 * 24 * time.Hour) // the job runs in the next month
	f.runBlockJobs()
	f.wantEvents(reachedA, reachedA)
}

func TestALimitRaisedBeforeItsBlockJobDoesNotBlock(t *testing.T) {
	f := newFixture(t)
	f.sims["A"] = sim.SIM{Limit: sim.Limit{Monthly: 100, Action: sim.Block}}
	f.sims["B"] = sim.SIM{Pool: "p"}
	f.pools["p"] = sim.Pool{Limit: sim.Limit{Monthly: 100, Action: sim.Block}}
	f.takeRecords(use("1", "A", atHour(1, 0), 100), use("2", "B", atHour(1, 0), 100))
	f.sims["A"] = sim.SIM{Limit: sim.Limit{Monthly: 101, Action: sim.Block}}
	delete(f.pools, "p")
	f.runBlockJobs()
	if len(f.jobs) == 0 || f.suspendedCount() != 0 {
		t.Errorf("got %d jobs and %d suspended SIMs, want some and 0", len(f.jobs), f.suspendedCount())
	}
}

func TestALimitThatIsLaterSetToBlockBlocks(t *testing.T) {
	f := newFixture(t)
	f.sims["A"] = sim.SIM{Limit: sim.Limit{Monthly: 100, Action: sim.Notify}}
	f.takeRecords(use("1", "A", atHour(1, 0), 100))
	f.sims["A"] = sim.SIM{Limit: sim.Limit{Monthly: 100, Action: sim.Block}}
	f.takeRecords(use("2", "A", atHour(1, 0), 1))
	f.runBlockJobs()
	f.wantEvents(reachedA, "suspend A")
	f.takeRecords(use("3", "A", atHour(1, 0), 1))
	f.runBlockJobs()
	f.wantEvents(reachedA, "suspend A")
}

// Each failed operation stands for a process that ends there; the retry completes its work.
func TestARetryAfterAnyFailureNotifiesOnce(t *testing.T) {
	for _, broken := range []string{"sims", "put", "notify", "create", "steps", "submit"} {
		t.Run(broken, func(t *testing.T) {
			f := newFixture(t)
			f.sims["A"] = sim.SIM{Limit: sim.Limit{Monthly: 100, Warning: 80, Action: sim.Block}, Recipients: recipients("a@example.com")}
			f.broken = broken
			f.takeRecords(use("1", "A", atHour(1, 0), 100))
			f.runBlockJobs()
			f.wantEvents(warnedA, "mail a@example.com A", reachedA, "mail a@example.com A", "suspend A")
			relaytest.Equal(t, "the bytes of the SIM", f.totals[Subject{OfSIM, "A", 202611}].Bytes, 100)
		})
	}
}

func TestManySIMsAreLookedUpInBatches(t *testing.T) {
	f := newFixture(t)
	var records []Record
	for i := range 2*lookupBatch + 1 {
		iccid := fmt.Sprintf("M%05d", i)
		f.sims[sim.ICCID(iccid)] = sim.SIM{}
		records = append(records, use(iccid, iccid, atHour(1, 0), 1))
	}
	f.takeRecords(records...)
	if len(f.records) != len(records) || f.maxLookup != lookupBatch {
		t.Errorf("stored %d records with at most %d SIMs in a lookup, want %d and %d", len(f.records), f.maxLookup, len(records), lookupBatch)
	}
}

func TestRecordsOfUnknownSIMsAreNotCounted(t *testing.T) {
	f := newFixture(t)
	foreign := use("3", "A", atHour(1, 0), 1)
	foreign.Account = 2
	unknown, err := f.meter().Take(t.Context(), []Record{use("1", "X", atHour(1, 0), 1), use("2", "A", atHour(1, 0), 1), foreign})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the records of unknown SIMs", unknown, []int{0, 2})
	relaytest.Equal(t, "the number of stored records", len(f.records), 1)
}
