package sms

import (
	"strings"

	"github.com/warthog618/sms/encoding/tpdu"
)

// highSurrogate is the first octet, without its last two bits, of the first half of a
// surrogate pair (RFC 2781).
const highSurrogate = 0xD8

// concatenation is the length in octets that an 8-bit reference adds to a header.
const concatenation = 5

// truncate returns the beginning of code that fits maxParts parts: the whole code, or a beginning
// that ends with a whole character.
func truncate(code []byte, c Coding, header UDH, maxParts int) []byte {
	single := room(c, len(header.Append(nil)))
	switch {
	case len(code) <= single:
		return code
	case maxParts == 1:
		return code[:characterBoundary(code, c, single)]
	}
	// Split only the beginning of a long code. A concatenated part has less room than a
	// single one, so the code after the beginning cannot fit.
	chunks := chunksOf(code[:min(len(code), maxParts*single)], c, header, 0)
	length := 0
	for _, t := range chunks[:min(maxParts, len(chunks))] {
		length += len(t.UD)
	}
	return code[:length]
}

// characterBoundary returns offset, or the offset before the character that it would split.
func characterBoundary(code []byte, c Coding, offset int) int {
	switch {
	case c == GSM && code[offset-1] == escape:
		return offset - 1
	case c == UCS2 && code[offset-2]&0xFC == highSurrogate:
		return offset - 2
	}
	return offset
}

// splitCode splits code, which must fit MaxParts parts, into short messages.
func splitCode(code []byte, c Coding, header UDH, reference byte) []Part {
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

// chunksOf splits code with the library. The code must need several parts, and the header
// must leave room for a character in each.
func chunksOf(code []byte, c Coding, header UDH, reference byte) []tpdu.TPDU {
	var t tpdu.TPDU
	t.SetDCS(map[Coding]byte{GSM: 0x00, Binary: 0x04, UCS2: 0x08}[c])
	var udh tpdu.UserDataHeader
	for _, e := range header {
		udh = append(udh, tpdu.InformationElement{ID: e.ID, Data: e.Data})
	}
	t.SetUDH(udh)
	return t.Segment(code, tpdu.WithConcatRef(fixedReference(reference)))
}

// fixedReference is a counter for the library that returns the same reference at each call.
type fixedReference byte

// Count implements tpdu.Counter.
func (f fixedReference) Count() int { return int(f) }

// Limits of a message (TS 23.040, 9.2.3.24).
const (
	MaxParts  = 255 // of a concatenated message
	MaxOctets = 140 // of user data in a part, its header included
)

// Message is a message to one recipient: one part, or several that the phone
// joins. Its cost in credits is the number of its parts.
type Message struct {
	Coding    Coding
	Parts     []Part // never empty; in order
	Truncated bool   // the text was truncated to Options.MaxParts
}

// Text returns the text of all parts; empty for Binary.
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
	// UDH is the user data header with its length octet, or nil. It has
	// the concatenation if the message has several parts.
	UDH []byte
	// Data is the content after the header. A GSM text is unpacked, one septet in each octet,
	// as SMPP and HTTP carriers require.
	Data []byte
	// Text is the part's text in UTF-8; empty for Binary.
	Text string
}

// Octets returns the length of the part's user data with the header and
// with GSM text packed: at most MaxOctets.
func (p Part) Octets() int {
	if p.Coding != GSM {
		return len(p.UDH) + len(p.Data)
	}
	return (7*(headerSeptets(len(p.UDH))+len(p.Data)) + 7) / 8
}

// headerSeptets returns the number of septets that a header of some octets occupies: the text
// begins at the next septet boundary (TS 23.040, 9.2.3.24).
func headerSeptets(octets int) int { return (8*octets + 6) / 7 }

// room returns the number of septets (GSM) or octets that fit a part after a header of some
// octets. It is negative if the header is too long.
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

// Coding is the encoding of a message. The field encoding of a binary message and the
// placeholder %code have the same values.
type Coding int

// The codings.
const (
	GSM    Coding = 7  // 7-bit default alphabet with its extension
	Binary Coding = 8  // octets in a format of the receiver's application
	UCS2   Coding = 16 // big-endian UTF-16
)
