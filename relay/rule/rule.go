package rule

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/tracing"
)

// Trigger is the kind of event that a rule evaluates.
type Trigger string

// The triggers.
const (
	OnReading Trigger = "reading" // the readings of an uplink
	OnSilent  Trigger = "silent"  // the device has sent nothing for Rule.SilentFor
	OnEvent   Trigger = "event"   // a join, a status or another event of a device
)

// Rule performs actions on the frames of devices of an account.
type Rule struct {
	ID      string  `json:"id"`
	Name    string  `json:"name"`
	Enabled bool    `json:"enabled"`
	On      Trigger `json:"on"`
	Devices Devices `json:"devices,omitzero"`
	// When is the condition under which an alarm is raised; without one, every
	// frame is forwarded. Clear is the condition under which it is cleared; without
	// one, when When no longer holds. Both are expressions.
	When  string `json:"when,omitempty"`
	Clear string `json:"clear,omitempty"`
	// For is the time for which When must hold before the alarm is raised.
	For time.Duration `json:"for,omitempty"`
	// SilentFor is the time for which a device may send nothing, with OnSilent.
	SilentFor time.Duration `json:"silent_for,omitempty"`
	Repeat    Repeat        `json:"repeat,omitzero"`
	// Batch collects what a rule without When forwards.
	Batch Batch `json:"batch,omitzero"`
	// Ordered delivers to each endpoint in the order of the frames.
	Ordered   bool      `json:"ordered,omitempty"`
	Actions   []Action  `json:"actions"`
	CreatedAt time.Time `json:"created_at,omitzero"`
	UpdatedAt time.Time `json:"updated_at,omitzero"`
	// Failures are kept apart and looked up with the rule.
	Failures Failures `json:"-"`
	// Unopened means that the record does not open: only the id, the time of creation and the
	// failures are known. It does not examine frames.
	Unopened bool `json:"-"`
}

// Failures counts the frames at which an expression of a rule failed, which then does not
// fire, and those of which some actions were not performed because of a limit, since the
// rule was changed last.
type Failures struct {
	Count  int64     `json:"count"`
	LastAt time.Time `json:"last_at,omitzero"`
	Last   string    `json:"last,omitempty"` // the reason
}

// Devices selects devices of the account; the zero value selects all. A device
// must meet every field that is set.
type Devices struct {
	DecoderID  string   `json:"decoder_id,omitempty"`
	LocationID string   `json:"location_id,omitempty"`
	IDs        []string `json:"ids,omitempty"`
	Name       string   `json:"name,omitempty"` // a pattern: * stands for any characters
}

// Repeat controls whether the actions of a raised alarm run again while its condition holds:
// never (the zero value), with each frame, or at most every so often.
type Repeat struct {
	Always bool          `json:"always,omitempty"`
	Every  time.Duration `json:"every,omitempty"`
}

// Batch collects forwarded frames into one request: until there are Count, or the first has
// waited for Every. The zero value forwards each by itself.
type Batch struct {
	Count int           `json:"count,omitempty"`
	Every time.Duration `json:"every,omitempty"`
}

// The actions.
const (
	HTTPPost = "http_post"
	HTTPGet  = "http_get"
	Email    = "email"
	SMS      = "sms"
)

// Action is an action of a rule that fires.
type Action struct {
	Action string `json:"action"`
	// Parameters are URLs, e-mail addresses or numbers; each gets a delivery.
	Parameters []string `json:"parameters"`
	// Body is an expression; its result, as JSON, is the body of http_post and the
	// text of email and sms.
	Body string `json:"body,omitempty"`
	// Originator is the originator of an sms; empty means the account's default.
	Originator string `json:"originator,omitempty"`
}

// State is the state of a rule for a device, or the outcome for one frame.
type State string

// The states. An alarm is raised or cleared; a frame may also be forwarded.
const (
	Raised    State = "raised"
	Cleared   State = "cleared"
	Forwarded State = "forwarded"
)

// Alarm is a rule's condition that held for a device.
type Alarm struct {
	ID       string `json:"id"`
	RuleID   string `json:"rule_id"`
	DeviceID string `json:"device_id"`
	State    State  `json:"state"`
	// RaisedAt is the time of the frame, or of the end of the wait, that raised it, ClearedAt that of the one
	// that cleared it, zero while it is raised.
	RaisedAt  time.Time `json:"raised_at"`
	ClearedAt time.Time `json:"cleared_at,omitzero"`
	// Readings are those of the uplink that raised it, by key.
	Readings       map[string]Value `json:"readings,omitempty"`
	AcknowledgedAt time.Time        `json:"acknowledged_at,omitzero"`
	AcknowledgedBy string           `json:"acknowledged_by,omitempty"`
	Note           string           `json:"note,omitempty"`
	// MutedUntil is the time at which the last mute of its rule and device ends; zero for
	// none.
	MutedUntil time.Time `json:"-"`
	// RaisedBy and ClearedBy are the journal records of the frames that did so; empty
	// if a time that passed did.
	RaisedBy  string `json:"raised_by,omitempty"`
	ClearedBy string `json:"cleared_by,omitempty"`
}

// Value is a reading: a text if IsText is set, else a number.
type Value struct {
	Value  float64 `json:"value"`
	Text   string  `json:"text,omitempty"`
	IsText bool    `json:"is_text,omitempty"`
	Units  string  `json:"units,omitempty"` // metric
}

// Occurrence is one firing of a rule for a device.
type Occurrence struct {
	Rule    *Rule
	AlarmID string // empty when a frame is forwarded
	State   State
	Device  iot.Device
	// Record is the journal record of the frame; empty if no frame made the rule
	// fire but a time that passed. Event is its kind ("join", "status" …) with its data.
	Record   string
	Time     time.Time // of the uplink, or the time that passed
	Readings map[string]Value
	Previous map[string]Value // the readings before, if the rule requests them
	Radio    *iot.RadioData   `json:"Uplink"` // nil if there is none; batches and states are stored under the name Uplink
	Event    map[string]any
	// Trace is the span of the frame's processing; empty for none.
	Trace tracing.Parent `json:",omitempty"`
	// Repeats counts the occurrences of the alarm before this one.
	Repeats int
}

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
	// Since is the time at which the condition of a rule with a duration began to hold, zero
	// otherwise; Began is the frame.
	Since time.Time
	Began *Occurrence
	// At is the time at which the frame that changed this last was received, FrameAt its own
	// time and Record its journal record. A frame that is not later was evaluated before.
	At, FrameAt time.Time
	Record      string
	// Repeats counts the runs of the raised alarm's actions after the first; RanAt is
	// the time of the last.
	Repeats int
	RanAt   time.Time
	// Due is the time at which the state is evaluated without a frame, zero for never.
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

// Watch is the time from which a device may count as silent.
type Watch struct {
	Account  relay.AccountID
	DeviceID string
	Due      time.Time
}

// Enrolment is an account whose devices have to be watched; After is the position at which
// its list of devices continues.
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
	// Limit is the most alarms to return; Cursor is the position at which to continue: the
	// one that the page before returned.
	Limit  int
	Cursor string
}
