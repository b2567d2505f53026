package usage

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay"
)

// take counts records as the intake does: until it works.
func (w *world) take(records ...Record) {
	w.t.Helper()
	m := w.meter()
	for try := range 10 {
		strangers, err := m.Take(w.t.Context(), records)
		if err == nil && len(strangers) == 0 {
			return
		}
		if relay.KindOf(err) != relay.KindUnavailable || try == 9 {
			w.t.Fatalf("strangers %v: %v", strangers, err)
		}
	}
}

// block runs the jobs that ask for suspensions, and those that they make.
func (w *world) block() {
	w.t.Helper()
	m := w.meter()
	for run := true; run; {
		run = false
		for id, j := range w.jobs {
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

func (w *world) is(want ...string) {
	w.t.Helper()
	if !slices.Equal(w.told, want) {
		w.t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(w.told, "\n\t"), strings.Join(want, "\n\t"))
	}
}

const (
	warnedA  = "usage.limit_warning A"
	reachedA = "usage.limit_reached A"
)

func TestEachLimitIsToldOnceAMonth(t *testing.T) {
	w := newWorld(t)
	w.sims["A"] = Line{Limit: Limit{Monthly: 100, Warning: 80, Cap: Notify, Recipients: []string{"a@example.com", "b@example.com"}}}
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
		limit Limit
		bytes int64
		want  []string
	}{
		"a limit that is crossed at once is near, too": {Limit{Monthly: 100, Warning: 80, Cap: Notify}, 100, []string{warnedA, reachedA}},
		"a limit without a warning":                    {Limit{Monthly: 100, Cap: Notify}, 100, []string{reachedA}},
		"a warning without a limit":                    {Limit{Warning: 80, Cap: Notify}, 1000, []string{warnedA}},
		"no cap, but a warning":                        {Limit{Monthly: 100, Warning: 80, Cap: NoCap}, 100, []string{warnedA}},
		"no cap":                                       {Limit{Monthly: 100, Cap: NoCap}, 100, nil},
		"no limit":                                     {Limit{Cap: Block}, 1000, nil},
		"a limit that blocks":                          {Limit{Monthly: 100, Cap: Block}, 100, []string{reachedA, "suspend A"}},
		"a limit that would block":                     {Limit{Monthly: 100, Warning: 80, Cap: Block}, 99, []string{warnedA}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.sims["A"] = Line{Limit: tc.limit}
			w.take(use("1", "A", at(1, 0), tc.bytes))
			w.block()
			w.is(tc.want...)
		})
	}
}

func TestALimitOfAPoolCountsAllItsSIMs(t *testing.T) {
	w := newWorld(t)
	limit := Limit{Monthly: 100, Cap: Block, Recipients: []string{"p@example.com"}}
	w.pools["p"] = Pool{Name: "Vans", Limit: limit}
	w.sims["A"] = Line{Pool: "p", Limit: Limit{Monthly: 60, Cap: Notify}}
	w.sims["B"] = Line{Pool: "p"}
	w.take(use("1", "B", at(1, 0), 40), use("2", "C", at(1, 0), 1000))
	w.is()
	w.take(use("3", "A", at(1, 0), 60)) // crosses both
	w.block()
	w.is(reachedA, "usage.limit_reached p", "mail p@example.com p", "suspend A", "suspend B")
	if m := w.sent["usage.limit_reached-1-pool-p-2026-11-"+hashOf("p@example.com")].Mail; m == nil || m.Subject != "SIM pool Vans (p) has reached its monthly limit" {
		t.Errorf("%+v", m)
	}
	w.sims["A"] = Line{Pool: "gone"}
	w.take(use("4", "A", at(1, 0), 1))
}

func TestALargePoolIsBlockedPieceByPiece(t *testing.T) {
	w := newWorld(t)
	w.pools["p"] = Pool{Limit: Limit{Monthly: 1, Cap: Block}}
	for i := range 2*some + 1 {
		w.sims[fmt.Sprintf("P%05d", i)] = Line{Pool: "p"}
	}
	w.broken = "suspend P00700" // another job has it in its hands
	w.take(use("1", "P00000", at(1, 0), 1))
	w.block()
	if len(w.asked) != 2*some+1 || len(w.jobs) != 4 { // one of them for the SIM that had to wait
		t.Errorf("%d were suspended by %d jobs", len(w.asked), len(w.jobs))
	}
}

func TestWhatWasBroughtBackIsNotSuspendedForAnother(t *testing.T) {
	w := newWorld(t)
	w.pools["p"] = Pool{Limit: Limit{Monthly: 1, Cap: Block}}
	w.sims["A"], w.sims["B"] = Line{Pool: "p"}, Line{Pool: "p"}
	w.broken = "suspend B"
	w.take(use("1", "A", at(1, 0), 1))
	m := w.meter()
	for id, j := range w.jobs {
		if _, err := m.RunBlock(t.Context(), j); err != nil {
			t.Fatal(err)
		}
		j.State = "completed"
		w.jobs[id] = j
	}
	w.asked = nil // somebody unsuspends A
	w.block()
	w.is("usage.limit_reached p", "suspend A", "suspend B")
}

func TestOnlyTheCurrentMonthIsBlocked(t *testing.T) {
	w := newWorld(t)
	w.sims["A"] = Line{Limit: Limit{Monthly: 100, Cap: Block}}
	w.take(use("1", "A", at(1, 0).AddDate(0, 0, -1), 100))
	w.block()
	w.is(reachedA)
	w.take(use("2", "A", at(1, 0), 100))
	w.now = w.now.AddDate(0, 1, 0) // the job was long in coming
	w.block()
	w.is(reachedA, reachedA)
}

func TestALimitThatIsRaisedBeforeItBlocks(t *testing.T) {
	w := newWorld(t)
	w.sims["A"] = Line{Limit: Limit{Monthly: 100, Cap: Block}}
	w.sims["B"] = Line{Pool: "p"}
	w.pools["p"] = Pool{Limit: Limit{Monthly: 100, Cap: Block}}
	w.take(use("1", "A", at(1, 0), 100), use("2", "B", at(1, 0), 100))
	w.sims["A"] = Line{Limit: Limit{Monthly: 101, Cap: Block}}
	delete(w.pools, "p")
	w.block()
	if len(w.jobs) != 2 || len(w.asked) != 0 {
		t.Errorf("%d jobs; %v were suspended", len(w.jobs), w.asked)
	}
}

func TestALimitThatBlocksLaterStillBlocks(t *testing.T) {
	w := newWorld(t)
	w.sims["A"] = Line{Limit: Limit{Monthly: 100, Cap: Notify}}
	w.take(use("1", "A", at(1, 0), 100))
	w.sims["A"] = Line{Limit: Limit{Monthly: 100, Cap: Block}}
	w.take(use("2", "A", at(1, 0), 1))
	w.block()
	w.is(reachedA, "suspend A")
	w.take(use("3", "A", at(1, 0), 1))
	w.block()
	w.is(reachedA, "suspend A")
}

// A process that dies anywhere leaves what the next one completes, once.
func TestWhateverBreaksIsToldOnce(t *testing.T) {
	for _, broken := range []string{"lines", "put", "tell", "create", "did", "submit"} {
		t.Run(broken, func(t *testing.T) {
			w := newWorld(t)
			w.sims["A"] = Line{Limit: Limit{Monthly: 100, Warning: 80, Cap: Block, Recipients: []string{"a@example.com"}}}
			w.broken = broken
			w.take(use("1", "A", at(1, 0), 100))
			w.block()
			w.is(warnedA, "mail a@example.com A", reachedA, "mail a@example.com A", "suspend A")
			if w.totals[Subject{OfSIM, "A", 202611}].Bytes != 100 {
				t.Errorf("%+v", w.totals)
			}
		})
	}
}

func TestManySIMsAreLookedUpPieceByPiece(t *testing.T) {
	w := newWorld(t)
	var records []Record
	for i := range 2*atOnce + 1 {
		iccid := fmt.Sprintf("M%05d", i)
		w.sims[iccid] = Line{}
		records = append(records, use(iccid, iccid, at(1, 0), 1))
	}
	w.take(records...)
	if len(w.records) != len(records) || w.most != atOnce {
		t.Errorf("%d kept, %d looked up at one time", len(w.records), w.most)
	}
}

func TestStrangersAreNotCounted(t *testing.T) {
	w := newWorld(t)
	other := use("3", "A", at(1, 0), 1)
	other.Account = 2
	strangers, err := w.meter().Take(t.Context(), []Record{use("1", "X", at(1, 0), 1), use("2", "A", at(1, 0), 1), other})
	if err != nil || !slices.Equal(strangers, []int{0, 2}) || len(w.records) != 1 {
		t.Errorf("%v, %v, kept %+v", strangers, err, w.records)
	}
	if _, err := NewMeter(MeterDeps{}, MeterOptions{}); err == nil {
		t.Error("a meter of nothing")
	}
}
