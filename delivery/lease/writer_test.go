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
	"github.com/penstock/penstock/relay/relaytest"
)

// store keeps outcomes, and fails as the test chooses.
type store struct {
	mu    sync.Mutex
	fail  func(ids []string) error
	kept  []string
	calls int
}

func (l *store) save(_ context.Context, ids []string) (none struct{}, err error) {
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

// ids returns the saved outcomes.
func (l *store) ids() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.kept)
}

// refusedDelay is the delay until a refused outcome is saved again.
const refusedDelay = 10 * time.Second

// newWriter returns a started writer of ids; refused ones are saved again after a
// delay, or dropped if it is 0.
func newWriter(l *store, again time.Duration) *Writer[string, struct{}] {
	w := NewWriter(Outcomes[string, struct{}]{
		Save: l.save, Saved: func([]string, struct{}) {}, Refused: func(*string, error) time.Duration { return again },
		Batch: 256, Log: slog.New(slog.DiscardHandler),
	})
	w.Start()
	return w
}

func TestOutcomesAreSavedInOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &store{}
		b := newWriter(l, refusedDelay)
		for _, id := range []string{"a", "b", "c"} {
			b.Add(id)
		}
		relaytest.Equal(t, "unsaved outcomes", b.Unsaved(), 3)
		relaytest.Equal(t, "unsaved outcomes after Stop", b.Stop(t.Context()), 0)
		relaytest.Equal(t, "the number of calls", l.calls, 1)
		relaytest.Equal(t, "the saved outcomes", l.ids(), []string{"a", "b", "c"})
	})
}

func TestOutcomesWaitForAStoreThatIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := time.Now().Add(10 * time.Second)
		l := &store{fail: func([]string) error {
			if time.Now().Before(up) {
				return relay.Errorf(relay.KindUnavailable, "down")
			}
			return nil
		}}
		b := newWriter(l, refusedDelay)
		b.Add("a")
		time.Sleep(9 * time.Second)
		relaytest.Equal(t, "unsaved outcomes while the store is down", b.Unsaved(), 1)
		time.Sleep(3 * time.Second)
		relaytest.Equal(t, "unsaved outcomes afterwards", b.Unsaved(), 0)
		relaytest.Equal(t, "the saved outcomes", l.ids(), []string{"a"})
		b.Stop(t.Context())
	})
}

func TestARefusedOutcomeDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &store{fail: func(ids []string) error {
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
		relaytest.Equal(t, "the saved outcomes", l.ids(), []string{"a", "c"})
		relaytest.Equal(t, "unsaved outcomes", b.Unsaved(), 1)
		l.mu.Lock()
		l.fail = nil
		l.mu.Unlock()
		time.Sleep(refusedDelay)
		synctest.Wait()
		time.Sleep(time.Second)
		relaytest.Equal(t, "unsaved outcomes after the delay", b.Unsaved(), 0)
		b.Stop(t.Context())
	})
}

func TestStopReturnsTheNumberOfUnsavedOutcomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &store{fail: func([]string) error { return relay.Errorf(relay.KindUnavailable, "down") }}
		b := newWriter(l, refusedDelay)
		b.Add("a")
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		relaytest.Equal(t, "unsaved outcomes", b.Stop(ctx), 1)
	})
}

func TestARefusedOutcomeCanBeDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &store{fail: func([]string) error { return errors.New("refused") }}
		b := newWriter(l, 0)
		b.Add("bad")
		relaytest.Equal(t, "unsaved outcomes", b.Stop(t.Context()), 0)
		relaytest.Equal(t, "the number of saved outcomes", len(l.ids()), 0)
	})
}
