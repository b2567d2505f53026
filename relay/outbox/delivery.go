package outbox

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/tracing"
)

// State is the state of a delivery.
type State string

// The states. A new delivery is queued. Delivered, simulated and dead are final unless the
// delivery is replayed.
const (
	Queued    State = "queued"
	Retrying  State = "retrying" // waits for NextAttemptAt
	Delivered State = "delivered"
	Simulated State = "simulated" // delivered to a simulator or the mail sink
	Dead      State = "dead"      // no attempts are left, or the target refused permanently
)

// States lists all states.
func States() []State { return []State{Queued, Retrying, Delivered, Simulated, Dead} }

// Ended reports whether the state is final unless the delivery is replayed.
func (s State) Ended() bool { return s == Delivered || s == Simulated || s == Dead }

// Kind is the kind of content that a delivery carries.
type Kind string

// The kinds of delivery.
const (
	KindRelay    Kind = "relay"    // an inbound SMS to a relay's endpoint
	KindReport   Kind = "receipt"  // a delivery report to a dlr_url; the API calls it a receipt
	KindCallback Kind = "callback" // an event to the account's callback URL
	KindNotice   Kind = "notice"   // a mail, for example about a limit or a result
	KindRule     Kind = "rule"     // an alarm, or a frame that a rule forwards
)

// Kinds lists all kinds.
func Kinds() []Kind { return []Kind{KindRelay, KindReport, KindCallback, KindNotice, KindRule} }

// Delivery is a request, mail or message to one target.
type Delivery struct {
	ID        string          `json:"id"`
	Account   relay.AccountID `json:"account"`
	Kind      Kind            `json:"kind"`
	Relay     string          `json:"relay,omitempty"` // the id of the relay or the rule
	MessageID string          `json:"message_id"`      // the message, alarm, frame or other object
	Request   *Request        `json:"request,omitempty"`
	Mail      *Mail           `json:"mail,omitempty"`
	SIM       *SIM            `json:"sim,omitempty"`
	SMS       *SMS            `json:"sms,omitempty"`
	CreatedAt time.Time       `json:"created_at"`
	// Originator and Destination are the numbers of an inbound message or of SMS.
	Originator  string `json:"originator,omitempty"`
	Destination string `json:"destination,omitempty"`
	// Endpoint is the id of the relay's endpoint; see EndpointKey. The deliveries to one
	// endpoint share its pace and its breaker.
	Endpoint string `json:"endpoint,omitempty"`
	Pace     Pace   `json:"pace,omitzero"`
	// Trace is the span of the message or frame; empty if there is none.
	Trace tracing.Parent `json:"trace,omitempty"`
	// Undecryptable means that the sealed part of the record cannot be decrypted. The target, the
	// content and the pace are missing.
	Undecryptable bool `json:"-"`

	// The fields below change with every attempt.
	State State `json:"state"`
	// Reason explains why the delivery retries or is dead, in words that users of the account
	// may read.
	Reason        string    `json:"reason,omitempty"`
	NextAttemptAt time.Time `json:"next_attempt_at,omitzero"`
	// WaitsFor is the condition for which a delivery without a due time waits.
	WaitsFor Wait `json:"waits_for,omitempty"`
	// ParkedUntil is the time at which the delivery is attempted even if its breaker is open;
	// zero if no breaker has parked it since its creation or the last replay.
	ParkedUntil time.Time `json:"held_until,omitzero"`
	// Tries counts the attempts since creation or the last replay, except uncounted ones. Attempts
	// has the stored attempts since creation, oldest first; see Outcome.Attempt.
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
	// MessageID has no angle brackets and is the same in all attempts.
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
	Originator string `json:"originator"` // empty means the carrier's default
	To         string `json:"to"`
	Text       string `json:"text"`
}

// UndecryptableReason is the Reason of a dead delivery that is Undecryptable.
const UndecryptableReason = relay.UndecryptableReason + ", then replay the delivery"

// Target returns the URL, the address, "sim:" and the ICCID, or "sms:" and the number.
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

// Attempt is the record of one attempt.
type Attempt struct {
	At       time.Time     `json:"at"`
	Duration time.Duration `json:"duration"` // ns
	Status   int           `json:"status,omitempty"`
	// Error is the reason why there was no response. It may contain hosts and addresses, which only
	// operators may see. Reason is the reason in words for users of the account.
	Error  string `json:"error,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Response is the start of the response, at most 1 KiB of valid UTF-8.
	Response string `json:"response,omitempty"`
}

// Outcome is the result of an attempt, or of parking a delivery without an attempt.
type Outcome struct {
	ID      string
	Account relay.AccountID
	// Attempt is zero if no attempt was made, or if an uncounted attempt is not stored because its
	// reason is already the Reason of the delivery.
	Attempt       Attempt
	State         State
	Reason        string
	NextAttemptAt time.Time // only while retrying
	// Uncounted means that the attempt does not count in Tries: it failed by a fault of the
	// gateway, or was a probe of a breaker.
	Uncounted bool
	// Endpoint is the delivery's EndpointKey.
	Endpoint string
	// ParkedUntil is set if the delivery now waits for the breaker of its endpoint. It is the
	// end of that wait.
	ParkedUntil time.Time
}

// Ref identifies a delivery.
type Ref struct {
	Account relay.AccountID
	ID      string
}

// Lease is the right to make the next attempt of a delivery.
type Lease = relay.Lease[Ref]

// Pace limits the attempts at an endpoint; zero fields add no limit to the
// gateway's own. Concurrency and PerSecond apply to each gateway, Ordered to all
// gateways together.
type Pace struct {
	// Concurrency is the maximum number of concurrent attempts.
	Concurrency int `json:"concurrency,omitempty"`
	// PerSecond is the maximum rate of attempts, evenly spread.
	PerSecond float64 `json:"per_second,omitempty"`
	// Ordered delays a delivery until the previous one has ended.
	Ordered bool `json:"ordered,omitempty"`
}

// Wait is the condition, other than a time, that a delivery waits for.
type Wait string

// The conditions that a delivery may wait for.
const (
	// WaitsForBreaker means that the breaker of the endpoint is open.
	WaitsForBreaker Wait = "breaker"
	// WaitsForTurn means that an earlier delivery to the same ordered endpoint has not ended.
	WaitsForTurn Wait = "turn"
)

// EndpointKey returns Endpoint if it is set, otherwise a hash of the account, the kind, and the host
// of the URL or another target.
func (d *Delivery) EndpointKey() string {
	if d.Endpoint != "" {
		return d.Endpoint
	}
	host := d.Target()
	if d.Request != nil {
		host = "unreadable"
		if u, err := url.Parse(d.Request.URL); err == nil {
			host = u.Host
		}
	}
	return EndpointID(d.Account, string(d.Kind), host)
}

// EndpointID returns the id of an account's endpoint, a hash of the parts that distinguish it.
func EndpointID(acct relay.AccountID, parts ...string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %q", acct, parts))
	return hex.EncodeToString(sum[:8])
}

// ParkedEndpoint is an endpoint with deliveries that wait for its breaker.
type ParkedEndpoint struct {
	Account  relay.AccountID
	Endpoint string
	// FirstParkedUntil is the earliest ParkedUntil of the deliveries.
	FirstParkedUntil time.Time
}

// Breaker is an open circuit breaker: its endpoint failed too often in a row.
type Breaker struct {
	Endpoint string          `json:"endpoint"`
	Account  relay.AccountID `json:"account"`
	Relay    string          `json:"relay,omitempty"`
	// Target is the target of the last attempt, without secrets.
	Target string `json:"target"`
	// Reason explains why the last attempt failed, in words that users of the account may
	// read.
	Reason   string    `json:"reason"`
	OpenedAt time.Time `json:"opened_at"`
	// Probes counts the attempts since OpenedAt; the next may be made at ProbeAt.
	Probes  int       `json:"probes"`
	ProbeAt time.Time `json:"probe_at"`
}
