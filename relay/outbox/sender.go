package outbox

import (
	"context"
	"time"
)

// Dispatcher makes first attempts at once. Deliveries that it cannot take now stay
// due in the store and are picked up from there.
type Dispatcher interface {
	Dispatch(ds []Delivery)
}

// Creator saves new deliveries. *Store implements it; tests of other domains note what is
// created.
type Creator interface {
	Create(ctx context.Context, ds []Delivery, leaseUntil time.Time) (created []Delivery, err error)
}

// Sender saves deliveries under a lease and has their first attempts made at once. If the
// process dies in between, they are attempted when the lease expires.
type Sender struct {
	Store      Creator
	Dispatcher Dispatcher
	// Lease is the time for which a new delivery is leased for its first attempt.
	Lease time.Duration
	Now   func() time.Time // nil means time.Now
}

// Send saves deliveries and dispatches those that are new. After an error the same
// deliveries may be sent again.
func (s Sender) Send(ctx context.Context, ds []Delivery) error {
	created, err := s.Store.Create(ctx, ds, s.LeaseUntil())
	if err != nil {
		return err
	}
	s.Dispatch(created)
	return nil
}

// Dispatch has the first attempts made of deliveries that were created under a lease until
// LeaseUntil, for example by the function Create in a transaction that has committed.
func (s Sender) Dispatch(created []Delivery) {
	if len(created) > 0 {
		s.Dispatcher.Dispatch(created)
	}
}

// LeaseUntil returns the end of the lease of deliveries that are created now.
func (s Sender) LeaseUntil() time.Time {
	if s.Now == nil {
		return time.Now().Add(s.Lease)
	}
	return s.Now().Add(s.Lease)
}
