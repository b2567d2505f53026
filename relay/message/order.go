package message

import (
	"time"

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
	// KeepKey is how long the key is known; 0 means Options.KeepKeys.
	KeepKey time.Duration
}

// Body is the content of an order.
type Body interface {
	// Encode encodes the body and splits it into parts; those of a concatenated message share the
	// reference. A text of the GSM alphabet for which fitsSevenBit returns false is
	// encoded as UCS-2; a nil fitsSevenBit accepts all texts. Encode returns
	// relay.KindInvalid with the parameter for a body that cannot be sent.
	Encode(reference byte, fitsSevenBit func(text string) bool) (Encoded, error)
}

// Encoded is a body in parts.
type Encoded struct {
	Coding Coding
	Parts  []Part
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
