package message

import (
	"context"
	"slices"
	"time"

	"github.com/penstock/penstock/relay/account"
)

// Store keeps messages for who sends them.
type Store interface {
	// Reserve takes n ids in a row for new entries and returns the first.
	Reserve(ctx context.Context, n int) (ID, error)

	// Save charges for a batch, saves its messages and queues them, all in one
	// atomic step. It returns relay.KindNoCredit, and changes nothing, if the
	// credit does not pay for all of it. A batch that was saved before, by the
	// first message's id, is left as it is and no error: what was not answered
	// may be repeated. See Once for what else may come of it.
	Save(ctx context.Context, b Batch) (Saved, error)

	// Get loads a message by its id; relay.KindNotFound if the account has none.
	Get(ctx context.Context, acct account.ID, id ID) (Message, error)

	// Pending lists the pending parts of an account by id, and how many there
	// are.
	Pending(ctx context.Context, acct account.ID, offset, limit int) ([]Entry, int, error)

	// Delete removes a pending part and refunds it in one step;
	// relay.KindNotFound if the account has no pending part of that id.
	Delete(ctx context.Context, acct account.ID, entry ID, now time.Time) error
}

// Batch is what one order saves.
type Batch struct {
	Account  account.ID
	Messages []Message
	// Lease is until when the caller has the messages in hand that are due now;
	// zero: whoever claims them first.
	Lease time.Time
	Now   time.Time
	Once  Once
}

// Credits is what the batch costs: one credit a part.
func (b *Batch) Credits() (n int64) {
	for i := range b.Messages {
		n += int64(len(b.Messages[i].Parts))
	}
	return n
}

// Once makes an order that is repeated under a key of the client's one order.
type Once struct {
	// Key is the client's, hashed; empty: every order counts.
	Key string
	// Order tells one order from another: with the same key and another order
	// Save returns relay.KindConflict.
	Order string
	// Answer is kept and handed out to those who repeat the order.
	Answer []byte
	// Keep is how long the key is known.
	Keep time.Duration
}

// Saved is what became of a batch.
type Saved struct {
	// Before is the Answer of the order that had the key first, if that was
	// another one: nothing was saved or charged now.
	Before []byte
}

// Dispatcher submits at once what was saved under a lease. What it cannot take
// now stays in the store and is claimed when the lease has run out. It does not
// block.
type Dispatcher interface{ Dispatch(ms []Message) }

// Work is the store for who hands messages to carriers.
type Work interface {
	// Claim leases messages of all accounts that are due, oldest first. A part
	// that is Sending was handed to its Carrier by somebody who did not live to
	// say what came of it. Reason and Report are left out.
	Claim(ctx context.Context, now, until time.Time, limit int) ([]Message, error)

	// Begin writes down that parts are about to be handed to a carrier, and
	// returns for each Start which of its parts may be: those that are still
	// Pending, or with Again also those that are Sending. A part that it does
	// not return was deleted, or somebody else has it.
	Begin(ctx context.Context, starts []Start) ([][]int, error)

	// Settle records what carriers said, each message's parts in one step, with
	// refunds. It returns the messages that want reports, as they stand then.
	Settle(ctx context.Context, outcomes []Outcome) ([]Message, error)

	// Renew moves the end of leases; Release gives leases back unused, the
	// messages are due at the given time. Messages of which nothing waits stay
	// as they are.
	Renew(ctx context.Context, refs []Ref, until time.Time) error
	Release(ctx context.Context, refs []Ref, due time.Time) error
}

// Start is parts of one message that are about to be handed to a carrier.
type Start struct {
	Ref
	Parts   []int // from 0
	Carrier string
	Now     time.Time
	Until   time.Time // the end of the lease from now on
	// Again takes parts that are Sending as well: for carriers that know a part
	// which they get twice.
	Again bool
}

// Outcome is what became of one part that was handed to a carrier.
type Outcome struct {
	PartRef
	// State is Accepted, Rejected or Unknown; or Pending, to be tried again at
	// Again. A state that cannot follow on what the part is meanwhile changes
	// nothing, but an Accepted part's Carrier and Ref are kept in any case.
	State   State
	Carrier string
	Ref     string // the carrier's id of it
	Reason  string
	Again   time.Time
	// Refund gives the credit back: for a Rejected part that no carrier has seen.
	Refund bool
	At     time.Time
}

// Receipts is the store for what the network reports.
type Receipts interface {
	// Bind keeps which part a carrier's ids name, and returns the receipts that
	// came for any of them before. Several ids of one binding are other ways to
	// write it.
	Bind(ctx context.Context, bindings []Binding) ([]Receipt, error)

	// Match finds the part of each receipt by the first of its ids that is known,
	// and sets its Part; the others count only where the number agrees, for they
	// may be the ids of other messages. One that is not known is kept until Bind,
	// for a day, and Found is false.
	Match(ctx context.Context, receipts []Receipt) ([]Receipt, error)

	// Receive records receipts of parts; those that are not Found are passed over.
	// It returns the messages that want reports, as they stand then.
	Receive(ctx context.Context, receipts []Receipt, now time.Time) ([]Message, error)
}

// Binding is the ids that a carrier gave a part.
type Binding struct {
	Carrier string
	IDs     []string
	Part    PartRef
	Number  string // the message's destination; empty agrees with all
}

// Receipt is what a network reports of a part.
type Receipt struct {
	Carrier string   `json:"carrier"`
	IDs     []string `json:"ids"` // ways to write the carrier's id, likeliest first
	State   State    `json:"state"`
	// Numbers are those that the receipt is from and to, one of them the
	// message's destination; none agrees with all.
	Numbers []string  `json:"numbers,omitempty"`
	Line    string    `json:"line,omitempty"` // %dlr
	At      time.Time `json:"at"`
	Part    PartRef   `json:"part,omitzero"`
	Found   bool      `json:"-"`
}

// Reports is the store for who tells accounts what became of their messages.
// Settle and Receive put a message with a Report on the list; it stays until
// Told, so that a crash loses no report.
type Reports interface {
	// Untold returns messages that wait since before a time, oldest first.
	Untold(ctx context.Context, before time.Time, limit int) ([]Message, error)
	// Told takes messages off the list, unless their Version has moved on.
	Told(ctx context.Context, ms []Message) error
	// Forget removes messages of which nothing waits any more, after the time
	// that they are kept.
	Forget(ctx context.Context, now time.Time) error
}

// Archive is the store for who looks through messages.
type Archive interface {
	// List returns messages of an account, newest first, and where to go on: 0 at
	// the end. It looks through a bounded number of messages, so that a page may
	// have fewer than the limit, or none, and yet not be the last.
	List(ctx context.Context, f Filter) (list []Message, next ID, err error)
	// Settle records what a person decides.
	Settle(ctx context.Context, outcomes []Outcome) ([]Message, error)
}

// Filter selects messages of an account; zero fields select all.
type Filter struct {
	Account account.ID // needed
	IDs     []ID
	State   State  // of any part
	Number  string // the whole originator or destination
	Before  ID     // those with a lower id
	Limit   int
}

// Selects reports whether a message is one of those.
func (f *Filter) Selects(m *Message) bool {
	if f.Number != "" && m.Originator != f.Number && m.Destination != f.Number {
		return false
	}
	return f.State == "" || slices.ContainsFunc(m.Parts, func(p Part) bool { return p.State == f.State })
}
