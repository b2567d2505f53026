package message

import (
	"errors"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/relay"
)

// Text is a body of text that is cut to at most so many parts, 1 to 255; 0 sends
// it whole.
func (s *Service) Text(text string, maxParts int) Body {
	return textBody{segmenter: s.segmenter, text: text, maxParts: maxParts}
}

// Octets is a body that is not given as text: a binary message, a WAP push, a
// contact card.
func Octets(o sms.Octets) Body { return octetsBody{o} }

type textBody struct {
	segmenter *sms.Segmenter
	text      string
	maxParts  int
}

func (b textBody) Cut(reference byte) (Cut, error) {
	return encoded(b.segmenter.Text(b.text, sms.Options{MaxParts: b.maxParts, Reference: reference}))
}

type octetsBody struct{ octets sms.Octets }

func (b octetsBody) Cut(reference byte) (Cut, error) { return encoded(b.octets.Split(reference)) }

// encoded takes over what the encoder made.
func encoded(m sms.Message, err error) (Cut, error) {
	if err != nil {
		return Cut{}, Unencodable(err)
	}
	cut := Cut{Coding: Coding(m.Coding), Parts: make([]Part, len(m.Parts))}
	for i, p := range m.Parts {
		cut.Parts[i] = Part{UDH: p.UDH, Data: p.Data, Text: p.Text}
	}
	return cut, nil
}

// Unencodable makes a refusal of an encoder one of the parameter that it names.
func Unencodable(err error) error {
	refused, ok := errors.AsType[*decoders.Error](err)
	if !ok {
		return err
	}
	return relay.Invalid(refused.Field, "The "+refused.Field+" cannot be sent: "+refused.Error()+".")
}
