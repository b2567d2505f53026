package event

import (
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay"
)

// Kind is a kind of inbound traffic. Each kind has its own journal and consumer.
type Kind string

// The kinds of inbound traffic.
const (
	Uplink  Kind = "uplink"
	SMS     Kind = "sms"
	Receipt Kind = "receipt"
	CDR     Kind = "cdr"
)

// Kinds lists the kinds.
func Kinds() []Kind { return []Kind{Uplink, SMS, Receipt, CDR} }

// State is the state of an event.
type State string

// The states. Pending is the state of an event after its journal's checkpoint, which has no stored
// status, and of a deferred event, which has a stored status until it is processed again.
// Unknown is the state of a processed event while the stored states cannot be read; it is not
// stored.
const (
	Unknown     State = "unknown"
	Pending     State = "pending"
	Done        State = "done"
	Quarantined State = "quarantined"
	Unrouted    State = "unrouted"
)

// States lists the states that events can be filtered by.
func States() []State { return []State{Done, Quarantined, Unrouted, Pending} }

// Event is a received request or message in a journal.
type Event struct {
	ID         string // "<node>-<letter of the kind><sequence in its journal>"
	ReceivedAt time.Time
	Kind       Kind
	Source     string // chirpstack-v4, kannel, …
	Account    relay.AccountID
	State      State
	Reason     string // reason why the event is quarantined, unrouted or deferred
	Outcome    string // result of processing the event
	// Notes lists the data of the event that was accepted but not used.
	Notes decoders.Notes
	Raw   []byte
}

// Status is the stored state of an event that is not done, or that is done with an outcome or notes.
type Status struct {
	ID      string          `json:"id"`
	Seq     uint64          `json:"seq"`
	State   State           `json:"state"`
	Reason  string          `json:"reason,omitempty"`
	Outcome string          `json:"outcome,omitempty"`
	Notes   decoders.Notes  `json:"notes,omitempty"`
	Account relay.AccountID `json:"account,omitempty"`
	Source  string          `json:"source,omitempty"`
	Device  string          `json:"device,omitempty"`
	// Provisional means that the status may change when earlier entries have been processed. It
	// is not stored.
	Provisional bool `json:"-"`
}

// Filter selects events; zero fields select all.
type Filter struct {
	IDs     []string
	State   State
	Account relay.AccountID
	Source  string
	Device  string // a normalized identifier of a device of the event
	Query   string // part of the body, path, query, ID, reason, notes or outcome, in any case; only the stored outcomes of uplinks are searched
	Reason  string // part of the reason, in any case
	Number  string // a complete number or sender in the description of the event, such as "from 447700900123 to 4490"
	From    time.Time
	To      time.Time
	// Match selects among the events that match all other fields, by the account and the subjects of
	// the event: the identifiers of the devices of frames, or the destinations of messages. nil
	// selects all.
	Match func(acct relay.AccountID, subjects []string) bool
}
