package message

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/relay"
)

// Order is an account's request to send a message, from any interface.
type Order struct {
	Account      relay.AccountID
	Destinations []string
	Originator   string // empty means the carrier's own
	Body         Body
	// SendAt is the time of sending; a zero or past time means at once.
	SendAt  time.Time
	Report  Report
	Replace bool
	Flash   bool
	// Origin is the interface, IP the client's address.
	Origin string
	IP     string
	// Key is the client's idempotency key; empty disables it.
	Key string
	// KeyRetention is the time for which Key is stored; 0 means a day.
	KeyRetention time.Duration
}

// Preview is the size and the cost of an order.
type Preview struct {
	Parts int // of the message to one destination
	Cost  int64
	// Credit is the account's balance.
	Credit int64
}

// OrderResult is the result of an order.
type OrderResult struct {
	// Messages has one item for each destination, in their order, with the id and the whole
	// text of its message.
	Messages []View `json:"messages"`
	Cost     int64  `json:"cost"`
	// Repeated means that the client's key was used before for the same order: the result is
	// that of the first request, and nothing was charged now.
	Repeated bool `json:"-"`
}

// View is a pending part as the interfaces list it, or in OrderResult a whole message.
type View struct {
	ID                ID        `json:"id"`
	Source            string    `json:"source"`
	Destination       string    `json:"destination"`
	Received          time.Time `json:"received"`
	Scheduled         time.Time `json:"scheduled"`
	OriginalScheduled time.Time `json:"original_scheduled"`
	Data              string    `json:"data"`
}

// View returns a part, counted from 0, as the lists of interfaces show it.
func (m *Message) View(part int) View {
	return View{
		ID: m.PartID(part), Source: m.Originator, Destination: m.Destination, Received: m.ReceivedAt,
		Scheduled: m.Parts[part].ScheduledAt, OriginalScheduled: m.ScheduledFor, Data: m.Body(part),
	}
}

// Body is the content of an order.
type Body interface {
	// Encode encodes the body and splits it into parts. The parts of a concatenated message
	// share the reference. A text of the GSM alphabet for which fitsSevenBit returns false
	// is encoded as UCS-2; a nil fitsSevenBit accepts all texts. Encode returns
	// relay.KindInvalid with the parameter for a body that cannot be sent.
	Encode(reference byte, fitsSevenBit func(text string) bool) (Encoded, error)
}

// Encoded is a body in parts.
type Encoded struct {
	Coding Coding
	Parts  []Part
}

// Text returns a text body that is truncated to at most maxParts parts, 1 to 255; 0 does not
// truncate it. A leading byte order mark is removed.
func (s *Service) Text(text string, maxParts int) Body {
	text = strings.TrimPrefix(text, "\ufeff")
	return encoder(func(reference byte, fitsSevenBit func(string) bool) (sms.Message, error) {
		return s.segmenter.Text(text, sms.Options{MaxParts: maxParts, Reference: reference, FitsSevenBit: fitsSevenBit})
	})
}

// Octets returns a binary body: a binary message, a WAP push, a contact card.
func Octets(o sms.Octets) Body {
	return encoder(func(reference byte, fitsSevenBit func(string) bool) (sms.Message, error) {
		m, err := o.Split(reference)
		if err == nil && m.Coding == sms.GSM && fitsSevenBit != nil && !fitsSevenBit(m.Text()) {
			m, err = sms.Octets{Coding: sms.UCS2, Header: o.Header, Data: sms.EncodeUCS2(m.Text())}.Split(reference)
		}
		return m, err
	})
}

// encoder implements Body with a function that splits a body into short messages.
type encoder func(reference byte, fitsSevenBit func(text string) bool) (sms.Message, error)

func (e encoder) Encode(reference byte, fitsSevenBit func(string) bool) (Encoded, error) {
	m, err := e(reference, fitsSevenBit)
	if err != nil {
		return Encoded{}, Unencodable(err)
	}
	encoded := Encoded{Coding: m.Coding, Parts: make([]Part, len(m.Parts))}
	for i, p := range m.Parts {
		encoded.Parts[i] = Part{UDH: p.UDH, Data: p.Data, Text: p.Text}
	}
	return encoded, nil
}

// Unencodable converts a decoders.Error of an encoder into relay.KindInvalid for the
// parameter in the error. It returns other errors unchanged.
func Unencodable(err error) error {
	codecErr, ok := errors.AsType[*decoders.Error](err)
	if !ok {
		return err
	}
	return relay.Invalid(codecErr.Field, "The "+codecErr.Field+" cannot be sent: "+codecErr.Error()+".")
}

// Limits of an order.
const (
	maxDestinations = 1000
	maxOrderParts   = 10_000
	maxKey          = 255 // characters
	// maxAhead is the longest time from an order to the sending of its messages.
	maxAhead = 366 * 24 * time.Hour
)

// Check returns the errors of an order by parameter: destinations, originator, send_time,
// dlr_url, replace, Idempotency-Key, and message or the parameters that Body.Encode names.
// It does not check a nil Body.
func (s *Service) Check(o Order) map[string][]string {
	_, p := s.check(o)
	return p
}

// check returns the errors of Check and the body in parts.
func (s *Service) check(o Order) (encoded Encoded, p relay.Problems) {
	p = relay.Problems{}
	switch {
	case len(o.Destinations) == 0:
		p.Add("destinations", "The destinations field is required.")
	case len(o.Destinations) > maxDestinations:
		p.Add("destinations", fmt.Sprintf("The destinations may not have more than %d items.", maxDestinations))
	}
	for i, number := range o.Destinations {
		if _, err := relay.ParseMSISDN(number); err != nil {
			p.Add("destinations", fmt.Sprintf("destinations.%d: %.40q is not a number of 7 to 15 digits, country code first, without a plus sign or leading zeros.", i, number))
			break
		}
	}
	s.checkOriginator(p, o)
	if o.SendAt.After(s.deps.Now().Add(maxAhead)) {
		p.Add("send_time", "The send_time may not be more than a year ahead.")
	}
	if err := o.Report.check(s.deps.CheckURL); err != nil {
		p.Add("dlr_url", fmt.Sprintf("The dlr_url is refused: %v.", err))
	}
	if len(o.Key) > maxKey || strings.ContainsFunc(o.Key, func(c rune) bool { return c < ' ' || c > '~' }) {
		p.Add("Idempotency-Key", fmt.Sprintf("The Idempotency-Key must be 1 to %d printable ASCII characters.", maxKey))
	}
	if o.Body != nil {
		var err error
		// The reference is not known yet. The number of parts does not depend on it.
		if encoded, err = o.Body.Encode(0, s.fitsSevenBit(o.Destinations)); err != nil {
			encoded = Encoded{}
			p.AddAll("", relay.FieldsOf(err))
			if len(relay.FieldsOf(err)) == 0 {
				p.Add("message", fmt.Sprintf("The message cannot be sent: %v.", err))
			}
		}
	}
	if n := len(encoded.Parts); o.Replace && n > 1 {
		p.Add("replace", fmt.Sprintf("The replace is only for messages of one part, because each part would replace the one before; this message has %d.", n))
	}
	if n := len(encoded.Parts) * len(o.Destinations); n > maxOrderParts {
		p.Add("destinations", fmt.Sprintf("The order has %d parts; at most %d may be sent at once.", n, maxOrderParts))
	}
	return encoded, p
}

// fitsSevenBit returns a function that reports whether the carriers of all numbers encode a
// text in 7 bits. The messages to all destinations of an order have the same parts.
func (s *Service) fitsSevenBit(numbers []string) func(text string) bool {
	if s.deps.Submitter == nil {
		return nil
	}
	return func(text string) bool {
		return !slices.ContainsFunc(numbers, func(number string) bool { return !s.deps.Submitter.FitsSevenBit(number, text) })
	}
}

func (s *Service) checkOriginator(p relay.Problems, o Order) {
	switch {
	case o.Originator != "" && !s.alphabet.IsOriginator(o.Originator):
		p.Add("originator", "The originator must be 1 to 15 digits, with or without a plus sign, or 1 to 11 characters of the GSM alphabet.")
		return
	case o.Originator == "" || s.deps.Submitter == nil:
		return
	}
	for _, number := range o.Destinations {
		if !s.deps.Submitter.AcceptsOriginator(number, sms.NormalizeOriginator(o.Originator)) {
			p.Add("originator", fmt.Sprintf("The carrier of %.40q does not accept this originator.", number))
			return
		}
	}
}
