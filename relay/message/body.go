package message

import (
	"errors"
	"strings"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/relay"
)

// Text returns a text body that is truncated to at most maxParts parts, 1 to 255;
// 0 sends all of it. A leading byte order mark is removed.
func (s *Service) Text(text string, maxParts int) Body {
	return textBody{segmenter: s.segmenter, text: strings.TrimPrefix(text, "\ufeff"), maxParts: maxParts}
}

// Octets returns a binary body: a binary message, a WAP push, a contact card.
func Octets(o sms.Octets) Body { return octetsBody{o} }

type textBody struct {
	segmenter *sms.Segmenter
	text      string
	maxParts  int
}

func (b textBody) Encode(reference byte, fitsSevenBit func(string) bool) (Encoded, error) {
	return encodedOf(b.segmenter.Text(b.text, sms.Options{MaxParts: b.maxParts, Reference: reference, FitsSevenBit: fitsSevenBit}))
}

type octetsBody struct{ octets sms.Octets }

func (b octetsBody) Encode(reference byte, fitsSevenBit func(string) bool) (Encoded, error) {
	m, err := b.octets.Split(reference)
	if err == nil && m.Coding == sms.GSM && fitsSevenBit != nil && !fitsSevenBit(m.Text()) {
		m, err = sms.Octets{Coding: sms.UCS2, Header: b.octets.Header, Data: sms.EncodeUCS2(m.Text())}.Split(reference)
	}
	return encodedOf(m, err)
}

// encodedOf converts an encoder's message.
func encodedOf(m sms.Message, err error) (Encoded, error) {
	if err != nil {
		return Encoded{}, Unencodable(err)
	}
	out := Encoded{Coding: m.Coding, Parts: make([]Part, len(m.Parts))}
	for i, p := range m.Parts {
		out.Parts[i] = Part{UDH: p.UDH, Data: p.Data, Text: p.Text}
	}
	return out, nil
}

// Unencodable converts an encoder's error into relay.KindInvalid for the
// parameter that it names.
func Unencodable(err error) error {
	refused, ok := errors.AsType[*decoders.Error](err)
	if !ok {
		return err
	}
	return relay.Invalid(refused.Field, "The "+refused.Field+" cannot be sent: "+refused.Error()+".")
}
