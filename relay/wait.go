package relay

import (
	"context"
	"time"
)

// Sleep waits for d. It returns false if ctx ends first.
func Sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Wait waits until done is closed or receives a value. It returns false if ctx ends first.
func Wait(ctx context.Context, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

// Notify sends to a channel of capacity 1 unless a notification is pending.
func Notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Backoff returns a delay that doubles with every failure, up to limit.
func Backoff(initial, limit time.Duration, failures int) time.Duration {
	delay := initial << min(max(failures, 0), 20)
	if delay < initial || delay > limit { // < initial: an overflow
		return limit
	}
	return delay
}
