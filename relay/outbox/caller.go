package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock/penstock/relay/account"
)

// Caller sends events to accounts' callback URLs as deliveries: retried, signed
// and listed.
type Caller struct {
	// CallbackURL returns an account's callback URL, empty if it has none.
	CallbackURL func(ctx context.Context, acct account.ID) (string, error)
	Store       Store
	Dispatcher  Dispatcher
	// Lease is how long a new delivery is leased for its first attempt.
	Lease time.Duration
	Now   func() time.Time
}

// Notify saves an event for the account's callback, if it has one, and dispatches
// it. An event whose id was saved before is not sent again.
func (c Caller) Notify(ctx context.Context, acct account.ID, e Event) error {
	send, err := c.Prepare(ctx, acct, e)
	if err == nil && send != nil {
		send()
	}
	return err
}

// Prepare saves an event like Notify and returns the function that dispatches it,
// nil if there is nothing to send. If send is not called, the event is sent when
// the lease expires.
func (c Caller) Prepare(ctx context.Context, acct account.ID, e Event) (send func(), err error) {
	url, err := c.CallbackURL(ctx, acct)
	if err != nil || url == "" {
		return nil, err
	}
	d, err := Callback(acct, url, e)
	if err != nil {
		return nil, err
	}
	ds := []Delivery{d}
	known, err := c.Store.Create(ctx, ds, c.Now().Add(c.Lease))
	if err != nil {
		return nil, fmt.Errorf("event %s: %w", e.ID, err)
	}
	if len(known) > 0 {
		return nil, nil
	}
	return func() { c.Dispatcher.Dispatch(ds) }, nil
}
