package credit

import (
	"time"

	"github.com/penstock/penstock/relay"
)

// Reason is why the credit changed.
type Reason string

// The reasons.
const (
	Opened   Reason = "opened"   // with the account
	Reset    Reason = "reset"    // by an inventory that was told to
	Adjusted Reason = "adjusted" // by an admin, who gives the reference
	Lookup   Reason = "lookup"   // a network lookup that was answered
	Sent     Reason = "sent"     // the parts of an order
	Refund   Reason = "refund"   // a part that was not sent after all
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
