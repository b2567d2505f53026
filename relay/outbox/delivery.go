package outbox

import (
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/tracing"
)

// State is the state of a delivery.
type State string

// The states. A delivery starts queued; retrying, it waits for NextAttemptAt;
// delivered, simulated and dead are ends. Only a replay leaves an end.
const (
	Queued    State = "queued"
	Retrying  State = "retrying"
	Delivered State = "delivered"
	// Simulated is delivered to a simulator or the mail sink.
	Simulated State = "simulated"
	// Dead is final unless replayed: no attempts are left, or the target refused
	// permanently.
	Dead State = "dead"
)

// States lists them all.
func States() []State { return []State{Queued, Retrying, Delivered, Simulated, Dead} }

// Ended reports whether the state is final unless the delivery is replayed.
func (s State) Ended() bool { return s == Delivered || s == Simulated || s == Dead }

// Kind is the kind of content that a delivery carries.
type Kind string

// The kinds of delivery.
const (
	KindRelay    Kind = "relay"    // an inbound SMS to a relay's endpoint
	KindReport   Kind = "receipt"  // a delivery report to a dlr_url; the value is the API's
	KindCallback Kind = "callback" // an event to the account's callback URL
	KindNotice   Kind = "notice"   // a mail that what was asked for is ready
	KindRule     Kind = "rule"     // what a rule says of a device
)

// Kinds lists them all.
func Kinds() []Kind { return []Kind{KindRelay, KindReport, KindCallback, KindNotice, KindRule} }

// Delivery is one request, mail or message to one target.
type Delivery struct {
	ID        string          `json:"id"`
	Account   relay.AccountID `json:"account"`
	Kind      Kind            `json:"kind"`
	Relay     string          `json:"relay,omitempty"` // the id of the relay or the rule
	MessageID string          `json:"message_id"`      // the message, alarm or frame it is about
	Request   *Request        `json:"request,omitempty"`
	Mail      *Mail           `json:"mail,omitempty"`
	SIM       *SIM            `json:"sim,omitempty"`
	SMS       *SMS            `json:"sms,omitempty"`
	CreatedAt time.Time       `json:"created_at"`
	// Originator and Destination are those of an inbound message, or of SMS.
	Originator  string `json:"originator,omitempty"`
	Destination string `json:"destination,omitempty"`
	// Endpoint names the relay's endpoint that this is for; see EndpointName. What goes
	// to one endpoint shares its pace and its breaker.
	Endpoint string `json:"endpoint,omitempty"`
	Pace     Pace   `json:"pace,omitzero"`
	// Trace is the span that led to it; empty for none.
	Trace tracing.Parent `json:"trace,omitempty"`
	// Unopened means that what is sealed of its record does not open, and is left out: the
	// target, the content and the pace.
	Unopened bool `json:"-"`

	// What changes with every attempt.
	State State `json:"state"`
	// Reason is why it retries or is dead, in words that users of the account may read.
	Reason        string    `json:"reason,omitempty"`
	NextAttemptAt time.Time `json:"next_attempt_at,omitzero"`
	// Waits is the condition it waits for while it has no due time.
	Waits Wait `json:"waits_for,omitempty"`
	// ParkedUntil is when breakers hold it no longer, open or not; zero if none has
	// held it since its creation or the last replay.
	ParkedUntil time.Time `json:"held_until,omitzero"`
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

// SIM is a message for a SIM of the account, delivered by the operator.
type SIM struct {
	ICCID  string `json:"iccid"`
	From   string `json:"from"`
	To     string `json:"to"`
	Text   string `json:"text,omitempty"`
	Data   []byte `json:"data,omitempty"`
	UDH    []byte `json:"udh,omitempty"`
	Coding int    `json:"coding"` // 7, 8 or 16
}

// SMS is a message that the account sends to one number.
type SMS struct {
	Originator string `json:"originator,omitempty"` // empty: the carrier's own
	To         string `json:"to"`
	Text       string `json:"text"`
}

// UnopenedReason is the reason of a dead delivery that is Unopened.
const UnopenedReason = relay.UnopenedReason + ", then replay the delivery"

// Target is where the delivery goes: the URL, the address, "sim:" and the ICCID,
// or "sms:" and the number.
func (d *Delivery) Target() string {
	switch {
	case d.Request != nil:
		return d.Request.URL
	case d.Mail != nil:
		return d.Mail.To
	case d.SIM != nil:
		return "sim:" + d.SIM.ICCID
	case d.SMS != nil:
		return "sms:" + d.SMS.To
	}
	return ""
}

// Attempt is the stored log entry of one attempt.
type Attempt struct {
	At       time.Time     `json:"at"`
	Duration time.Duration `json:"duration"` // ns
	Status   int           `json:"status,omitempty"`
	// Error is why there was no answer, in the words of the network; it may name hosts and
	// addresses that only operators may see. Reason is the same for users of the account.
	Error  string `json:"error,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Response is the start of the answer, at most 1 KiB of valid UTF-8.
	Response string `json:"response,omitempty"`
}

// Outcome is what the store records after an attempt, or after parking without one:
// the log entry, and the delivery's new state.
type Outcome struct {
	ID      string
	Account relay.AccountID
	// Attempt is zero if none was made, or if it is not stored because an earlier one failed
	// for the same reason and neither counts.
	Attempt       Attempt
	State         State
	Reason        string
	NextAttemptAt time.Time // only while retrying
	// Uncounted is set for faults of the gateway and the probes of a breaker, which do
	// not count as attempts.
	Uncounted bool
	// Endpoint is the delivery's EndpointName.
	Endpoint string
	// ParkedUntil is set if the delivery now waits for its endpoint's breaker, at
	// most until then.
	ParkedUntil time.Time
}
