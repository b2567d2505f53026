package message

import (
	"fmt"
	"slices"
	"time"

	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/relay"
)

// Limits of an order.
const (
	maxDestinations = 1000
	maxOrderParts   = 10_000
	maxKey          = 255
	// maxAhead is the largest time until a scheduled message.
	maxAhead = 366 * 24 * time.Hour
)

// Check returns the errors of an order by parameter: destinations, originator,
// message or the Body's own names, send_time, dlr_url, replace, Idempotency-Key.
// A nil Body is not checked.
func (s *Service) Check(o Order) map[string][]string {
	_, p := s.check(o)
	return p
}

// check is Check and also splits the body into parts.
func (s *Service) check(o Order) (encoded Encoded, p relay.Problems) {
	p = relay.Problems{}
	checkDestinations(p, o.Destinations)
	s.checkOriginator(p, o)
	if o.SendAt.After(s.deps.Now().Add(maxAhead)) {
		p.Add("send_time", "The send_time may not be more than a year ahead.")
	}
	if err := o.Report.check(s.deps.CheckURL); err != nil {
		p.Add("dlr_url", fmt.Sprintf("The dlr_url is refused: %v.", err))
	}
	if !printable(o.Key) || len(o.Key) > maxKey {
		p.Add("Idempotency-Key", fmt.Sprintf("The Idempotency-Key must be 1 to %d printable characters of ASCII.", maxKey))
	}
	if o.Body != nil {
		encoded = encodeBody(p, o.Body, s.fitsSevenBit(o.Destinations))
	}
	if n := len(encoded.Parts); o.Replace && n > 1 {
		p.Add("replace", fmt.Sprintf("The replace is for messages of one part, because each part would replace the one before; this message has %d.", n))
	}
	if n := len(encoded.Parts) * len(o.Destinations); n > maxOrderParts {
		p.Add("destinations", fmt.Sprintf("The order has %d parts; at most %d may be sent at once.", n, maxOrderParts))
	}
	return encoded, p
}

func checkDestinations(p relay.Problems, numbers []string) {
	switch {
	case len(numbers) == 0:
		p.Add("destinations", "The destinations field is required.")
	case len(numbers) > maxDestinations:
		p.Add("destinations", fmt.Sprintf("The destinations may not have more than %d items.", maxDestinations))
	}
	wrong := slices.IndexFunc(numbers, func(number string) bool { _, err := relay.ParseMSISDN(number); return err != nil })
	if wrong >= 0 {
		p.Add("destinations", fmt.Sprintf("destinations.%d: %.40q is not a number of 7 to 15 digits, country code first, without a plus sign or leading zeros.", wrong, numbers[wrong]))
	}
}

// fitsSevenBit returns a function that reports whether the carriers of all numbers
// encode a text in 7 bits: an order is split alike for all of its destinations.
func (s *Service) fitsSevenBit(numbers []string) func(text string) bool {
	if s.deps.Submitter == nil {
		return nil
	}
	return func(text string) bool {
		return !slices.ContainsFunc(numbers, func(number string) bool { return !s.deps.Submitter.FitsSevenBit(number, text) })
	}
}

// encodeBody encodes a body in parts and adds its errors.
func encodeBody(p relay.Problems, b Body, fitsSevenBit func(string) bool) Encoded {
	encoded, err := b.Encode(0, fitsSevenBit)
	if err == nil {
		return encoded
	}
	p.AddAll("", relay.FieldsOf(err))
	if len(relay.FieldsOf(err)) == 0 {
		p.Add("message", fmt.Sprintf("The message cannot be sent: %v.", err))
	}
	return Encoded{}
}

func (s *Service) checkOriginator(p relay.Problems, o Order) {
	if o.Originator == "" {
		return
	}
	if !s.alphabet.IsOriginator(o.Originator) {
		p.Add("originator", "The originator must be 1 to 15 digits, with or without a plus sign, or 1 to 11 characters of the GSM alphabet.")
		return
	}
	if s.deps.Submitter == nil {
		return
	}
	for _, number := range o.Destinations {
		if !s.deps.Submitter.AcceptsOriginator(number, sms.NormalizeOriginator(o.Originator)) {
			p.Add("originator", fmt.Sprintf("The carrier of %.40q does not accept this originator.", number))
			return
		}
	}
}

func printable(s string) bool {
	return !slices.ContainsFunc([]byte(s), func(c byte) bool { return c < ' ' || c > '~' })
}
