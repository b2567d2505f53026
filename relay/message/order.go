package message

import (
	"errors"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/relay"
)

// Order is an account's request to send a message, from any interface.
type Order struct {
	Account      relay.AccountID
	Destinations []string
	Originator   string // empty: the carrier's own
	Body         Body
	// SendAt is the time of sending; a zero or past time means at once.
	SendAt  time.Time
	Report  Report
	Replace bool
	Flash   bool
	// Origin is the interface, IP the client's address.
	Origin string
	IP     string
	// Key is the client's idempotency key; empty disables it.
	Key string
	// KeepKey is the time for which the key is known; 0 means a day.
	KeepKey time.Duration
}

// Preview is the size and the cost of an order.
type Preview struct {
	Parts int // of the message to one destination
	Cost  int64
	// Credit is the account's balance.
	Credit int64
}

// Sent is the result of an order.
type Sent struct {
	// Messages has one entry for each destination, in their order: the id is that
	// of the message, the body the whole one.
	Messages []Entry `json:"messages"`
	Cost     int64   `json:"cost"`
	// Repeated is set if the client's key was used before for the same order: the
	// result is that order's, and nothing was charged now.
	Repeated bool `json:"-"`
}

// Entry is a pending message as interfaces show it.
type Entry struct {
	ID                ID        `json:"id"`
	Source            string    `json:"source"`
	Destination       string    `json:"destination"`
	Received          time.Time `json:"received"`
	Scheduled         time.Time `json:"scheduled"`
	OriginalScheduled time.Time `json:"original_scheduled"`
	Data              string    `json:"data"`
}

// EntryOf is a part, from 0, as the pending list shows it.
func (m *Message) EntryOf(part int) Entry {
	return Entry{
		ID: m.EntryID(part), Source: m.Originator, Destination: m.Destination, Received: m.ReceivedAt,
		Scheduled: m.Parts[part].ScheduledAt, OriginalScheduled: m.ScheduledFor, Data: m.Body(part),
	}
}

// Body is the content of an order.
type Body interface {
	// Encode encodes the body and splits it into parts; those of a concatenated message
	// share the reference. A text of the GSM alphabet for which fitsSevenBit returns false
	// is encoded as UCS-2; a nil fitsSevenBit accepts all texts. Encode returns
	// relay.KindInvalid with the parameter for a body that cannot be sent.
	Encode(reference byte, fitsSevenBit func(text string) bool) (Encoded, error)
}

// Encoded is a body in parts.
type Encoded struct {
	Coding Coding
	Parts  []Part
}

// Octets returns a binary body: a binary message, a WAP push, a contact card.
func Octets(o sms.Octets) Body { return octetsBody{o} }

type textBody struct {
	segmenter *sms.Segmenter
	text      string
	maxParts  int
}

func (b textBody) Encode(reference byte, fitsSevenBit func(string) bool) (Encoded, error) {
	return encodedOf(b.segmenter.Text(b.text, sms.Options{MaxParts: b.maxParts, Reference: reference, FitsSevenBit: fitsSevenBit}))
}

type octetsBody struct{ octets sms.Octets }

func (b octetsBody) Encode(reference byte, fitsSevenBit func(string) bool) (Encoded, error) {
	m, err := b.octets.Split(reference)
	if err == nil && m.Coding == sms.GSM && fitsSevenBit != nil && !fitsSevenBit(m.Text()) {
		m, err = sms.Octets{Coding: sms.UCS2, Header: b.octets.Header, Data: sms.EncodeUCS2(m.Text())}.Split(reference)
	}
	return encodedOf(m, err)
}

// encodedOf converts an encoder's message.
func encodedOf(m sms.Message, err error) (Encoded, error) {
	if err != nil {
		return Encoded{}, Unencodable(err)
	}
	encoded := Encoded{Coding: m.Coding, Parts: make([]Part, len(m.Parts))}
	for i, p := range m.Parts {
		encoded.Parts[i] = Part{UDH: p.UDH, Data: p.Data, Text: p.Text}
	}
	return encoded, nil
}

// Unencodable converts an encoder's error into relay.KindInvalid for the
// parameter that it names.
func Unencodable(err error) error {
	refused, ok := errors.AsType[*decoders.Error](err)
	if !ok {
		return err
	}
	return relay.Invalid(refused.Field, "The "+refused.Field+" cannot be sent: "+refused.Error()+".")
}
