package rule

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/outbox"
)

// Store keeps rules, their states for devices, and alarms. Everything
// is looked up through its account; another account's record is not found.
type Store interface {
	// Create saves a rule; relay.KindConflict if its id exists.
	Create(ctx context.Context, acct relay.AccountID, r Rule) error
	// Change saves what change makes of a rule. After a concurrent update, change is
	// called again. It returns relay.KindNotFound if there is no such rule, and the
	// error of change. If forget says that the rule is another one now, its
	// states are dropped and its alarms cleared.
	Change(ctx context.Context, acct relay.AccountID, id string, change func(*Rule) error, forget func(was, is Rule) bool, now time.Time) (Rule, error)
	// Delete deletes a rule with its states, clears its alarms and drops what it
	// has collected for a batch.
	Delete(ctx context.Context, acct relay.AccountID, id string, now time.Time) error
	Rule(ctx context.Context, acct relay.AccountID, id string) (Rule, error)
	// Rules lists an account's rules in order of creation.
	Rules(ctx context.Context, acct relay.AccountID) ([]Rule, error)
	// FindRules returns rules of an account, 0 for all, after one, by account and
	// creation.
	FindRules(ctx context.Context, acct relay.AccountID, after Ref, limit int) ([]Owned[Rule], error)
	CountRules(ctx context.Context, acct relay.AccountID) (int, error)
	// Fail adds failures of expressions to those of rules.
	Fail(ctx context.Context, all []Failed) error

	// PairStates returns the states of an account's rules for devices; most pairs have
	// none.
	PairStates(ctx context.Context, acct relay.AccountID, deviceIDs []string) ([]PairState, error)
	// Decide locks the states of pairs of a rule and a device, asks decide for the new
	// ones, and saves the decision in one transaction. It returns the deliveries that
	// are new, leased until the given time. decide may be called more than once.
	Decide(ctx context.Context, acct relay.AccountID, pairs []Pair, until time.Time, decide func([]PairState) (Decision, error)) ([]outbox.Delivery, error)

	// Alarms lists alarms of an account, 0 for all, newest first, and the cursor of
	// the next page, empty at the end.
	Alarms(ctx context.Context, acct relay.AccountID, f AlarmFilter) ([]Owned[Alarm], string, error)
	Alarm(ctx context.Context, acct relay.AccountID, id string) (Alarm, error)
	ChangeAlarm(ctx context.Context, acct relay.AccountID, id string, change func(*Alarm) error) (Alarm, error)
	// OfRecord returns the alarms that a frame raised or cleared.
	OfRecord(ctx context.Context, acct relay.AccountID, deviceID, record string) ([]Alarm, error)

	// LeaseDue takes states whose Due has come, the oldest first, and moves it to
	// the given time: until then no other gateway takes them.
	LeaseDue(ctx context.Context, now, until time.Time, most int) ([]Owned[PairState], error)

	// LeaseWatches does the same with devices that may be silent.
	LeaseWatches(ctx context.Context, now, until time.Time, most int) ([]Watch, error)
	// MoveWatches sets when devices may be silent next, zero: not as long as nothing
	// of them changes. A watch that has changed since it was leased stays.
	MoveWatches(ctx context.Context, leased time.Time, to []Watch) error
	// LeaseEnrolments takes accounts whose devices have to be watched, since a rule
	// for silent devices is new.
	LeaseEnrolments(ctx context.Context, now, until time.Time) ([]Enrolment, error)
	// Enrol watches the next devices of an account that was leased until a time, and reports whether there are more.
	Enrol(ctx context.Context, e *Enrolment, now, leased time.Time, most int) (more bool, err error)

	// Collect adds frames to the batches of rules; those that are there already are
	// left as they are. It returns the batches that are full.
	Collect(ctx context.Context, acct relay.AccountID, items []Item) (full []BatchRef, err error)
	// DueBatches returns batches whose first frame has waited long enough.
	DueBatches(ctx context.Context, now time.Time, most int) ([]BatchRef, error)
	// TakeBatch takes the oldest frames of a batch, at most so many, if there are that
	// many or its time has come, asks send for their deliveries and saves both in one
	// transaction. It returns the deliveries that are new, and whether frames are left
	// that fill another batch.
	TakeBatch(ctx context.Context, ref BatchRef, b Batch, now, until time.Time, send func([]Occurrence) ([]outbox.Delivery, error)) (created []outbox.Delivery, more bool, err error)
}

// Fleet returns devices and their readings; *iot.Service is one.
type Fleet interface {
	Device(ctx context.Context, acct relay.AccountID, id string) (iot.Device, error)
	// DevicesByID returns those of the devices that are there.
	DevicesByID(ctx context.Context, acct relay.AccountID, ids []string) (map[string]iot.Device, error)
	// HeardLast returns when the devices were heard last, by id; zero for never.
	// With sure, the reading store is asked, and relay.KindUnavailable returned if it
	// does not answer.
	HeardLast(ctx context.Context, acct relay.AccountID, ids []string, sure bool) (map[string]time.Time, error)
	// Points returns readings of a device, newest first.
	Points(ctx context.Context, acct relay.AccountID, deviceID string, from, to time.Time, limit int) ([]iot.Point, error)
	Frames(ctx context.Context, acct relay.AccountID, deviceID string) ([]iot.RawFrame, error)
	Decoders(ctx context.Context, acct relay.AccountID) ([]iot.Decoder, error)
	Locations(ctx context.Context, acct relay.AccountID) ([]iot.Location, error)
	SensorTypes(ctx context.Context) (map[string]iot.SensorType, error)
	// Version changes with the rules and devices of an account.
	Version(ctx context.Context, acct relay.AccountID) (iot.Version, error)
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
