package timer

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/cache"
	"github.com/penstock/penstock/relay/cache/redistest"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestDelaysOfErrorsThatAreNotOursAreASecond(t *testing.T) {
	for err, want := range map[error]time.Duration{
		Again(90 * time.Second): 90 * time.Second, Again(-time.Second): 0, errors.New("lease expired"): time.Second,
	} {
		if got := retryDelay(3, err, nil); got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
}

func TestRecordsAreHandledUntilTheyNeedNoMore(t *testing.T) {
	redis, err := cache.Open(cache.Options{URL: redistest.Shared(t).NewDatabase(t)})
	relaytest.NoError(t, err)
	t.Cleanup(func() { _ = redis.Close() })
	timer := New(Options{
		Redis: redis, Queue: "test", Task: "test", Concurrency: 2, Poll: 10 * time.Millisecond,
		Longest: time.Second, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	var mu sync.Mutex
	calls := make(map[Ref]int)
	calledTwice := make(chan struct{})
	if err := timer.Start(func(_ context.Context, ref Ref) error {
		mu.Lock()
		defer mu.Unlock()
		if calls[ref]++; calls[ref] == 1 {
			return Again(0)
		}
		close(calledTwice)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { timer.Shutdown(); _ = timer.Close() })
	later := Ref{Account: 7, ID: "later"}
	for i, existed := range []bool{false, true} {
		if got, err := timer.Schedule(t.Context(), later, time.Now().Add(time.Hour)); err != nil || got != existed {
			t.Errorf("call %d: the task existed: %v, error %v", i, got, err)
		}
	}
	if existed, err := timer.Schedule(t.Context(), Ref{Account: 7, ID: "now"}, time.Time{}); err != nil || existed {
		t.Errorf("the task existed: %v, error %v", existed, err)
	}
	select {
	case <-calledTwice:
	case <-time.After(relaytest.Patience):
		t.Fatal("not called again")
	}
	mu.Lock()
	defer mu.Unlock()
	if calls[later] != 0 {
		t.Error("called an hour early")
	}
}
