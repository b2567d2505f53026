package sms

import "strings"

// Limits of a message (TS 23.040, 9.2.3.24).
const (
	MaxParts  = 255 // of a concatenated message
	MaxOctets = 140 // of user data in a part, its header included
)

// Message goes to one recipient: one part, or several that the phone
// joins. Its cost in credits is the number of its parts.
type Message struct {
	Coding    Coding
	Parts     []Part // never empty; in order
	Truncated bool   // text was left out, as Options.MaxParts asked
}

// Text is the whole message's text as it was cut; empty for Binary.
func (m Message) Text() string {
	var b strings.Builder
	for _, p := range m.Parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// Part is one short message.
type Part struct {
	Coding Coding
	// UDH is the user data header with its length octet, nil for none. It has
	// the concatenation when the message has several parts.
	UDH []byte
	// Data is the content behind the header: for GSM unpacked, one septet in each octet, as
	// SMPP and HTTP carriers take it; else the octets.
	Data []byte
	// Text is the part's text in UTF-8; empty for Binary. The texts of all parts
	// joined are the message's text, as far as it was not truncated.
	Text string
}

// Octets is the length of the part's user data on the air, with the header and
// with GSM text packed: at most MaxOctets.
func (p Part) Octets() int {
	if p.Coding != GSM {
		return len(p.UDH) + len(p.Data)
	}
	return (7*(headerSeptets(len(p.UDH))+len(p.Data)) + 7) / 8
}

// headerSeptets returns the number of septets of a header with so many octets: text begins at
// the next septet's border behind it (TS 23.040, 9.2.3.24).
func headerSeptets(octets int) int { return (8*octets + 6) / 7 }

// room returns the number of septets (GSM) or octets of a part behind a header of so many
// octets; below zero when the header itself is too long.
func room(c Coding, header int) int {
	switch c {
	case GSM:
		return MaxOctets*8/7 - headerSeptets(header)
	case UCS2:
		return (MaxOctets - header) &^ 1
	default:
		return MaxOctets - header
	}
}

// Coding is the encoding of a message on the air. The values are those of the binary
// operation's encoding and of the placeholder %code.
type Coding int

// The codings.
const (
	GSM    Coding = 7  // 7-bit default alphabet with its extension
	Binary Coding = 8  // octets that only the receiver understands
	UCS2   Coding = 16 // big-endian UTF-16
)
