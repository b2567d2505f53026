package inbound

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/penstock/penstock/decoders/sms"
)

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

// Part names which part of which message a short message is.
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
