package carrier

import (
	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay/inbound"
)

// Adapter implements the HTTP interface of one carrier for inbound messages.
type Adapter struct {
	// Parse parses a post. It sets the fields of each message that the carrier sends;
	// the processor sets the id, the account and the time of receipt. The error is
	// params.ErrSyntax, relay.KindInvalid with the fields, or notMessage; the messages
	// that could be parsed are returned with it.
	Parse func(e *intake.Entry) ([]inbound.Message, error)
	// Verify checks the carrier's signature with the token's secret; nil for a carrier
	// that does not sign.
	Verify func(r *Signed, secret string) error
	// Answer writes the success response; id is the event's.
	Answer func(c *fiber.Ctx, id string) error
}

// Adapters returns the adapters by their name in the path.
func Adapters() map[string]Adapter {
	alphabet := sms.NewAlphabet()
	// read is for parsers that choose the fields of their form, fields for those whose form
	// has the fields of the post.
	read := func(parse func(*sms.Alphabet, *intake.Entry) ([]inbound.Message, error)) func(*intake.Entry) ([]inbound.Message, error) {
		return func(e *intake.Entry) ([]inbound.Message, error) { return parse(alphabet, e) }
	}
	fields := func(parse func(*form, object) ([]inbound.Message, error)) func(*intake.Entry) ([]inbound.Message, error) {
		return func(e *intake.Entry) ([]inbound.Message, error) {
			o, err := fieldsOf(e)
			if err != nil {
				return nil, err
			}
			return parse(newForm(alphabet, o.get), o)
		}
	}
	return map[string]Adapter{
		"json": {Parse: read(parseJSON), Answer: func(c *fiber.Ctx, id string) error {
			return c.JSON(fiber.Map{"data": fiber.Map{"id": id}}) // of the event
		}},
		"kannel":  {Parse: read(parseKannel), Answer: empty},
		"twilio":  {Parse: fields(parseTwilio), Verify: verifyTwilio, Answer: answerXML("text/xml; charset=utf-8")},
		"vonage":  {Parse: fields(parseVonage), Verify: verifyVonage, Answer: empty},
		"infobip": {Parse: fields(parseInfobip), Answer: empty},
		"plivo":   {Parse: fields(parsePlivo), Verify: newNonces().verifyPlivo, Answer: answerXML("application/xml")},
		"sinch":   {Parse: fields(parseSinch), Verify: verifySinch, Answer: empty},
		"android": {Parse: read(parseAndroid), Verify: verifyAndroid, Answer: empty},
	}
}

// empty answers 200 without a body; SendStatus would write "OK", which Kannel would send
// to the sender as an SMS.
func empty(c *fiber.Ctx, _ string) error {
	c.Status(fiber.StatusOK)
	return nil
}
