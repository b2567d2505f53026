package credit

import (
	"time"

	"github.com/penstock/penstock/relay"
)

// Reason is the reason why the credit changed.
type Reason string

// The reasons.
const (
	Opened   Reason = "opened"   // with the account
	Reset    Reason = "reset"    // by an inventory that was applied with reset=credit
	Adjusted Reason = "adjusted" // by an admin, who gives the reference
	Lookup   Reason = "lookup"   // a network lookup that was answered
	Sent     Reason = "sent"     // the parts of an order
	Refund   Reason = "refund"   // a part that was deleted or that no carrier has accepted
)

// Change is a requested change of an account's credit.
type Change struct {
	// ID is unique within the account.
	ID      string
	Account relay.AccountID
	Credits int64 // added; negative for a charge
	Reason  Reason
	// Reference names the paid object: a number, a message's id.
	Reference string
	At        time.Time
}

// Entry is a change as it was made.
type Entry struct {
	// Sequence counts an account's changes, from 1.
	Sequence  uint64
	ID        string
	At        time.Time
	Credits   int64 // added; negative for a charge
	Balance   int64 // after the change
	Reason    Reason
	Reference string
}
