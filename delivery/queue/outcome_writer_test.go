package queue

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/delivery/worker"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/outbox"
)

// ledger is a store that only keeps outcomes and fails as it is told to.
type ledger struct {
	outbox.Store
	mu    sync.Mutex
	fail  func(os []outbox.Outcome) error
	kept  []string
	calls int
}

func (l *ledger) Finish(_ context.Context, os []outbox.Outcome) ([]outbox.Ref, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls++
	if l.fail != nil {
		if err := l.fail(os); err != nil {
			return nil, err
		}
	}
	for _, o := range os {
		l.kept = append(l.kept, o.ID)
	}
	return nil, nil
}

// ids returns what was saved.
func (l *ledger) ids() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.kept)
}

func outcomeOf(id string) outbox.Outcome {
	return outbox.Outcome{ID: id, State: outbox.Delivered}
}

func nobody([]outbox.Outcome, []outbox.Ref) {}

func TestOutcomesAreSavedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		b := newOutcomeWriter(l, quiet(), nobody)
		b.start()
		for _, id := range []string{"a", "b", "c"} {
			b.add(outcomeOf(id))
		}
		if !b.isUnsaved("a") || b.unsavedCount() != 3 {
			t.Error("what is not saved is not known")
		}
		if left := b.stop(t.Context()); left != 0 || l.calls != 1 || !slices.Equal(l.ids(), []string{"a", "b", "c"}) {
			t.Errorf("left %d, %d calls, kept %v", left, l.calls, l.ids())
		}
	})
}

func TestOutcomesWaitForAStoreThatIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := time.Now().Add(10 * time.Second)
		l := &ledger{fail: func([]outbox.Outcome) error {
			if time.Now().Before(up) {
				return relay.Errorf(relay.KindUnavailable, "down")
			}
			return nil
		}}
		b := newOutcomeWriter(l, quiet(), nobody)
		b.start()
		b.add(outcomeOf("a"))
		time.Sleep(9 * time.Second)
		if !b.isUnsaved("a") {
			t.Error("forgotten before it was saved")
		}
		time.Sleep(3 * time.Second)
		if b.isUnsaved("a") || !slices.Equal(l.ids(), []string{"a"}) {
			t.Errorf("kept %v", l.ids())
		}
		b.stop(t.Context())
	})
}

func TestAnOutcomeTheStoreRefusesHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{fail: func(os []outbox.Outcome) error {
			if slices.ContainsFunc(os, func(o outbox.Outcome) bool { return o.ID == "bad" }) {
				return errors.New("refused")
			}
			return nil
		}}
		b := newOutcomeWriter(l, quiet(), nobody)
		b.start()
		for _, id := range []string{"a", "bad", "c"} {
			b.add(outcomeOf(id))
		}
		time.Sleep(time.Second)
		if !slices.Equal(l.ids(), []string{"a", "c"}) || !b.isUnsaved("bad") {
			t.Errorf("kept %v", l.ids())
		}
		l.mu.Lock()
		l.fail = nil
		l.mu.Unlock()
		time.Sleep(refusedDelay)
		synctest.Wait()
		time.Sleep(time.Second)
		if b.isUnsaved("bad") {
			t.Error("not tried again")
		}
		b.stop(t.Context())
	})
}

func TestStopSaysWhatIsNotSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{fail: func([]outbox.Outcome) error { return relay.Errorf(relay.KindUnavailable, "down") }}
		b := newOutcomeWriter(l, quiet(), nobody)
		b.start()
		b.add(outcomeOf("a"))
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if left := b.stop(ctx); left != 1 {
			t.Errorf("left %d", left)
		}
	})
}

func TestJudgement(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	life, end := context.WithCancel(context.Background())
	defer end()
	q := &Queue{attemptCtx: life, opts: withDefaults(Options{}), deps: withDefaultDeps(Deps{
		Schedule: delivery.Schedule{10 * time.Second, 20 * time.Second},
		Now:      func() time.Time { return now }, Rand: func() float64 { return 0.5 },
	})}
	cases := []struct {
		name      string
		tries     int
		verdict   delivery.Verdict
		simulated bool
		state     outbox.State
		wait      time.Duration
		uncounted bool
	}{
		{"delivered", 0, delivery.Verdict{Class: delivery.Delivered}, false, outbox.Delivered, 0, false},
		{"simulated", 0, delivery.Verdict{Class: delivery.Delivered}, true, outbox.Simulated, 0, false},
		{"dead at once", 0, delivery.Verdict{Class: delivery.Dead}, false, outbox.Dead, 0, false},
		{"the first retry", 0, delivery.Verdict{Class: delivery.Retry}, false, outbox.Retrying, 10 * time.Second, false},
		{"the second retry", 1, delivery.Verdict{Class: delivery.Retry}, false, outbox.Retrying, 20 * time.Second, false},
		{"a target that asks for more time", 1, delivery.Verdict{Class: delivery.Retry, RetryAfter: time.Minute}, false, outbox.Retrying, time.Minute, false},
		{"no attempt left", 2, delivery.Verdict{Class: delivery.Retry}, false, outbox.Dead, 0, false},
		{"our own fault, even when no attempt is left", 9, delivery.Verdict{Class: delivery.Fault}, false, outbox.Retrying, 10 * time.Second, true},
		{"an SMS without credit, which waits", 9, delivery.Verdict{Class: delivery.Fault, RetryAfter: time.Minute}, false, outbox.Retrying, time.Minute, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.verdict.Reason = "why"
			o := q.classify(&outbox.Delivery{ID: "a", Tries: c.tries}, permitAttempt, worker.Result{Verdict: c.verdict, Simulated: c.simulated})
			var want time.Time
			if c.wait > 0 {
				want = now.Add(c.wait)
			}
			if o.State != c.state || !o.NextAttemptAt.Equal(want) || o.Uncounted != c.uncounted {
				t.Errorf("got %+v", o)
			}
		})
	}
}

func TestDelaysOfErrorsThatAreNotOursAreASecond(t *testing.T) {
	for err, want := range map[error]time.Duration{
		retryIn(90 * time.Second): 90 * time.Second, retryIn(-time.Second): 0, errors.New("lease expired"): time.Second,
	} {
		if got := retryDelay(3, err, nil); got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
}
