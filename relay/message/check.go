package message

import (
	"fmt"
	"slices"
	"time"
	"unicode"

	"github.com/penstock/penstock/relay"
)

// Limits of an order.
const (
	maxDestinations = 1000
	maxOrderParts   = 10_000
	maxKey          = 255
	// maxAhead is how far ahead a message may be scheduled.
	maxAhead = 366 * 24 * time.Hour
)

// problem collects what is wrong with parameters, by the names they have in
// REST.
type problem map[string][]string

func (p problem) add(field, format string, args ...any) {
	p[field] = append(p[field], fmt.Sprintf(format, args...))
}

// err returns all that is wrong, or nil.
func (p problem) err() error {
	if len(p) == 0 {
		return nil
	}
	return &relay.Error{Kind: relay.KindInvalid, Message: "invalid parameters", Fields: p}
}

// Check finds what is wrong with an order, by parameter: destinations,
// originator, message or what else its Body calls it, send_time, dlr_url,
// Idempotency-Key. A Body that is nil is not looked at.
func (s *Service) Check(o Order) map[string][]string {
	_, p := s.check(o)
	return p
}

// check cuts the body as well.
func (s *Service) check(o Order) (cut Cut, p problem) {
	p = problem{}
	checkDestinations(p, o.Destinations)
	if o.Originator != "" && !s.originator(o.Originator) {
		p.add("originator", "The originator must be 1 to 15 digits, or 1 to 11 letters and digits.")
	}
	if o.SendAt.After(s.o.Now().Add(maxAhead)) {
		p.add("send_time", "The send_time may not be more than a year ahead.")
	}
	if err := o.Report.check(s.deps.CheckURL); err != nil {
		p.add("dlr_url", "The dlr_url is refused: %v.", err)
	}
	if !printable(o.Key) || len(o.Key) > maxKey {
		p.add("Idempotency-Key", "The Idempotency-Key must be 1 to %d printable characters of ASCII.", maxKey)
	}
	if o.Body != nil {
		cut = p.cut(o.Body)
	}
	if n := len(cut.Parts) * len(o.Destinations); n > maxOrderParts {
		p.add("destinations", "The order has %d parts; at most %d may be sent at once.", n, maxOrderParts)
	}
	return cut, p
}

func checkDestinations(p problem, all []string) {
	switch {
	case len(all) == 0:
		p.add("destinations", "The destinations field is required.")
	case len(all) > maxDestinations:
		p.add("destinations", "The destinations may not have more than %d items.", maxDestinations)
	}
	wrong := slices.IndexFunc(all, func(number string) bool { _, err := relay.ParseMSISDN(number); return err != nil })
	if wrong >= 0 {
		p.add("destinations", "destinations.%d: %.40q is no number of 7 to 15 digits, country code first, without a plus sign or leading zeros.", wrong, all[wrong])
	}
}

// cut cuts a body and adds what is wrong with it.
func (p problem) cut(b Body) Cut {
	cut, err := b.Cut(0)
	if err == nil {
		return cut
	}
	for field, reasons := range relay.FieldsOf(err) {
		p[field] = append(p[field], reasons...)
	}
	if len(relay.FieldsOf(err)) == 0 {
		p.add("message", "The message cannot be sent: %v.", err)
	}
	return Cut{}
}

// originator reports whether phones can show a sender: 1 to 15 digits, or 1 to 11
// letters and digits of the GSM alphabet.
func (s *Service) originator(text string) bool {
	length, number := 0, true
	for _, r := range text {
		length++
		if r >= '0' && r <= '9' {
			continue
		}
		if number = false; !s.letter(r) {
			return false
		}
	}
	return length <= 11 || number && length <= 15
}

// letter reports whether a character is a letter of the GSM alphabet.
func (s *Service) letter(r rune) bool { return unicode.IsLetter(r) && s.alphabet.Fits(string(r)) }

func printable(s string) bool {
	return !slices.ContainsFunc([]byte(s), func(c byte) bool { return c < ' ' || c > '~' })
}
