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

// store stores outcomes. Its calls fail if fail returns an error.
type store struct {
	mu    sync.Mutex
	fail  func(ids []string) error
	saved []string
	calls int
}

func (s *store) save(_ context.Context, ids []string) (result struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.fail != nil {
		if err := s.fail(ids); err != nil {
			return result, err
		}
	}
	s.saved = append(s.saved, ids...)
	return result, nil
}

// ids returns the saved outcomes.
func (s *store) ids() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.saved)
}

// refusedDelay is the delay until a refused outcome is saved again.
const refusedDelay = 10 * time.Second

// newWriter returns a started writer of ids. It saves refused ids again after retryDelay, or
// drops them if retryDelay is 0.
func newWriter(s *store, retryDelay time.Duration) *Writer[string, struct{}] {
	w := NewWriter(WriterOptions[string, struct{}]{
		Save: s.save, OnSaved: func([]string, struct{}) {}, OnRefused: func(*string, error) time.Duration { return retryDelay },
		Batch: 256, Log: slog.New(slog.DiscardHandler),
	})
	w.Start()
	return w
}

func TestOutcomesAreSavedInOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		w := newWriter(s, refusedDelay)
		for _, id := range []string{"a", "b", "c"} {
			w.Add(id)
		}
		relaytest.Equal(t, "unsaved outcomes", w.Unsaved(), 3)
		relaytest.Equal(t, "unsaved outcomes after Stop", w.Stop(t.Context()), 0)
		relaytest.Equal(t, "the number of calls", s.calls, 1)
		relaytest.Equal(t, "the saved outcomes", s.ids(), []string{"a", "b", "c"})
	})
}

func TestOutcomesAreSavedWhenTheStoreIsUpAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		upAt := time.Now().Add(10 * time.Second)
		s := &store{fail: func([]string) error {
			if time.Now().Before(upAt) {
				return relay.Errorf(relay.KindUnavailable, "down")
			}
			return nil
		}}
		w := newWriter(s, refusedDelay)
		w.Add("a")
		time.Sleep(9 * time.Second)
		relaytest.Equal(t, "unsaved outcomes while the store is down", w.Unsaved(), 1)
		time.Sleep(3 * time.Second)
		relaytest.Equal(t, "unsaved outcomes after the store is up", w.Unsaved(), 0)
		relaytest.Equal(t, "the saved outcomes", s.ids(), []string{"a"})
		w.Stop(t.Context())
	})
}

func TestARefusedOutcomeDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{fail: func(ids []string) error {
			if slices.Contains(ids, "bad") {
				return errors.New("refused")
			}
			return nil
		}}
		w := newWriter(s, refusedDelay)
		for _, id := range []string{"a", "bad", "c"} {
			w.Add(id)
		}
		time.Sleep(time.Second)
		relaytest.Equal(t, "the saved outcomes", s.ids(), []string{"a", "c"})
		relaytest.Equal(t, "unsaved outcomes", w.Unsaved(), 1)
		s.mu.Lock()
		s.fail = nil
		s.mu.Unlock()
		time.Sleep(refusedDelay)
		synctest.Wait()
		time.Sleep(time.Second)
		relaytest.Equal(t, "unsaved outcomes after the delay", w.Unsaved(), 0)
		w.Stop(t.Context())
	})
}

func TestStopReturnsTheNumberOfUnsavedOutcomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{fail: func([]string) error { return relay.Errorf(relay.KindUnavailable, "down") }}
		w := newWriter(s, refusedDelay)
		w.Add("a")
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		relaytest.Equal(t, "unsaved outcomes", w.Stop(ctx), 1)
	})
}

func TestARefusedOutcomeCanBeDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{fail: func([]string) error { return errors.New("refused") }}
		w := newWriter(s, 0)
		w.Add("bad")
		relaytest.Equal(t, "unsaved outcomes", w.Stop(t.Context()), 0)
		relaytest.Equal(t, "the number of saved outcomes", len(s.ids()), 0)
	})
}
