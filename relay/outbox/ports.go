package outbox

import (
	"context"
	"slices"
	"time"

	"github.com/penstock/penstock/relay"
)

// Store stores deliveries.
type Store interface {
	Creator

	// Get loads one delivery; relay.KindNotFound if there is none.
	Get(ctx context.Context, acct relay.AccountID, id string) (Delivery, error)

	// Finish records outcomes, each in one atomic step, in one round trip. An
	// outcome whose attempt (by its time) is recorded already changes nothing;
	// one for a delivery that ended meanwhile only adds its attempt. It returns
	// the deliveries whose turn has come; they are due now.
	Finish(ctx context.Context, os []Outcome) ([]Ref, error)

	// Parked returns the endpoints with deliveries that wait for breakers, in any order.
	Parked(ctx context.Context) ([]ParkedEndpoint, error)

	// CountParked counts the deliveries that wait for breakers, by endpoint. Unlike
	// Parked, it reads all of them.
	CountParked(ctx context.Context) (map[string]int, error)

	// Take leases up to n parked deliveries of an endpoint in the order of ParkedUntil:
	// those parked until before at most, or any if before is zero.
	Take(ctx context.Context, parked ParkedEndpoint, n int, before, until time.Time) ([]Delivery, error)

	// Lease takes the right to make the next attempt until the given time. It
	// answers false if the delivery has ended, is not due, or is leased.
	Lease(ctx context.Context, acct relay.AccountID, id string, now, until time.Time) (Delivery, bool, error)

	// LeaseDue leases those of the deliveries that are due, and returns them.
	LeaseDue(ctx context.Context, refs []Ref, now, until time.Time) ([]Delivery, error)

	// Renew moves the end of leases and returns the deliveries of which the caller
	// still has the lease. One that has ended, or that another process has taken
	// since, stays as it is.
	Renew(ctx context.Context, ls []Lease, until time.Time) ([]Ref, error)

	// Release gives leases back unused: the next attempt is due at the given
	// time. What is not leased stays as it is.
	Release(ctx context.Context, ls []Lease, due time.Time) error

	// Due returns deliveries whose next attempt or lease lies at or before the
	// given time, oldest first, over all accounts.
	Due(ctx context.Context, before time.Time, limit int) ([]Ref, error)

	// List returns deliveries, newest first, and the cursor of the next page
	// ("" at the end).
	List(ctx context.Context, f Filter) ([]Delivery, string, error)

	// Replay puts ended deliveries back to queued, due now, with Tries 0, and
	// returns those it changed. Dead ones only, unless includeDelivered.
	Replay(ctx context.Context, refs []Ref, now time.Time, includeDelivered bool) ([]Ref, error)

	// Counts returns how many deliveries there are by state.
	Counts(ctx context.Context) (map[State]int, error)
}

// Creator saves new deliveries; it is a part of Store.
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
