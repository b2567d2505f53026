package sms

import (
	"encoding/binary"
	"strings"
	"unicode/utf8"

	"github.com/penstock/penstock/decoders"
)

// Segmenter cuts texts into parts. It is read-only and safe for concurrent use.
type Segmenter struct {
	alphabet *Alphabet
}

// New returns a segmenter.
func New() *Segmenter { return &Segmenter{alphabet: NewAlphabet()} }

// Options control the truncation and the numbers of a text's parts; the zero value sends it
// whole.
type Options struct {
	// MaxParts truncates a text that needs more parts: 1 to 255. 0 truncates
	// nothing; a text that needs more than 255 parts is an error then.
	MaxParts int
	// Reference is shared by the parts of one message and differs from those of
	// the messages that the same sender sent to the same number shortly before.
	Reference byte
	// FitsSevenBit reports whether the carrier encodes a text of the GSM alphabet in
	// 7 bits; other texts are sent as UCS-2. nil means that every text of the GSM
	// alphabet fits.
	FitsSevenBit func(text string) bool
}

// Text cuts a text into parts. The coding is that of the whole text, also when
// what is left of it after truncation would need less; with MaxParts 1 what is
// left is one message without concatenation (160 or 70 characters).
//
// Preview and send use the same function, so that they count alike: the number
// of parts does not depend on the reference.
//
// It returns a decoders.Error with format "sms" and field "message" when the
// text is empty, no UTF-8 or too long, and with field "max_parts" when that is
// out of range.
func (s *Segmenter) Text(text string, o Options) (Message, error) {
	if o.MaxParts < 0 || o.MaxParts > MaxParts {
		return Message{}, refuse("max_parts", -1, "is not 1 to 255")
	}
	if text == "" {
		return Message{}, refuse("message", 0, "is empty")
	}
	// Pick the coding: what the alphabet has, and the carrier writes, is GSM, all else UCS-2.
	coding := GSM
	code, err := s.alphabet.Encode(text)
	if err != nil || o.FitsSevenBit != nil && !o.FitsSevenBit(text) {
		for i, r := range text {
			if r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD") {
				return Message{}, refuse("message", i, "is not UTF-8")
			}
		}
		code, coding = EncodeUCS2(text), UCS2
	}
	limit := o.MaxParts
	if limit == 0 {
		limit = MaxParts
	}
	m := Message{Coding: coding}
	fitted := fit(code, coding, nil, limit)
	if m.Truncated = len(fitted) < len(code); m.Truncated && o.MaxParts == 0 {
		return Message{}, refuse("message", len(s.decode(fitted, coding)), "needs more than 255 parts")
	}
	m.Parts = parts(fitted, coding, nil, o.Reference)
	s.read(m.Parts)
	return m, nil
}

// read gives parts of text the text that their data is.
func (s *Segmenter) read(parts []Part) {
	for i, p := range parts {
		parts[i].Text = s.decode(p.Data, p.Coding)
	}
}

// decode is the text of data that was encoded or checked: there is no error to
// be had.
func (s *Segmenter) decode(code []byte, c Coding) string {
	if c == UCS2 {
		return decodeUTF16(code, binary.BigEndian)
	}
	text, _ := s.alphabet.Decode(code)
	return text
}

func refuse(field string, offset int, reason string) error {
	return &decoders.Error{Format: "sms", Field: field, Offset: offset, Reason: reason}
}
