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

// Status is the value of the placeholder %stat.
type Status int

// The statuses. Concatenated is a message joined from parts, or a single part.
const (
	Normal         Status = 0
	Concatenated   Status = 1
	Indecipherable Status = 2 // the UDH cannot be read, or names an unknown language table
)

// Message is a short message as a carrier delivered it.
type Message struct {
	// ID is ours and derives from the journal's record, so that processing the
	// record again is idempotent.
	ID string
	// Account is the one whose token handed it over; 0 for carriers configured
	// in the file, which route over all accounts.
	Account relay.AccountID
	// Carrier names the carrier that delivered it; CarrierID is the carrier's id of
	// the message, empty if it gives none. Together they identify the message.
	Carrier   string
	CarrierID string
	From      string // digits, or an alphanumeric sender as it came
	To        string // digits
	Text      string // for GSM and Unicode
	Data      []byte // for Binary
	UDH       []byte // with its length octet
	// Part is set by carriers that report it outside the UDH; see PartOf.
	Part *Part `json:",omitempty"`
	// Octets are a part's text as it was on the air, if the carrier gave it so:
	// septets one per octet, or UTF-16. A character may go on in the next part.
	Octets []byte `json:",omitempty"`
	Coding sms.Coding
	Status Status
	// Notes say what of the message was accepted but not used.
	Notes  decoders.Notes `json:",omitempty"`
	SentAt time.Time      // zero when the carrier does not say
	// ReceivedAt is the time at which the gateway took it.
	ReceivedAt time.Time
	// Network is the originating network's name, Reference the
	// carrier's name of the connection.
	Network   string
	Reference string
	// Trace is the span of its processing; empty for none.
	Trace tracing.Parent `json:",omitempty"`
}

// Body is the message as text: a binary one in lower-case hex.
func (m *Message) Body() string {
	if m.Coding == sms.Binary {
		return hex.EncodeToString(m.Data)
	}
	return m.Text
}

// TrimText removes what is not part of a message's text: a byte order mark in front, which
// describes how the text was coded, and NULs behind, with which some senders end it. A part
// that is not the first keeps its mark.
func TrimText(m *Message) {
	m.Text = strings.TrimRight(m.Text, "\x00")
	if p, ok := PartOf(m); !ok || p.Number == 1 {
		m.Text = strings.TrimPrefix(m.Text, "\ufeff")
	}
}

// LanguagesOf are the national language tables of a 7-bit text, off its UDH.
func LanguagesOf(m *Message) sms.Languages {
	header, _ := sms.ParseUDH(m.UDH) // one that cannot be read names none
	return header.Languages()
}

// NotesOf returns the notes of a message, first about its UDH.
func NotesOf(m *Message) (notes decoders.Notes) {
	if _, err := sms.ParseUDH(m.UDH); err != nil {
		notes.Add("its user data header cannot be read: " + err.Error())
	} else if l := LanguagesOf(m); m.Coding == sms.GSM && l != l.Known() {
		notes.Add(fmt.Sprintf("its language tables %d (locking) and %d (single shift) are not both known; the default one stands for the other", l.Locking, l.Single))
	}
	notes.Add(m.Notes...)
	return notes
}

// StatusOf reads the status of a message that was not joined off its UDH.
func StatusOf(udh []byte) Status {
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

// NamedReference is the kind of a reference that is a name of the carrier's own
// rather than a number; Part.Reference is 0.
func NamedReference(name string) PartKind { return PartKind("carrier " + strconv.Quote(name)) }

// Part is the place of a short message in a message of several parts.
type Part struct {
	Kind      PartKind
	Reference uint16
	Total     int // 1 to 255
	Number    int // 1 to Total
}

// PartOf returns which part a message is: as the carrier says (Message.Part),
// else as its UDH does. A message of one part is whole and is none.
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

// groupKey is the same for all parts of a message and for no others: the
// account, the carrier, both numbers, the reference with its width, the total.
func groupKey(m *Message, p Part) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %q %q %q %s %d %d", m.Account, m.Carrier, m.From, m.To, p.Kind, p.Reference, p.Total))
	return hex.EncodeToString(sum[:16])
}

// digest is the same for a part that comes twice.
func digest(m *Message) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %q %x %x %x", m.Coding, m.Text, m.Octets, m.Data, m.UDH))
	return hex.EncodeToString(sum[:8])
}
