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
	OnSilent  Trigger = "silent"  // no frame of the device for Rule.SilentFor
	OnEvent   Trigger = "event"   // a join, a status or another event of a device
)

// Rule performs actions for the frames or the silence of devices of an account.
type Rule struct {
	ID      string  `json:"id"`
	Name    string  `json:"name"`
	Enabled bool    `json:"enabled"`
	On      Trigger `json:"on"`
	Devices Devices `json:"devices,omitzero"`
	// When is the condition that raises an alarm. Without When, each frame is forwarded. Clear is
	// the condition that clears the alarm. Without Clear, the alarm is cleared when When does not
	// hold. Both are expressions.
	When  string `json:"when,omitempty"`
	Clear string `json:"clear,omitempty"`
	// For is the time for which When must hold before the alarm is raised.
	For time.Duration `json:"for,omitempty"`
	// SilentFor is the time for which a device may send nothing, with OnSilent.
	SilentFor time.Duration `json:"silent_for,omitempty"`
	Repeat    Repeat        `json:"repeat,omitzero"`
	// Batch collects the frames that a rule without When forwards.
	Batch Batch `json:"batch,omitzero"`
	// Ordered delivers to each endpoint in the order of the frames.
	Ordered   bool      `json:"ordered,omitempty"`
	Actions   []Action  `json:"actions"`
	CreatedAt time.Time `json:"created_at,omitzero"`
	UpdatedAt time.Time `json:"updated_at,omitzero"`
	// Failures is stored separately.
	Failures Failures `json:"-"`
	// Undecryptable means that the record cannot be decrypted: only ID, CreatedAt and Failures are
	// set. The rule is not evaluated.
	Undecryptable bool `json:"-"`
}

// Failures counts the failures of a rule since its last change: failed expressions, actions omitted
// because of a limit, and failed attempts to decrypt or compile the rule.
type Failures struct {
	Count  int64     `json:"count"`
	LastAt time.Time `json:"last_at,omitzero"`
	Last   string    `json:"last,omitempty"` // reason of the last failure
}

// Devices selects devices of the account that match all fields that are set. The zero value selects
// all devices.
type Devices struct {
	DecoderID  string   `json:"decoder_id,omitempty"`
	LocationID string   `json:"location_id,omitempty"`
	IDs        []string `json:"ids,omitempty"`
	Name       string   `json:"name,omitempty"` // a pattern: * stands for any characters
}

// Repeat controls whether the actions of a raised alarm run again while its condition holds:
// never (the zero value), with each frame, or at most once per Every.
type Repeat struct {
	Always bool          `json:"always,omitempty"`
	Every  time.Duration `json:"every,omitempty"`
}

// Batch collects forwarded frames into one request until there are Count frames or the first frame has
// waited for Every. The zero value forwards each frame in a separate request.
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

// Action is performed when a rule fires.
type Action struct {
	Action string `json:"action"`
	// Parameters are URLs, e-mail addresses or numbers. Each one gets a delivery.
	Parameters []string `json:"parameters"`
	// Body is an expression. Its result, as JSON, is the body of http_post and the text of email and
	// sms.
	Body string `json:"body,omitempty"`
	// Originator is the originator of an SMS. Empty means the account's default.
	Originator string `json:"originator,omitempty"`
}

// State is the state of an alarm, or the effect of a rule on a frame.
type State string

// The states. An alarm is raised or cleared. A frame may also be forwarded.
const (
	Raised    State = "raised"
	Cleared   State = "cleared"
	Forwarded State = "forwarded"
)

// Alarm records that the condition of a rule held for a device.
type Alarm struct {
	ID       string `json:"id"`
	RuleID   string `json:"rule_id"`
	DeviceID string `json:"device_id"`
	State    State  `json:"state"`
	// RaisedAt and ClearedAt are the times of the frames that raised and cleared the alarm. Without
	// a frame they are the times at which the change was due. ClearedAt is zero while the alarm is
	// raised.
	RaisedAt  time.Time `json:"raised_at"`
	ClearedAt time.Time `json:"cleared_at,omitzero"`
	// Readings are the readings of the uplink that raised the alarm, by key.
	Readings       map[string]Value `json:"readings,omitempty"`
	AcknowledgedAt time.Time        `json:"acknowledged_at,omitzero"`
	AcknowledgedBy string           `json:"acknowledged_by,omitempty"`
	Note           string           `json:"note,omitempty"`
	// MutedUntil is the time at which the last mute of the rule and the device ends, or zero without
	// a mute.
	MutedUntil time.Time `json:"-"`
	// RaisedBy and ClearedBy are the journal records of the frames that raised and cleared the alarm.
	// They are empty without a frame.
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

// Occurrence is a firing of a rule for a device.
type Occurrence struct {
	Rule     *Rule
	AlarmID  string // empty for a forwarded frame
	State    State
	Device   iot.Device
	Record   string    // the journal record of the frame; empty without a frame
	Time     time.Time // time of the frame; without a frame, time of the firing
	Readings map[string]Value
	Previous map[string]Value // the previous readings, if the rule examines them
	Radio    *iot.RadioData   `json:"Uplink"` // may be nil; stored under the name Uplink
	Event    map[string]any   // the type ("join", "status" …) and the data of an event
	Trace    tracing.Parent   `json:",omitempty"` // the span of the frame's processing; may be empty
	Repeats  int              // the number of earlier runs of the raised alarm's actions; else 0
}

// Transactions has the operations of Store that tests replace by failing operations.
type Transactions interface {
	SaveDecision(ctx context.Context, acct relay.AccountID, pairs []Pair, leaseUntil time.Time, decide func([]PairState) (Decision, error)) ([]outbox.Delivery, error)
	Collect(ctx context.Context, acct relay.AccountID, items []Item) (full []BatchRef, err error)
	TakeBatch(ctx context.Context, ref BatchRef, b Batch, now, leaseUntil time.Time, send func([]Occurrence) ([]outbox.Delivery, error)) (created []outbox.Delivery, hasMore bool, err error)
}

// Pair is a rule and a device.
type Pair struct{ RuleID, DeviceID string }

// AccountRecord is a record with its account.
type AccountRecord[T any] struct {
	Account relay.AccountID
	Record  T
}

// PairState is the state of a rule for a device.
type PairState struct {
	Pair
	// AlarmID is the raised alarm, or empty without one. RaisedAt is its time.
	AlarmID  string
	RaisedAt time.Time
	// Since is the time at which the condition of a rule with For began to hold, or zero.
	// StartOccurrence is the occurrence of the frame of that time.
	Since           time.Time
	StartOccurrence *Occurrence
	// ChangedAt, FrameAt and Record are the time of receipt, the time and the journal record of the
	// frame that last changed the state. Only later frames are evaluated.
	ChangedAt, FrameAt time.Time
	Record             string
	// Repeats counts the runs of the raised alarm's actions after the first one. ActionsRanAt is the
	// time of the last run.
	Repeats      int
	ActionsRanAt time.Time
	// Due is the time at which the state is evaluated without a frame, or zero for never.
	Due time.Time
}

// Decision has the changes that Store.SaveDecision saves.
type Decision struct {
	States     []PairState // the changed states
	Raised     []Alarm
	Cleared    []Alarm // alarms with ID, ClearedAt and ClearedBy only
	Deliveries []outbox.Delivery
	// SilenceChecks has the IDs of devices to check for silence at once.
	SilenceChecks []string
}

// Watch is the time of the next check of a device for silence. A zero Due means never.
type Watch struct {
	Account  relay.AccountID
	DeviceID string
	Due      time.Time
}

// Enrolment is an account that needs watches for its devices. LastDeviceID is the ID of the last
// device with a watch.
type Enrolment struct {
	Account      relay.AccountID
	LastDeviceID string
}

// Item is a frame that a rule has collected for a batch. Its Occurrence has no Rule.
type Item struct {
	RuleID      string
	Occurrence  Occurrence
	Batch       Batch
	CollectedAt time.Time // time of the collection
}

// BatchRef names the batch of a rule.
type BatchRef struct {
	Account relay.AccountID
	RuleID  string
}

// Cursor is the position of a rule in the list of the rules of all accounts. The zero Cursor is before
// the first rule.
type Cursor struct {
	Account   relay.AccountID
	CreatedAt time.Time
	ID        string
}

// AlarmFilter selects alarms of an account. The zero value selects all alarms.
type AlarmFilter struct {
	State            State
	RuleID, DeviceID string
	From, To         time.Time // range of RaisedAt, inclusive
	// Limit is the largest number of alarms to return. Cursor is the cursor returned with the
	// previous page.
	Limit  int
	Cursor string
}
