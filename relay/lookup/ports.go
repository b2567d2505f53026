package lookup

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay"
)

// Backend asks the networks.
type Backend interface {
	// Find asks for one number. A network that does not answer is a result of
	// NoAnswer; relay.KindUnavailable means that nobody could be asked.
	Find(ctx context.Context, number relay.MSISDN) (Result, error)
}

// Cache remembers what networks said.
type Cache interface {
	// Remembered returns a result that is kept; relay.KindNotFound if none is.
	Remembered(ctx context.Context, number relay.MSISDN) (Result, error)
	Remember(ctx context.Context, r Result, keep time.Duration) error
}
