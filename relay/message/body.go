package message

import (
	"errors"
	"strings"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/gsm"
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

func (b textBody) Cut(reference byte, sevenBit func(string) bool) (Cut, error) {
	return cutOf(b.segmenter.Text(b.text, sms.Options{MaxParts: b.maxParts, Reference: reference, Plain: sevenBit}))
}

type octetsBody struct{ octets sms.Octets }

func (b octetsBody) Cut(reference byte, sevenBit func(string) bool) (Cut, error) {
	m, err := b.octets.Split(reference)
	if err == nil && m.Coding == sms.GSM && sevenBit != nil && !sevenBit(m.Text()) {
		m, err = sms.Octets{Coding: sms.UCS2, Header: b.octets.Header, Data: gsm.EncodeUCS2(m.Text())}.Split(reference)
	}
	return cutOf(m, err)
}

// cutOf converts an encoder's message.
func cutOf(m sms.Message, err error) (Cut, error) {
	if err != nil {
		return Cut{}, Unencodable(err)
	}
	cut := Cut{Coding: m.Coding, Parts: make([]Part, len(m.Parts))}
	for i, p := range m.Parts {
		cut.Parts[i] = Part{UDH: p.UDH, Data: p.Data, Text: p.Text}
	}
	return cut, nil
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
