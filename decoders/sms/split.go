package sms

import (
	"strings"

	"github.com/warthog618/sms/encoding/tpdu"
)

// highSurrogate begins a pair of UTF-16 (0xD8 to 0xDB, RFC 2781). It is never the last
// of a part, and neither is escape.
const highSurrogate = 0xD8

// concatenation is the length in octets that an 8-bit reference adds to a header.
const concatenation = 5

// fit returns the beginning of code that so many parts hold: all of it, or up
// to the last whole character.
func fit(code []byte, c Coding, header UDH, limit int) []byte {
	alone := room(c, len(header.Append(nil)))
	switch {
	case len(code) <= alone:
		return code
	case limit == 1:
		return code[:characterBoundary(code, c, alone)]
	}
	// A concatenated part holds less than one alone, so that what is left off here
	// cannot fit, and the boundaries before it stay where they are.
	chunks := chunksOf(code[:min(len(code), limit*alone)], c, header, 0)
	length := 0
	for _, t := range chunks[:min(limit, len(chunks))] {
		length += len(t.UD)
	}
	return code[:length]
}

// characterBoundary moves a cut in front of the character that it would split.
func characterBoundary(code []byte, c Coding, offset int) int {
	switch {
	case c == GSM && code[offset-1] == escape:
		return offset - 1
	case c == UCS2 && code[offset-2]&0xFC == highSurrogate:
		return offset - 2
	}
	return offset
}

// parts makes the short messages of what fit found to fit 255 of them.
func parts(code []byte, c Coding, header UDH, reference byte) []Part {
	udh := header.Append(nil)
	if len(code) <= room(c, len(udh)) {
		return []Part{{Coding: c, UDH: udh, Data: code}}
	}
	chunks := chunksOf(code, c, header, reference)
	list := make([]Part, len(chunks))
	for i, t := range chunks {
		header := make(UDH, len(t.UDH))
		for k, e := range t.UDH {
			header[k] = Element{ID: e.ID, Data: e.Data}
		}
		list[i] = Part{Coding: c, UDH: header.Append(nil), Data: t.UD}
	}
	return list
}

// chunksOf has the library draw the boundaries. The code must need several
// parts and the header leave room for a character in each.
func chunksOf(code []byte, c Coding, header UDH, reference byte) []tpdu.TPDU {
	var t tpdu.TPDU
	t.SetDCS(map[Coding]byte{GSM: 0x00, Binary: 0x04, UCS2: 0x08}[c])
	var udh tpdu.UserDataHeader
	for _, e := range header {
		udh = append(udh, tpdu.InformationElement{ID: e.ID, Data: e.Data})
	}
	t.SetUDH(udh)
	return t.Segment(code, tpdu.WithConcatRef(fixed(reference)))
}

// fixed is a reference that is known, where the library would count.
type fixed byte

// Count returns the reference.
func (f fixed) Count() int { return int(f) }

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
	Truncated bool   // text was left out, as Options.MaxParts requires
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
