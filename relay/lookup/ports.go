package lookup

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay"
)

// Backend queries the networks.
type Backend interface {
	// Find queries one number. A network that does not answer is a result of
	// NoAnswer; relay.KindUnavailable means that no query could be made.
	Find(ctx context.Context, number relay.MSISDN) (Result, error)
}

// Cache stores results.
type Cache interface {
	// Get returns a cached result; relay.KindNotFound if there is none.
	Get(ctx context.Context, number relay.MSISDN) (Result, error)
	Put(ctx context.Context, r Result, keep time.Duration) error
}
