package message

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/tracing"
)

// ID is the number of a part. It is positive, below 2^53, unique among all gateways and increases
// with time. The parts of a message have consecutive ids; the first is also the message's.
type ID int64

// String returns the number in decimal.
func (id ID) String() string { return strconv.FormatInt(int64(id), 10) }

// ParseID parses the format of String and reports whether s has it.
func ParseID(s string) (ID, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return ID(n), err == nil && n > 0 && n < maxID && s == ID(n).String()
}

// maxID is 2^53: clients that read JSON numbers as doubles read all ids below it exactly.
const maxID = 1 << 53

// Coding is the encoding of a message on the air.
type Coding = sms.Coding

// The codings.
const (
	GSM    = sms.GSM
	Binary = sms.Binary
	UCS2   = sms.UCS2
)

// Message is a message to one destination.
type Message struct {
	ID      ID              `json:"id"` // of the first part, reported as %msgid
	Account relay.AccountID `json:"account"`
	// Originator is 1 to 15 digits, 1 to 11 characters of the GSM alphabet, or
	// empty for the carrier's own.
	Originator  string `json:"originator,omitempty"`
	Destination string `json:"destination"` // E.164 digits
	Coding      Coding `json:"coding"`
	// Flash is message class 0: shown at once, not stored.
	Flash bool `json:"flash,omitempty"`
	// Replace lets a later message of the same originator take this one's place
	// on the phone (short message type 1; replace_if_present_flag in SMPP).
	Replace bool   `json:"replace,omitempty"`
	Report  Report `json:"report,omitzero"`
	// Origin is the interface that received the order, IP the client's address.
	Origin string `json:"origin,omitempty"`
	IP     string `json:"ip,omitempty"`
	// Trace is the span of the order; empty if there is none.
	Trace tracing.Parent `json:"trace,omitempty"`

	ReceivedAt time.Time `json:"received_at"`
	// ScheduledFor is the time of sending that the order requested.
	ScheduledFor time.Time `json:"scheduled_for"`

	Parts []Part `json:"parts"` // never empty, in order

	// Undecryptable means that the sealed part of the record cannot be decrypted. Only the ids, the
	// addresses and the states of the parts are known.
	Undecryptable bool `json:"-"`

	// Version counts the changes to the states of parts other than to Sending; see
	// MarkReported.
	Version int64 `json:"-"`
}

// Part is one short message, submitted to a carrier in one request.
type Part struct {
	// UDH is the user data header with its length octet; empty if there is none. If the message has
	// several parts, the header has the concatenation element.
	UDH []byte `json:"udh,omitempty"`
	// Data is the content after the header: for GSM one septet per octet, otherwise the octets.
	Data []byte `json:"data,omitempty"`
	// Text is the part's text in UTF-8; empty for Binary.
	Text string `json:"text,omitempty"`

	// The fields below change while the part is sent.
	State State `json:"-"`
	// ScheduledAt is the time at which the part is due: after Message.ScheduledFor for a retry.
	ScheduledAt time.Time `json:"-"`
	// Carrier is the name of the carrier that the part was submitted to, CarrierID the id
	// that the carrier returned.
	Carrier   string `json:"-"`
	CarrierID string `json:"-"`
	// Reason explains a rejection, a retry or an unknown outcome.
	Reason string `json:"-"`
	// Report is the carrier's receipt as a line of key:value pairs, the value of %dlr.
	Report string `json:"-"`
	// ChangedAt is the time of the last change of State: for a change by a receipt, the time
	// at which the receipt arrived.
	ChangedAt time.Time `json:"-"`
	// BufferedAt is the time at which the network last buffered the part; zero if it never did.
	BufferedAt time.Time `json:"-"`
	// ResentAt is the time at which an operator last resent the part; zero if none did.
	ResentAt time.Time `json:"-"`
}

// PartID returns the id of the message's n-th part, counted from 0.
func (m *Message) PartID(n int) ID { return m.ID + ID(n) }

// Body returns the content of the n-th part: its text, or its octets in lower-case hex.
func (m *Message) Body(n int) string {
	if m.Coding == Binary {
		return hex.EncodeToString(m.Parts[n].Data)
	}
	return m.Parts[n].Text
}

// Text returns the text of all parts.
func (m *Message) Text() string {
	var b strings.Builder
	for n := range m.Parts {
		b.WriteString(m.Body(n))
	}
	return b.String()
}

// Simulated reports whether the part was submitted to the simulator.
func (p *Part) Simulated() bool { return p.Carrier == Simulator }

// Simulator is the name of the simulated carrier.
const Simulator = "simulator"

// Ref identifies a message.
type Ref struct {
	Account relay.AccountID `json:"account"`
	ID      ID              `json:"id"`
}

// Ref returns the account and the id of the message.
func (m *Message) Ref() Ref { return Ref{m.Account, m.ID} }

// PartRef identifies a part of a message; Part counts from 0.
type PartRef struct {
	Ref
	Part int `json:"part"`
}

// String returns the account, the message and the part with dashes between: our reference
// for the part at carriers.
func (p PartRef) String() string {
	return p.Account.String() + "-" + p.ID.String() + "-" + strconv.Itoa(p.Part)
}

// ParsePartRef parses the format of String and reports whether s has it.
func ParsePartRef(s string) (PartRef, bool) {
	var p PartRef
	_, err := fmt.Sscanf(s, "%d-%d-%d", &p.Account, &p.ID, &p.Part)
	valid := err == nil && p.Account >= 0 && p.ID > 0 && p.ID < maxID && p.Part >= 0 && p.Part < 255
	return p, valid && p.String() == s
}
