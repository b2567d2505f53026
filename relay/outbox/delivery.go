package outbox

import (
	"time"

	"github.com/penstock/penstock/relay/account"
)

// State is where a delivery stands.
type State string

// The states. A delivery starts queued; retrying, it waits for NextAttemptAt;
// delivered, simulated and dead are ends. Only a replay leaves an end.
const (
	Queued    State = "queued"
	Retrying  State = "retrying"
	Delivered State = "delivered"
	// Simulated is delivered to a simulator or the mail sink.
	Simulated State = "simulated"
	// Dead waits for a person: no attempt is left or the target refused for good.
	Dead State = "dead"
)

// States lists them all.
func States() []State { return []State{Queued, Retrying, Delivered, Simulated, Dead} }

// Ended reports whether nothing more is done without a replay.
func (s State) Ended() bool { return s == Delivered || s == Simulated || s == Dead }

// Kind is what a delivery carries.
type Kind string

// The kinds of delivery.
const (
	KindRelay    Kind = "relay"    // an inbound SMS to a relay's endpoint
	KindReceipt  Kind = "receipt"  // a delivery report to a dlr_url
	KindCallback Kind = "callback" // an event to the account's callback URL
	KindNotice   Kind = "notice"   // a mail that what was asked for is ready
)

// Delivery is one thing to bring to one target.
type Delivery struct {
	ID        string     `json:"id"`
	Account   account.ID `json:"account"`
	Kind      Kind       `json:"kind"`
	Relay     string     `json:"relay,omitempty"` // the relay's id
	MessageID string     `json:"message_id"`      // the inbound or outbound message it is about
	Request   *Request   `json:"request,omitempty"`
	Mail      *Mail      `json:"mail,omitempty"`
	SIM       *SIM       `json:"sim,omitempty"`
	CreatedAt time.Time  `json:"created_at"`
	// Originator and Destination are those of an inbound message.
	Originator  string `json:"originator,omitempty"`
	Destination string `json:"destination,omitempty"`
	// Endpoint names the relay's endpoint that this is for; see Lane. What goes
	// to one endpoint shares its pace and its breaker.
	Endpoint string `json:"endpoint,omitempty"`
	Pace     Pace   `json:"pace,omitzero"`

	// What changes with every attempt.
	State         State     `json:"state"`
	Reason        string    `json:"reason,omitempty"` // why it retries or is dead
	NextAttemptAt time.Time `json:"next_attempt_at,omitzero"`
	// Waits says what it waits for while it is not due at any time.
	Waits Wait `json:"waits_for,omitempty"`
	// HeldUntil is when breakers hold it no longer, open or not; zero if none has
	// held it since its creation or the last replay.
	HeldUntil time.Time `json:"held_until,omitzero"`
	// Tries counts attempts since creation or the last replay; Attempts keeps
	// them all, oldest first.
	Tries    int       `json:"tries"`
	Attempts []Attempt `json:"attempts,omitempty"`
}

// Request is an HTTP request to make. Its URL and body are final: placeholders
// are replaced and escaped.
type Request struct {
	Method      string            `json:"method"`
	URL         string            `json:"url"`
	ContentType string            `json:"content_type,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`
	Body        []byte            `json:"body,omitempty"`
}

// Mail is an e-mail to send to one address.
type Mail struct {
	To      string `json:"to"`
	Subject string `json:"subject"`
	Text    string `json:"text"`
	// MessageID is without angle brackets and stays the same over retries.
	MessageID string `json:"message_id"`
	// Header holds further header fields, for example Content-class.
	Header map[string]string `json:"header,omitempty"`
}

// SIM is a message for a SIM of the account, which the operator brings to it.
type SIM struct {
	ICCID  string `json:"iccid"`
	From   string `json:"from"`
	To     string `json:"to"`
	Text   string `json:"text,omitempty"`
	Data   []byte `json:"data,omitempty"`
	UDH    []byte `json:"udh,omitempty"`
	Coding int    `json:"coding"` // 7, 8 or 16
}

// Target is where the delivery goes: the URL, the address, or "sim:" and the
// ICCID.
func (d *Delivery) Target() string {
	switch {
	case d.Request != nil:
		return d.Request.URL
	case d.Mail != nil:
		return d.Mail.To
	case d.SIM != nil:
		return "sim:" + d.SIM.ICCID
	}
	return ""
}

// Attempt is how one try went.
type Attempt struct {
	At       time.Time     `json:"at"`
	Duration time.Duration `json:"duration"` // ns
	Status   int           `json:"status,omitempty"`
	Error    string        `json:"error,omitempty"`
	// Response is the start of the answer, at most 1 KiB of valid UTF-8.
	Response string `json:"response,omitempty"`
}

// Outcome is what one attempt changed: the attempt and where the delivery
// stands after it.
type Outcome struct {
	ID            string
	Account       account.ID
	Attempt       Attempt
	State         State
	Reason        string
	NextAttemptAt time.Time // only while retrying
	// Uncounted is set for our own faults and the probes of a breaker, which
	// never use up an attempt.
	Uncounted bool
	// Endpoint is the delivery's Lane.
	Endpoint string
	// HeldUntil is set if the delivery now waits for its endpoint's breaker, at
	// most until then. Without an attempt having been made, Attempt is zero.
	HeldUntil time.Time
}
