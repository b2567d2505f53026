package message

import (
	"context"
	"slices"
	"time"

	"github.com/penstock/penstock/relay"
)

// orderStore stores orders; Store implements it, and tests lose the answer to a save.
type orderStore interface {
	// Reserve takes n ids in a row for new entries and returns the first.
	Reserve(ctx context.Context, n int) (ID, error)

	// Save charges for a batch, saves its messages and queues them, all in one
	// atomic step. It returns relay.KindNoCredit, and changes nothing, if the
	// credit does not pay for all of it. A batch whose messages
	// exist already is left unchanged, without an error, so that a save without an
	// answer may be repeated. See Once for repeated orders.
	Save(ctx context.Context, b Batch) (Saved, error)

	// Get loads a message by its id; relay.KindNotFound if the account has none.
	Get(ctx context.Context, acct relay.AccountID, id ID) (Message, error)

	// Pending lists the pending parts of an account by id, and how many there
	// are.
	Pending(ctx context.Context, acct relay.AccountID, offset, limit int) ([]Entry, int, error)

	// Delete removes a pending part and refunds it in one step;
	// relay.KindNotFound if the account has no pending part of that id.
	Delete(ctx context.Context, acct relay.AccountID, entry ID, now time.Time) error
}

// Batch is the records of one order.
type Batch struct {
	Account  relay.AccountID
	Messages []Message
	// Lease is the end of the caller's lease on the messages that are due now; zero
	// leaves them to the first LeaseDue.
	Lease time.Time
	Now   time.Time
	Once  Once
}

// Credits is the cost of the batch: one credit per part.
func (b *Batch) Credits() (n int64) {
	for i := range b.Messages {
		n += int64(len(b.Messages[i].Parts))
	}
	return n
}

// Once is the idempotency key of an order.
type Once struct {
	// Key is the hash of the client's key; empty disables it.
	Key string
	// Order is the hash of the order: for a known key with another order Save
	// returns relay.KindConflict.
	Order string
	// Answer is stored and returned when the order is repeated.
	Answer []byte
	// Keep is how long the key is stored.
	Keep time.Duration
}

// Saved is the result of saving a batch.
type Saved struct {
	// Before is the Answer of an earlier order with the same key; if it is set,
	// nothing was saved or charged now.
	Before []byte
}

// Carriers returns the capabilities of the carrier that a number's messages are
// sent over.
type Carriers interface {
	// FitsSevenBit reports whether the carrier encodes a text of the GSM alphabet in 7
	// bits; otherwise the text is sent as UCS-2.
	FitsSevenBit(number, text string) bool
	// AcceptsOriginator reports whether the carrier passes on a valid originator.
	AcceptsOriginator(number, originator string) bool
}

// Dispatcher submits messages that were saved under a lease until end. It does not block:
// messages beyond its capacity are released and leased again by the next poll.
type Dispatcher interface {
	Dispatch(ms []Message, end time.Time)
}

// Lease is the right to submit a message's pending parts.
type Lease = relay.Lease[Ref]

// Start is parts of one message that are about to be submitted to a carrier.
type Start struct {
	Ref
	Parts   []int // from 0
	Carrier string
	Now     time.Time
	Until   time.Time // the end of the lease from now on
	// Again includes parts that are Sending: for carriers that recognise a repeated
	// part.
	Again bool
}

// Outcome is the result of submitting one part.
type Outcome struct {
	PartRef
	// State is Accepted, Rejected or Unknown; or Pending for a retry at Again. A
	// state that cannot follow the part's current state changes nothing, but the
	// Carrier and CarrierID of an Accepted part are saved in any case.
	State     State
	Carrier   string
	CarrierID string // the carrier's id of the part
	Reason    string
	Again     time.Time
	// Resent records At as the part's ResentAt.
	Resent bool
	// Refund returns the credit: for a Rejected part that no carrier has accepted.
	Refund bool
	At     time.Time
}

// receiptStore stores receipts; Store implements it.
type receiptStore interface {
	// Bind saves which parts carriers' ids name and returns the receipts that
	// arrived for any of them before: those that are Found, and those that are Held.
	// Several ids of one binding are notations of one id. An id that is bound again
	// names both parts.
	Bind(ctx context.Context, bindings []Binding) ([]Receipt, error)

	// Match finds the part of each receipt by the first of its ids that is known,
	// and sets its Part. Where an id names several parts, the last whose number
	// agrees counts. The first id also counts where no number agrees, unless the
	// receipt names another. An id in another base counts for a part that has not
	// ended, whose message was sent to the receipt's number from its originator. While
	// another such part waits for its answer, the receipt is Held, and the caller
	// matches it again later. A receipt about no part that is known is kept until
	// Bind, for a day, and Found is false.
	Match(ctx context.Context, receipts []Receipt) ([]Receipt, error)

	// Receive records receipts of parts and skips those that are not Found. It
	// returns the messages to report, in their new states.
	Receive(ctx context.Context, receipts []Receipt, now time.Time) ([]Message, error)
}

// Binding is the ids that a carrier gave a part.
type Binding struct {
	Carrier string
	IDs     []string
	Part    PartRef
	Number  string // the message's destination; empty agrees with all
}

// Receipt is a network's report about a part.
type Receipt struct {
	Carrier string `json:"carrier"`
	// IDs are the carrier's id and our reference. The carrier's id is first.
	IDs []string `json:"ids"`
	// OtherBases are the ids with the same value in another base. They may be the ids of
	// other messages.
	OtherBases []string `json:"other_bases,omitempty"`
	State      State    `json:"state"`
	// Numbers are those that the receipt is from and to, one of them the
	// message's destination; none agrees with all.
	Numbers []string `json:"numbers,omitempty"`
	// Destination is the one of Numbers that the protocol says is the message's
	// destination; empty if it says none.
	Destination string `json:"names,omitempty"`
	// Addresses are those that the receipt is from and to, as they are written. One of
	// two is the message's originator.
	Addresses []string `json:"addresses,omitempty"`
	// Event is the event of the receipt's arrival.
	Event string    `json:"event,omitempty"`
	Line  string    `json:"line,omitempty"` // %dlr
	At    time.Time `json:"at"`
	Part  PartRef   `json:"part,omitzero"`
	Found bool      `json:"-"`
	// Held means that the receipt matches a part by another base, but may belong to a part
	// that is not answered yet.
	Held bool `json:"-"`
}

// reportStore stores which messages have unreported changes. Settle and Receive add
// a message with a Report to the list; it stays there until MarkReported, so that
// a crash loses no report.
type reportStore interface {
	// Unreported returns messages that are listed since before a time, oldest
	// first.
	Unreported(ctx context.Context, before time.Time, limit int) ([]Message, error)
	// MarkReported removes messages from the list unless their Version has
	// changed.
	MarkReported(ctx context.Context, ms []Message) error
	// Forget deletes the messages of which no part has waited to be sent for the
	// retention, also accepted and unknown ones.
	Forget(ctx context.Context, now time.Time) error
}

// archive is the store for searches by operators; Store implements it.
type archive interface {
	// List returns messages of an account, newest first, and the cursor of the
	// next page, 0 at the end. It examines a bounded number of messages, so that a
	// page may have fewer than the limit, or none, without being the last.
	List(ctx context.Context, f Filter) (list []Message, next ID, err error)
	// Settle records an operator's decision.
	Settle(ctx context.Context, outcomes []Outcome) ([]Message, error)
}

// Filter selects messages of an account; zero fields select all.
type Filter struct {
	Account relay.AccountID // needed
	IDs     []ID
	State   State  // of any part
	Number  string // the whole originator or destination
	Before  ID     // those with a lower id
	Limit   int
}

// Selects reports whether the filter selects a message.
func (f *Filter) Selects(m *Message) bool {
	if f.Number != "" && m.Originator != f.Number && m.Destination != f.Number {
		return false
	}
	return f.State == "" || slices.ContainsFunc(m.Parts, func(p Part) bool { return p.State == f.State })
}
