package sims

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay"
)

// Reads of long lists are limited, so that other queries find a connection.
const (
	maxConcurrentReads = 2
	maxWait            = 5 * time.Second // requests have no deadline of their own
)

// readLimit is the concurrency limit for reads of long lists.
type readLimit chan struct{}

// acquire waits for a permit, at most maxWait.
func (l readLimit) acquire(ctx context.Context) (release func(), err error) {
	timer := time.NewTimer(maxWait)
	defer timer.Stop()
	select {
	case l <- struct{}{}:
		return func() { <-l }, nil
	case <-timer.C:
		return nil, relay.Errorf(relay.KindUnavailable, "list: too many long lists are being read")
	case <-ctx.Done():
		return nil, relay.Errorf(relay.KindUnavailable, "list: %w", ctx.Err())
	}
}
