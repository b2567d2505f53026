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

func TestRetryDelayOfOtherErrorsIsASecond(t *testing.T) {
	for err, want := range map[error]time.Duration{
		RetryAfter(90 * time.Second): 90 * time.Second, RetryAfter(-time.Second): 0, errors.New("lease expired"): time.Second,
	} {
		if got := retryDelay(3, err, nil); got != want {
			t.Errorf("%v: got %s, want %s", err, got, want)
		}
	}
}

func TestTheHandlerIsCalledUntilItReturnsNil(t *testing.T) {
	redis, err := cache.Open(cache.Options{URL: redistest.Shared(t).NewDatabase(t)})
	relaytest.NoError(t, err)
	t.Cleanup(func() { _ = redis.Close() })
	timer := New(Options{
		Redis: redis, Queue: "test", Task: "test", Concurrency: 2, Poll: 10 * time.Millisecond,
		MaxDuration: time.Second, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	var mu sync.Mutex
	calls := make(map[Ref]int)
	calledTwice := make(chan struct{})
	if err := timer.Start(func(_ context.Context, ref Ref) error {
		mu.Lock()
		defer mu.Unlock()
		if calls[ref]++; calls[ref] == 1 {
			return RetryAfter(0)
		}
		close(calledTwice)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { timer.Shutdown(); _ = timer.Close() })
	futureRef := Ref{Account: 7, ID: "later"}
	for i, existed := range []bool{false, true} {
		if got, err := timer.Schedule(t.Context(), futureRef, time.Now().Add(time.Hour)); err != nil || got != existed {
			t.Errorf("call %d: existed = %v, error %v, want %v", i, got, err, existed)
		}
	}
	if existed, err := timer.Schedule(t.Context(), Ref{Account: 7, ID: "now"}, time.Time{}); err != nil || existed {
		t.Errorf("existed = %v, error %v, want a new task", existed, err)
	}
	select {
	case <-calledTwice:
	case <-time.After(relaytest.Patience):
		t.Fatal("the handler was not called a second time")
	}
	mu.Lock()
	defer mu.Unlock()
	if calls[futureRef] != 0 {
		t.Error("the handler was called an hour early")
	}
}
