package restv2

import (
	"encoding/json"
	"maps"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/utils"

	"github.com/penstock/penstock/decoders/iso8601"
	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/decoders/vcard"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/message"
)

const origin = "rest"

// deleteMessage removes a pending part, which the interface calls a message, and refunds it.
func (s *Surface) deleteMessage(c *fiber.Ctx) error {
	id, ok := message.ParseID(params.Path(c, "message"))
	if !ok {
		return relay.Invalid("message", "The message must be the id of a pending message.")
	}
	if err := s.deps.Messages.Delete(c.UserContext(), httpd.AccountOf(c), id); err != nil {
		return err
	}
	return c.SendStatus(fiber.StatusNoContent)
}

func (s *Surface) listPending(c *fiber.Ctx) error {
	page, err := pageOf(c)
	if err != nil {
		return err
	}
	entries, total, err := s.deps.Messages.Pending(c.UserContext(), httpd.AccountOf(c), page.Offset(), page.PerPage)
	if err != nil {
		return err
	}
	pending := httpd.Each(entries, pendingJSONOf)
	for i := range pending {
		if !httpd.SeesSecrets(c) {
			pending[i].Data = ""
		}
	}
	return sendPage(c, page, pending, total)
}

func (s *Surface) previewMessage(c *fiber.Ctx) error {
	o, err := s.textOrder(c)
	if err != nil {
		return err
	}
	v, err := s.deps.Messages.Preview(c.UserContext(), o)
	if err != nil {
		return err
	}
	return answerData(c, previewOf(o, v))
}

// sendMessage charges for a message and queues it.
func (s *Surface) sendMessage(c *fiber.Ctx) error {
	o, err := s.textOrder(c)
	if err != nil {
		return err
	}
	return s.send(c, o)
}

func (s *Surface) send(c *fiber.Ctx, o message.Order) error {
	o.Key = utils.CopyString(c.Get("Idempotency-Key"))
	sent, err := s.deps.Messages.Send(c.UserContext(), o)
	if err != nil {
		return err
	}
	if sent.Repeated {
		c.Set("Idempotency-Replayed", "true")
	}
	views := httpd.Each(sent.Messages, pendingJSONOf)
	httpd.NoteOf(c).After = httpd.Each(sent.Messages, func(m message.View) fiber.Map {
		return fiber.Map{"id": m.ID, "destination": m.Destination} // without the text
	})
	return sendPage(c, relay.Page{Number: 1, PerPage: len(views)}, views, len(views))
}

// textOrder reads the order of preview and send. Its error names all invalid parameters.
func (s *Surface) textOrder(c *fiber.Ctx) (message.Order, error) {
	i, err := inputOf(c)
	if err != nil {
		return message.Order{}, err
	}
	o := i.order(c)
	o.Replace, o.Flash = i.flag("replace"), i.flag("flash")
	text, parts := i.Required("message"), i.parts()
	if text != "" && len(i.Problems["max_parts"]) == 0 {
		o.Body = s.deps.Messages.Text(text, parts)
	}
	return o, s.addProblems(o, i)
}

// addProblems adds the problems of the order to the problems of the parameters, so that one answer
// has all of them. It adds nothing if the parameters have no problems.
func (s *Surface) addProblems(o message.Order, i input) error {
	if i.Err() == nil {
		return nil // Send and Preview check the order themselves
	}
	p := i.Problems
	orderProblems := s.deps.Messages.Check(o)
	maps.DeleteFunc(orderProblems, func(field string, _ []string) bool { return len(p[field]) > 0 })
	maps.Copy(p, orderProblems)
	return p.Err()
}

// order reads the parameters of every operation that sends.
func (i input) order(c *fiber.Ctx) message.Order {
	o := message.Order{
		Account: httpd.AccountOf(c), Destinations: i.numbers("destinations"), Originator: i.Text("originator"),
		SendAt: i.timestamp("send_time"), Report: message.Report{URL: i.Text("dlr_url")},
		Origin: origin, IP: httpd.ClientIP(c),
	}
	httpd.NoteOf(c).Request = map[string]any{"destinations": o.Destinations, "originator": o.Originator} // without the text
	return o
}

// numbers reads an array of phone numbers, which may be JSON strings or numbers.
func (i input) numbers(name string) []string {
	if values, ok := i.Value(name).([]any); ok {
		for index, v := range values {
			if n, ok := v.(json.Number); ok {
				values[index] = n.String()
			}
		}
	}
	return i.Texts(name)
}

// timestamp reads an optional time. A day without a time is invalid.
func (i input) timestamp(name string) time.Time {
	text := strings.TrimSpace(i.Text(name))
	if text == "" {
		return time.Time{}
	}
	if _, day := iso8601.ParseDay(text); day {
		i.AddProblem(name, "The %s must be a date and a time like 2026-01-31 12:00:00.")
		return time.Time{}
	}
	return i.date(name, 0)
}

// parts reads max_parts; 0 if it is missing.
func (i input) parts() int {
	n := i.Integer("max_parts")
	if n == nil {
		return 0
	}
	if *n < 1 || *n > sms.MaxParts {
		i.Add("max_parts", "The max_parts must be a number from 1 to 255.")
	}
	return int(*n)
}

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

// card reads a contact card; nil if it is invalid.
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

// cardBody is a contact card. If it is too long, the error names the note, which is the only
// field without a small limit, instead of data, which is not a parameter.
type cardBody struct{ message.Body }

// Encode encodes the card.
func (b cardBody) Encode(reference byte, plain func(string) bool) (message.Encoded, error) {
	encoded, err := b.Body.Encode(reference, plain)
	if len(relay.FieldsOf(err)["data"]) > 0 {
		return encoded, relay.Invalid("note", "The card needs more than 255 parts: the note must be shorter.")
	}
	return encoded, err
}

// phones returns the parameters of the object phone, with names like phone.mobile in errors and
// queries.
func (i input) phones() input {
	value := i.Value("phone")
	object, ok := value.(map[string]any)
	if !ok && value != nil {
		i.Add("phone", "The phone must be an object.")
	}
	return input{params.New(func(name string) (any, bool) {
		if v, present := object[strings.TrimPrefix(name, "phone.")]; present {
			return v, true
		}
		return i.Get(name)
	}, parameterName)}
}

func (s *Surface) getCredit(c *fiber.Ctx) error {
	n, err := s.deps.Balance(c.UserContext(), httpd.AccountOf(c))
	if err != nil {
		return err
	}
	return answerData(c, fiber.Map{"credit": n})
}
