package restv2

import (
	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/decoders/vcard"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/message"
)

// sendCard sends a contact card to the vCard port of phones.
func (s *Surface) sendCard(c *fiber.Ctx) error {
	in, err := inputOf(c)
	if err != nil {
		return err
	}
	p := relay.Problems{}
	o := in.order(c, p)
	if o.Body = in.card(p); len(p) > 0 {
		return s.complete(o, p)
	}
	return s.send(c, o)
}

// card reads a contact card; nil if it is none.
func (in input) card(p relay.Problems) message.Body {
	phone := in.phones(p)
	card := vcard.Card{
		FirstName: in.required(p, "first_name"), LastName: in.required(p, "last_name"),
		Mobile: phone.text(p, "phone.mobile"), Home: phone.text(p, "phone.home"),
		Work: phone.text(p, "phone.work"), Fax: phone.text(p, "phone.fax"),
		Email: in.text(p, "email"), BirthDate: in.text(p, "birth_date"), Note: in.text(p, "note"),
	}
	version, err := vcard.ParseVersion(in.text(p, "version"))
	if err != nil && len(p["version"]) == 0 {
		p.Add("version", "The version must be 2.1, 3.0 or 4.0.")
	}
	if len(p) > 0 {
		return nil
	}
	octets, err := card.Message(version)
	if err != nil {
		for field, reasons := range relay.FieldsOf(message.Unencodable(err)) {
			p[field] = append(p[field], reasons...)
		}
		return nil
	}
	return cardBody{message.Octets(octets)}
}

// cardBody is a card that may be too long. No parameter is called data: it is the
// note that has no bound to speak of.
type cardBody struct{ message.Body }

// Cut names the note where the card cannot be sent.
func (b cardBody) Cut(reference byte, plain func(string) bool) (message.Cut, error) {
	cut, err := b.Body.Cut(reference, plain)
	if len(relay.FieldsOf(err)["data"]) > 0 {
		return cut, relay.Invalid("note", "The card needs more than 255 parts: the note must be shorter.")
	}
	return cut, err
}

// phones reads the numbers of the phone object, named as errors name them.
func (in input) phones(p relay.Problems) input {
	out := input{}
	for _, name := range []string{"mobile", "home", "work", "fax"} {
		out["phone."+name] = in["phone."+name] // as a query has it
	}
	switch v := in["phone"].(type) {
	case nil:
	case map[string]any:
		for name, number := range v {
			out["phone."+name] = number
		}
	default:
		p.Add("phone", "The phone must be an object.")
	}
	return out
}
