package carrier

import (
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay/inbound"
)

// parseTwilio reads the parameters of Twilio's webhook for incoming messages
// (Messaging webhooks, "Parameters in Twilio's request"), a form or a query.
// Twilio has joined the parts; the addresses of media follow the text.
func parseTwilio(alphabet *sms.Alphabet, e *intake.Entry) ([]inbound.Message, error) {
	o, err := fieldsOf(e)
	if err != nil {
		return nil, err
	}
	id := o.first("MessageSid", "SmsMessageSid", "SmsSid")
	if status := o.first("MessageStatus", "SmsStatus"); !o.has("Body") && status != "" && !strings.HasPrefix(status, "receiv") {
		return nil, receiptOf(id, status)
	}
	f := newForm(o.get)
	m := inbound.Message{CarrierID: f.id("MessageSid", id), Reference: f.optional("AccountSid", maxName)}
	f.addresses(&m, "From", "To")
	f.whole(alphabet, &m, "Body", media(o, "NumMedia", "MediaUrl", 0))
	return f.one(m)
}

// media lists the addresses of a message's media, numbered from a first.
func media(o object, count, name string, first int) (urls []string) {
	n, _ := strconv.Atoi(o.text(count))
	for i := first; i < first+min(n, 100); i++ {
		if u := o.text(name + strconv.Itoa(i)); u != "" {
			urls = append(urls, u)
		}
	}
	return urls
}

// noInstructions is the answer of who has nothing to say to the sender, in the
// language that Twilio and Plivo share.
const noInstructions = `<?xml version="1.0" encoding="UTF-8"?><Response></Response>`

func answerXML(mime string) func(c *fiber.Ctx, id string) error {
	return func(c *fiber.Ctx, _ string) error {
		c.Set(fiber.HeaderContentType, mime)
		return c.Status(fiber.StatusOK).SendString(noInstructions)
	}
}
