package lease

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock/penstock/relay"
)

// ledger is a store that only keeps outcomes and fails as it is told to.
type ledger struct {
	mu    sync.Mutex
	fail  func(ids []string) error
	kept  []string
	calls int
}

func (l *ledger) save(_ context.Context, ids []string) (none struct{}, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls++
	if l.fail != nil {
		if err := l.fail(ids); err != nil {
			return none, err
		}
	}
	l.kept = append(l.kept, ids...)
	return none, nil
}

// ids returns what was saved.
func (l *ledger) ids() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.kept)
}

// refusedDelay is when what was refused is saved again.
const refusedDelay = 10 * time.Second

// newWriter returns a started writer of ids; unless 0, refused ones are saved again
// after a while.
func newWriter(l *ledger, again time.Duration) *Writer[string, struct{}] {
	w := NewWriter(Outcomes[string, struct{}]{
		Save: l.save, Saved: func([]string, struct{}) {}, Refused: func(*string, error) time.Duration { return again },
		Batch: 256, Log: slog.New(slog.DiscardHandler),
	})
	w.Start()
	return w
}

func TestOutcomesAreSavedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		b := newWriter(l, refusedDelay)
		for _, id := range []string{"a", "b", "c"} {
			b.Add(id)
		}
		if b.Unsaved() != 3 {
			t.Error("what is not saved is not known")
		}
		if left := b.Stop(t.Context()); left != 0 || l.calls != 1 || !slices.Equal(l.ids(), []string{"a", "b", "c"}) {
			t.Errorf("left %d, %d calls, kept %v", left, l.calls, l.ids())
		}
	})
}

func TestOutcomesWaitForAStoreThatIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := time.Now().Add(10 * time.Second)
		l := &ledger{fail: func([]string) error {
			if time.Now().Before(up) {
				return relay.Errorf(relay.KindUnavailable, "down")
			}
			return nil
		}}
		b := newWriter(l, refusedDelay)
		b.Add("a")
		time.Sleep(9 * time.Second)
		if b.Unsaved() != 1 {
			t.Error("forgotten before it was saved")
		}
		time.Sleep(3 * time.Second)
		if b.Unsaved() != 0 || !slices.Equal(l.ids(), []string{"a"}) {
			t.Errorf("kept %v", l.ids())
		}
		b.Stop(t.Context())
	})
}

func TestAnOutcomeTheStoreRefusesHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{fail: func(ids []string) error {
			if slices.Contains(ids, "bad") {
				return errors.New("refused")
			}
			return nil
		}}
		b := newWriter(l, refusedDelay)
		for _, id := range []string{"a", "bad", "c"} {
			b.Add(id)
		}
		time.Sleep(time.Second)
		if !slices.Equal(l.ids(), []string{"a", "c"}) || b.Unsaved() != 1 {
			t.Errorf("kept %v", l.ids())
		}
		l.mu.Lock()
		l.fail = nil
		l.mu.Unlock()
		time.Sleep(refusedDelay)
		synctest.Wait()
		time.Sleep(time.Second)
		if b.Unsaved() != 0 {
			t.Error("not tried again")
		}
		b.Stop(t.Context())
	})
}

func TestStopSaysWhatIsNotSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{fail: func([]string) error { return relay.Errorf(relay.KindUnavailable, "down") }}
		b := newWriter(l, refusedDelay)
		b.Add("a")
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if left := b.Stop(ctx); left != 1 {
			t.Errorf("left %d", left)
		}
	})
}

func TestAnOutcomeTheStoreRefusesCanBeDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{fail: func([]string) error { return errors.New("refused") }}
		b := newWriter(l, 0)
		b.Add("bad")
		if left := b.Stop(t.Context()); left != 0 || len(l.ids()) != 0 {
			t.Errorf("left %d, kept %v", left, l.ids())
		}
	})
}
