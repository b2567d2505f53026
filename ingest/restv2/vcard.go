package restv2

import (
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/decoders/vcard"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/message"
)

// sendCard sends a contact card to the vCard port of phones.
func (s *Surface) sendCard(c *fiber.Ctx) error {
	i, err := inputOf(c)
	if err != nil {
		return err
	}
	o := i.order(c)
	o.Body = i.card()
	if err := s.addProblems(o, i); err != nil {
		return err
	}
	return s.send(c, o)
}

// card reads a contact card; nil if it is none.
func (i input) card() message.Body {
	phone := i.phones()
	card := vcard.Card{
		FirstName: i.Required("first_name"), LastName: i.Required("last_name"),
		Mobile: phone.Text("phone.mobile"), Home: phone.Text("phone.home"),
		Work: phone.Text("phone.work"), Fax: phone.Text("phone.fax"),
		Email: i.Text("email"), BirthDate: i.Text("birth_date"), Note: i.Text("note"),
	}
	i.AddAll("", phone.Problems)
	version, err := vcard.ParseVersion(i.Text("version"))
	if err != nil && len(i.Problems["version"]) == 0 {
		i.Add("version", "The version must be 2.1, 3.0 or 4.0.")
	}
	if len(i.Problems) > 0 {
		return nil
	}
	octets, err := card.Message(version)
	if err != nil {
		i.AddAll("", relay.FieldsOf(message.Unencodable(err)))
		return nil
	}
	return cardBody{message.Octets(octets)}
}

// cardBody is a card that may be too long. No parameter is called data: it is the
// note that has no bound to speak of.
type cardBody struct{ message.Body }

// Encode names the note where the card cannot be sent.
func (b cardBody) Encode(reference byte, plain func(string) bool) (message.Encoded, error) {
	encoded, err := b.Body.Encode(reference, plain)
	if len(relay.FieldsOf(err)["data"]) > 0 {
		return encoded, relay.Invalid("note", "The card needs more than 255 parts: the note must be shorter.")
	}
	return encoded, err
}

// phones reads the numbers of the phone object, named as errors and queries name
// them.
func (i input) phones() input {
	value := i.Value("phone")
	object, ok := value.(map[string]any)
	if !ok && value != nil {
		i.Add("phone", "The phone must be an object.")
	}
	return inputFrom(func(name string) (any, bool) {
		if v, present := object[strings.TrimPrefix(name, "phone.")]; present {
			return v, true
		}
		return i.Get(name)
	})
}
