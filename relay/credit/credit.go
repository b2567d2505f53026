package credit

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay"
)

// Reason is why the credit changed.
type Reason string

// The reasons.
const (
	Opened Reason = "opened" // by the inventory that made the account
	Reset  Reason = "reset"  // by an inventory that was told to
	Lookup Reason = "lookup" // a network lookup that was answered
	Sent   Reason = "sent"   // the parts of an order
	Refund Reason = "refund" // a part that was not sent after all
)

// Change is what shall happen to an account's credit.
type Change struct {
	// ID makes the change one change; it is unique within the account.
	ID      string
	Account relay.AccountID
	// Credits is added; what is charged is negative.
	Credits int64
	Reason  Reason
	// Reference is what was paid for: a number, a message's id.
	Reference string
	At        time.Time
}

// Entry is a change as it happened.
type Entry struct {
	// Sequence counts an account's changes, from 1.
	Sequence  uint64
	ID        string
	At        time.Time
	Credits   int64 // what was added; negative for what was charged
	Balance   int64 // after it
	Reason    Reason
	Reference string
}

// Store keeps the credit of accounts.
type Store interface {
	// Balance returns the credits an account has; 0 for one that never had any.
	Balance(ctx context.Context, acct relay.AccountID) (int64, error)
	// Apply makes a change. It returns relay.KindNoCredit, and changes nothing, if
	// the balance would be below zero. A change whose id was applied within a
	// day returns the entry of that time.
	Apply(ctx context.Context, c Change) (Entry, error)
	// Open gives an account its first credit; an opened account is left unchanged.
	Open(ctx context.Context, acct relay.AccountID, credits int64, at time.Time) error
	// Set sets the balance, whatever it was.
	Set(ctx context.Context, acct relay.AccountID, credits int64, at time.Time) error
	// Entries lists changes, newest first, with sequences below before (0: all).
	// The newest 100,000 of an account are kept.
	Entries(ctx context.Context, acct relay.AccountID, before uint64, limit int) ([]Entry, error)
}
