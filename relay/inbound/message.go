package inbound

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/tracing"
)

// Stat is the value of the placeholder %stat.
type Stat int

// The values of %stat. Concatenated is the value for a joined message and for a single part.
const (
	Normal         Stat = 0
	Concatenated   Stat = 1
	Indecipherable Stat = 2 // the UDH is invalid or names an unknown language table
)

// Message is a short message as a carrier delivered it.
type Message struct {
	// ID is assigned by the gateway and derives from the journal record, so that processing
	// the record again is idempotent.
	ID string
	// Account is the account of the carrier's token; 0 for configured carriers, whose messages
	// may match relays of all accounts.
	Account relay.AccountID
	// Carrier is the carrier that delivered the message, CarrierID its id of the message;
	// empty if it has none. Together they identify the message.
	Carrier   string
	CarrierID string
	From      string // digits, or an alphanumeric sender as received
	To        string // digits
	Text      string // for GSM and Unicode
	Data      []byte // for Binary
	UDH       []byte // with its length octet
	// Part is set if the carrier reports it outside the UDH; see PartOf.
	Part *Part `json:",omitempty"`
	// Octets are the encoded text of a part, if the carrier provides it: one septet per octet,
	// or UTF-16. A character may continue in the next part.
	Octets []byte `json:",omitempty"`
	Coding sms.Coding
	Stat   Stat `json:"Status"`
	// Notes describe content of the message that was accepted but not used.
	Notes  decoders.Notes `json:",omitempty"`
	SentAt time.Time      // zero if the carrier does not report it
	// ReceivedAt is the time at which the gateway received the message.
	ReceivedAt time.Time
	Network    string // the name of the originating network
	Reference  string // the carrier's name of the connection
	// Trace is the span of the message's processing; empty for none.
	Trace tracing.Parent `json:",omitempty"`
}

// Body returns the text of the message, or its data in lower-case hex.
func (m *Message) Body() string {
	if m.Coding == sms.Binary {
		return hex.EncodeToString(m.Data)
	}
	return m.Text
}

// TrimText removes a byte order mark at the start of a message's text and NULs at its end. A part
// that is not the first keeps the mark.
func TrimText(m *Message) {
	m.Text = strings.TrimRight(m.Text, "\x00")
	if p, ok := PartOf(m); !ok || p.Number == 1 {
		m.Text = strings.TrimPrefix(m.Text, "\ufeff")
	}
}

// LanguagesOf returns the national language tables that a message's UDH names.
func LanguagesOf(m *Message) sms.Languages {
	header, _ := sms.ParseUDH(m.UDH) // an invalid header names no tables
	return header.Languages()
}

// NotesOf returns notes about a message's UDH, followed by its own Notes.
func NotesOf(m *Message) (notes decoders.Notes) {
	if _, err := sms.ParseUDH(m.UDH); err != nil {
		notes.Add("the user data header cannot be read: " + err.Error())
	} else if l := LanguagesOf(m); m.Coding == sms.GSM && l != l.Known() {
		notes.Add(fmt.Sprintf("one of the language tables %d (locking) and %d (single shift) is unknown; the default table is used instead", l.Locking, l.Single))
	}
	notes.Add(m.Notes...)
	return notes
}

// StatOf returns the Stat of a message that was not joined, by its UDH.
func StatOf(udh []byte) Stat {
	header, err := sms.ParseUDH(udh)
	if err != nil {
		return Indecipherable
	}
	if _, ok := header.Concat(); ok {
		return Concatenated
	}
	return Normal
}

// PartKind is the kind of a part's reference to its message. References of different kinds
// never refer to the same message.
type PartKind string

// The kinds of reference.
const (
	Reference8   PartKind = "udh8"  // TS 23.040, 9.2.3.24.1
	Reference16  PartKind = "udh16" // TS 23.040, 9.2.3.24.8
	ReferenceSAR PartKind = "sar"   // SMPP 3.4, 5.3.2.22 to 5.3.2.24
)

// NamedReference returns the kind of a reference that is a text of the carrier instead of a
// number. Part.Reference is 0.
func NamedReference(name string) PartKind { return PartKind("carrier " + strconv.Quote(name)) }

// Part describes a short message that is a part of a longer one.
type Part struct {
	Kind      PartKind
	Reference uint16
	Total     int // 1 to 255
	Number    int // 1 to Total
}

// PartOf returns Message.Part or, without it, the part that the UDH describes. It returns false
// for a message of one part.
func PartOf(m *Message) (Part, bool) {
	if m.Part != nil {
		return *m.Part, m.Part.Total > 1
	}
	header, err := sms.ParseUDH(m.UDH)
	if err != nil {
		return Part{}, false
	}
	c, ok := header.Concat()
	kind := Reference8
	if c.Wide {
		kind = Reference16
	}
	return Part{Kind: kind, Reference: c.Reference, Total: c.Total, Number: c.Part}, ok && c.Total > 1
}

// groupKey returns a hash of the fields that all parts of a message share: the account, the
// carrier, both numbers, the reference with its kind, and the total.
func groupKey(m *Message, p Part) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %q %q %q %s %d %d", m.Account, m.Carrier, m.From, m.To, p.Kind, p.Reference, p.Total))
	return hex.EncodeToString(sum[:16])
}

// digest returns a hash of a part's content, by which a repeated part is recognised.
func digest(m *Message) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %q %x %x %x", m.Coding, m.Text, m.Octets, m.Data, m.UDH))
	return hex.EncodeToString(sum[:8])
}
