package lease

import (
	"context"
	"time"
)

// Notify sends to a channel of capacity 1 unless a notification is pending.
func Notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Wait waits until done is closed or ctx ends.
func Wait(ctx context.Context, done <-chan struct{}) {
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// Every calls do each interval until ctx ends.
func Every(ctx context.Context, interval time.Duration, do func(context.Context)) {
	t := time.NewTicker(interval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			do(ctx)
		}
	}
}
