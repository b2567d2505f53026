package message

import (
	"time"

	"github.com/penstock/penstock/relay/account"
)

// Order is what an account asks to have sent, whatever the interface.
type Order struct {
	Account      account.ID
	Destinations []string
	Originator   string // empty: the carrier's own
	Body         Body
	// SendAt is when; zero or past: at once.
	SendAt  time.Time
	Report  Report
	Replace bool
	Flash   bool
	// Origin is the interface, IP who asked.
	Origin string
	IP     string
	// Key is the client's name for the order, which is sent once however often
	// it comes; empty: none.
	Key string
}

// Body is what is to be sent.
type Body interface {
	// Cut makes the parts of a message; those of a concatenated one share the
	// reference. What cannot be sent is relay.KindInvalid with the parameter.
	Cut(reference byte) (Cut, error)
}

// Cut is a body in parts.
type Cut struct {
	Coding Coding
	Parts  []Part
}

// Preview is what an order would come to.
type Preview struct {
	Parts int // of the message to one destination
	Cost  int64
	// Credit is what the account has.
	Credit int64
}

// Sent is what an order came to.
type Sent struct {
	// Messages has one entry for each destination, in their order: the id is that
	// of the message, the body the whole one.
	Messages []Entry `json:"messages"`
	Cost     int64   `json:"cost"`
	// Repeated is set when a client's key was used before for the same order:
	// this is what that came to, and nothing was charged now.
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
