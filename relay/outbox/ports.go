package outbox

import (
	"context"
	"slices"
	"time"

	"github.com/penstock/penstock/relay"
)

// Creator saves new deliveries; *Store implements it.
type Creator interface {
	// Create saves deliveries that are new, queued and leased until leaseUntil:
	// the caller makes the first attempt at once. It sets each one's State and
	// NextAttemptAt to that. A delivery that has to wait for its turn gets no lease:
	// its Waits is set, and Dispatch passes over it. One whose id exists already is
	// unchanged and reported with its index in existing. After an error the same
	// deliveries may be created again.
	Create(ctx context.Context, ds []Delivery, leaseUntil time.Time) (existing []int, err error)
}

// Send saves deliveries under a lease until a time, and dispatches those that are new.
func Send(ctx context.Context, to Creator, d Dispatcher, ds []Delivery, leaseUntil time.Time) error {
	existing, err := to.Create(ctx, ds, leaseUntil)
	if err != nil {
		return err
	}
	fresh := make([]Delivery, 0, len(ds))
	for i := range ds {
		if !slices.Contains(existing, i) {
			fresh = append(fresh, ds[i])
		}
	}
	if len(fresh) > 0 {
		d.Dispatch(fresh)
	}
	return nil
}

// Ref names a delivery.
type Ref struct {
	Account relay.AccountID
	ID      string
}

// Lease is the right to make the next attempt of a delivery.
type Lease = relay.Lease[Ref]

// Filter selects deliveries; zero fields select all.
type Filter struct {
	IDs     []string
	State   State
	Account relay.AccountID
	Kind    Kind
	Relay   string
	Waits   Wait
	Number  string // the whole originator or destination
	Target  string // a part of the target, case-insensitive
	Reason  string // a part of the reason, case-insensitive
	From    time.Time
	To      time.Time
	Query   string // a part of id, message id, target, reason or text
	Limit   int
	Cursor  string
}

// Breakers stores the open breakers, for all gateways and across restarts.
type Breakers interface {
	Open(ctx context.Context, b Breaker) error // also a change to one that is open
	Close(ctx context.Context, endpoint string) error
	List(ctx context.Context) ([]Breaker, error) // by time of opening
	// Lost reports whether the store may have lost breakers since Restored.
	Lost(ctx context.Context) (bool, error)
	// Restored records that the store has all open breakers again.
	Restored(ctx context.Context) error
}

// Dispatcher makes first attempts at once; deliveries that it cannot take now stay
// due in the store and are picked up from there.
type Dispatcher interface {
	Dispatch(ds []Delivery)
}
