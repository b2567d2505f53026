package sims

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay"
)

// What reads long lists does so a few at a time, so that others find a connection.
const (
	maxTurns  = 2
	maxQueued = 5 * time.Second // requests have no deadline of their own
)

// turns bounds how many long lists are read at one time.
type turns chan struct{}

// take waits for a turn.
func (t turns) take(ctx context.Context) (end func(), err error) {
	timer := time.NewTimer(maxQueued)
	defer timer.Stop()
	select {
	case t <- struct{}{}:
		return func() { <-t }, nil
	case <-timer.C:
		return nil, relay.Errorf(relay.KindUnavailable, "list: too many long lists are being read")
	case <-ctx.Done():
		return nil, relay.Errorf(relay.KindUnavailable, "list: %w", ctx.Err())
	}
}
