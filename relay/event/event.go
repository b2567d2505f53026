package event

import (
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay"
)

// Kind is a kind of inbound traffic; each has its own journal and consumer.
type Kind string

// The kinds of inbound traffic.
const (
	Uplink  Kind = "uplink"
	SMS     Kind = "sms"
	Receipt Kind = "receipt"
	CDR     Kind = "cdr"
)

// Kinds lists them all.
func Kinds() []Kind { return []Kind{Uplink, SMS, Receipt, CDR} }

// State is the state of an event.
type State string

// The states. Pending has two meanings: an event after its journal's checkpoint, for
// which nothing is stored, and an event that was deferred, for which Pending is stored
// until the event is processed again. Unknown is the state of an event that was
// processed while the states cannot be read; it is never stored.
const (
	Unknown     State = "unknown"
	Pending     State = "pending"
	Done        State = "done"
	Quarantined State = "quarantined"
	Unrouted    State = "unrouted"
)

// Event is a request or message that arrived.
type Event struct {
	ID         string // "<node>-<letter of the kind><sequence in its journal>"
	ReceivedAt time.Time
	Kind       Kind
	Source     string // chirpstack-v4, kannel, …
	Account    relay.AccountID
	State      State
	Reason     string // why it is quarantined or unrouted
	Outcome    string // what it led to
	// Notes say what of it was accepted but not used.
	Notes decoders.Notes
	Raw   []byte
}

// Status is the stored state of an event that did not simply succeed.
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
	// Provisional means that the status may change once the entries before have ended.
	// It is not stored.
	Provisional bool `json:"-"`
}

// Filter selects events; zero fields select all.
type Filter struct {
	IDs     []string
	State   State
	Account relay.AccountID
	Source  string
	Device  string // a part of the body, the path or the query, any case; separators in identifiers do not matter
	Query   string // likewise; also a part of the id, the reason, a note or the outcome, of uplinks only if it is stored
	Reason  string // a part of the reason, any case
	Number  string // a whole number or sender in the description of the event, such as "from 447700900123 to 4490"
	From    time.Time
	To      time.Time
	// Match selects among the events that all other fields select, by the account and the
	// subjects: the identifiers of the devices of a post of frames, or the numbers that its
	// messages are for. nil selects all.
	Match func(acct relay.AccountID, subjects []string) bool
}
