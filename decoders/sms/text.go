package sms

import (
	"cmp"
	"encoding/binary"
	"strings"
	"unicode/utf8"

	"github.com/penstock/penstock/decoders"
)

// Segmenter splits texts into parts. It is read-only and safe for concurrent use.
type Segmenter struct {
	alphabet *Alphabet
}

// New returns a segmenter.
func New() *Segmenter { return &Segmenter{alphabet: NewAlphabet()} }

// Options control how a text is encoded and truncated. With the zero value the text is sent whole.
type Options struct {
	// MaxParts, from 1 to 255, truncates a text that needs more parts. With 0, a text that
	// needs more than 255 parts is an error.
	MaxParts int
	// Reference is the concatenation reference. It must differ from the references of
	// recent messages from the same sender to the same number.
	Reference byte
	// FitsSevenBit reports whether the carrier encodes a text of the GSM alphabet in
	// 7 bits; other texts are sent as UCS-2. nil means that every text of the GSM
	// alphabet fits.
	FitsSevenBit func(text string) bool
}

// Text splits a text into parts. The whole text determines the coding, even if the truncated
// text could be encoded in GSM 7-bit. With MaxParts 1 the text is truncated to one message
// without concatenation (160 or 70 characters). The number of parts does not depend on the
// reference, so that a preview has the same number as the message sent later.
//
// It returns a decoders.Error with format "sms" and field "message" if the
// text is empty, invalid UTF-8 or too long, and with field "max_parts" if that is
// out of range.
func (s *Segmenter) Text(text string, o Options) (Message, error) {
	if o.MaxParts < 0 || o.MaxParts > MaxParts {
		return Message{}, newError("max_parts", -1, "is not 1 to 255")
	}
	if text == "" {
		return Message{}, newError("message", 0, "is empty")
	}
	// Use GSM 7-bit if the alphabet has the text and the carrier supports it, else UCS-2.
	coding := GSM
	code, err := s.alphabet.Encode(text)
	if err != nil || o.FitsSevenBit != nil && !o.FitsSevenBit(text) {
		for i, r := range text {
			if r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD") {
				return Message{}, newError("message", i, "is not valid UTF-8")
			}
		}
		code, coding = EncodeUCS2(text), UCS2
	}
	m := Message{Coding: coding}
	fitted := truncate(code, coding, nil, cmp.Or(o.MaxParts, MaxParts))
	if m.Truncated = len(fitted) < len(code); m.Truncated && o.MaxParts == 0 {
		return Message{}, newError("message", len(s.decode(fitted, coding)), "needs more than 255 parts")
	}
	m.Parts = splitCode(fitted, coding, nil, o.Reference)
	s.setTexts(m.Parts)
	return m, nil
}

func (s *Segmenter) setTexts(parts []Part) {
	for i, p := range parts {
		parts[i].Text = s.decode(p.Data, p.Coding)
	}
}

// decode decodes data that is valid in its coding.
func (s *Segmenter) decode(code []byte, c Coding) string {
	if c == UCS2 {
		return decodeUTF16(code, binary.BigEndian)
	}
	text, _ := s.alphabet.Decode(code)
	return text
}

func newError(field string, offset int, reason string) error {
	return &decoders.Error{Format: "sms", Field: field, Offset: offset, Reason: reason}
}

// CheckText returns a decoders.Error if a text is not valid UTF-8 or has control characters. A
// text that isMultiline may have tabs and line breaks.
func CheckText(format, field, text string, isMultiline bool) error {
	for i, r := range text {
		reason := "control character"
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD"):
			reason = "is not valid UTF-8"
		case isMultiline && (r == '\t' || r == '\n' || r == '\r') || r >= ' ' && r != 0x7F:
			continue
		}
		return &decoders.Error{Format: format, Field: field, Offset: i, Reason: reason}
	}
	return nil
}
