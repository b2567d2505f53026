package rule

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/outbox"
)

// Transactions are the changes that a Store makes in one transaction each. Tests let them fail.
type Transactions interface {
	Decide(ctx context.Context, acct relay.AccountID, pairs []Pair, until time.Time, decide func([]PairState) (Decision, error)) ([]outbox.Delivery, error)
	Collect(ctx context.Context, acct relay.AccountID, items []Item) (full []BatchRef, err error)
	TakeBatch(ctx context.Context, ref BatchRef, b Batch, now, until time.Time, send func([]Occurrence) ([]outbox.Delivery, error)) (created []outbox.Delivery, hasMore bool, err error)
}

// Pair is a rule and a device.
type Pair struct{ RuleID, DeviceID string }

// Owned is a record with its account.
type Owned[T any] struct {
	Account relay.AccountID
	Of      T
}

// PairState is the state of a rule for a device.
type PairState struct {
	Pair
	// AlarmID is the alarm that is raised, empty for none, since RaisedAt.
	AlarmID  string
	RaisedAt time.Time
	// Since is when the condition began to hold of a rule that waits for it to hold
	// for some time, zero otherwise; Began is the frame.
	Since time.Time
	Began *Occurrence
	// At is when the frame that changed this last was heard, FrameAt its own time and
	// Record its journal record. A frame that is not later was evaluated before.
	At, FrameAt time.Time
	Record      string
	// Repeats counts the runs of the raised alarm's actions after the first; RanAt is
	// the time of the last.
	Repeats int
	RanAt   time.Time
	// Due is when the state is evaluated without a frame, zero for never.
	Due time.Time
}

// Decision has the changes of states.
type Decision struct {
	States     []PairState // those that change
	Raised     []Alarm
	Cleared    []Alarm // by id; ClearedAt is set
	Deliveries []outbox.Delivery
	// Watch are devices whose silence is checked again.
	Watch []string
}

// Watch is when a device may be silent.
type Watch struct {
	Account  relay.AccountID
	DeviceID string
	Due      time.Time
}

// Enrolment is an account whose devices have to be watched; After is where its list
// of devices goes on.
type Enrolment struct {
	Account relay.AccountID
	After   string
}

// Item is a frame that a rule has collected for a batch; its Occurrence has no Rule.
type Item struct {
	RuleID     string
	Occurrence Occurrence
	Batch      Batch
	At         time.Time // when it came to the batch
}

// BatchRef names the batch of a rule.
type BatchRef struct {
	Account relay.AccountID
	RuleID  string
}

// Failed counts frames at which a rule failed.
type Failed struct {
	Account relay.AccountID
	RuleID  string
	Failures
}

// Ref is the place of a rule in a list over accounts; the zero Ref is before the first.
type Ref struct {
	Account   relay.AccountID
	CreatedAt time.Time
	ID        string
}

// AlarmFilter selects alarms of an account; the zero value selects all.
type AlarmFilter struct {
	State            State
	RuleID, DeviceID string
	From, To         time.Time // of RaisedAt, inclusive
	// Limit is the most alarms to return; Cursor is where to go on: the one that
	// the page before returned.
	Limit  int
	Cursor string
}
