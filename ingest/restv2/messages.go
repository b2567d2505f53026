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
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/message"
)

// origin is what messages of this surface are said to come from.
const origin = "rest"

// deleteMessage removes a pending message and gives its credit back.
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

// listPending lists what is not sent yet, part by part.
func (s *Surface) listPending(c *fiber.Ctx) error {
	page, err := pageOf(c)
	if err != nil {
		return err
	}
	entries, total, err := s.deps.Messages.Pending(c.UserContext(), httpd.AccountOf(c), page.Offset(), page.PerPage)
	if err != nil {
		return err
	}
	pending := httpd.Each(entries, pendingOf)
	for i := range pending {
		if !httpd.SeesSecrets(c) {
			pending[i].Data = ""
		}
	}
	return paged(c, page, pending, total)
}

// previewMessage says what a message would come to.
func (s *Surface) previewMessage(c *fiber.Ctx) error {
	o, err := s.textOrder(c)
	if err != nil {
		return err
	}
	v, err := s.deps.Messages.Preview(c.UserContext(), o)
	if err != nil {
		return err
	}
	return data(c, previewOf(o, v))
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
	views := httpd.Each(sent.Messages, pendingOf)
	httpd.NoteOf(c).After = httpd.Each(sent.Messages, func(m message.Entry) fiber.Map {
		return fiber.Map{"id": m.ID, "destination": m.Destination} // without the text
	})
	return paged(c, relay.Page{Number: 1, PerPage: len(views)}, views, len(views))
}

// textOrder reads the body of preview and send, and names all that is wrong.
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

// addProblems adds the errors of the order to the parameters that could not be read, so
// that one answer names all.
func (s *Surface) addProblems(o message.Order, i input) error {
	if i.Err() == nil {
		return nil // Send and Preview check the order themselves
	}
	p := i.Problems
	result := s.deps.Messages.Check(o)
	maps.DeleteFunc(result, func(field string, _ []string) bool { return len(p[field]) > 0 })
	maps.Copy(p, result)
	return p.Err()
}

// order reads what every operation that sends takes.
func (i input) order(c *fiber.Ctx) message.Order {
	o := message.Order{
		Account: httpd.AccountOf(c), Destinations: i.numbers("destinations"), Originator: i.Text("originator"),
		SendAt: i.moment("send_time"), Report: message.Report{URL: i.Text("dlr_url")},
		Origin: origin, IP: httpd.ClientIP(c),
	}
	httpd.NoteOf(c).Request = map[string]any{"destinations": o.Destinations, "originator": o.Originator} // without the text
	return o
}

// numbers reads an array of numbers, which may be written without quotes.
func (i input) numbers(name string) []string {
	if values, ok := i.Value(name).([]any); ok {
		for i, v := range values {
			if n, ok := v.(json.Number); ok {
				values[i] = n.String()
			}
		}
	}
	return i.Texts(name)
}

// moment reads a time that may be missing; a day alone is none.
func (i input) moment(name string) time.Time {
	text := strings.TrimSpace(i.Text(name))
	if text == "" {
		return time.Time{}
	}
	if _, day := iso8601.ParseDay(text); day {
		i.Wrong(name, "The %s must be a date and a time like 2026-01-31 12:00:00.")
		return time.Time{}
	}
	return i.date(name, 0)
}

// parts reads max_parts; 0 if it is not given.
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
