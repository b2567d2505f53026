package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock/penstock/relay/account"
)

// Caller brings events to accounts' callback URLs, as deliveries like any other:
// retried, signed, listed.
type Caller struct {
	// CallbackURL returns an account's; empty if it has none.
	CallbackURL func(ctx context.Context, acct account.ID) (string, error)
	Store       Store
	Dispatcher  Dispatcher
	// Lease is how long a new delivery is leased for its first attempt.
	Lease time.Duration
	Now   func() time.Time
}

// Tell saves an event for the account's callback, if it has one, and has it sent.
// An event whose id was told before is not told again.
func (c Caller) Tell(ctx context.Context, acct account.ID, e Event) error {
	send, err := c.Prepare(ctx, acct, e)
	if err == nil && send != nil {
		send()
	}
	return err
}

// Prepare saves an event like Tell and leaves the sending to who calls send, which
// is nil if there is nothing to send. What is not sent within the lease is sent
// without.
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
