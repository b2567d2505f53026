package carrier

import (
	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay/inbound"
)

// Adapter parses and answers the inbound messages of one carrier. An SMPP adapter has only Parse.
type Adapter struct {
	// Parse parses a post. The Processor sets the ids, accounts and times of receipt of the
	// messages. The error of an HTTP adapter is params.ErrSyntax, relay.KindInvalid with the
	// fields, or notMessage. If only some messages of a post are invalid, Parse returns the others with
	// the error.
	Parse func(e *intake.Entry) ([]inbound.Message, error)
	// Verify checks the carrier's signature with the token's secret; nil for a carrier
	// that does not sign.
	Verify func(r *SignedRequest, secret string) error
	// Answer writes the success response. id is the id of the event.
	Answer func(c *fiber.Ctx, id string) error
}

// Adapters returns the adapters by their name in the path.
func Adapters() map[string]Adapter {
	alphabet := sms.NewAlphabet()
	// entryParser and fieldParser adapt parsers of entries and of their fields.
	entryParser := func(parse func(*sms.Alphabet, *intake.Entry) ([]inbound.Message, error)) func(*intake.Entry) ([]inbound.Message, error) {
		return func(e *intake.Entry) ([]inbound.Message, error) { return parse(alphabet, e) }
	}
	fieldParser := func(parse func(*fieldReader) ([]inbound.Message, error)) func(*intake.Entry) ([]inbound.Message, error) {
		return func(e *intake.Entry) ([]inbound.Message, error) {
			o, err := fieldsOf(e)
			if err != nil {
				return nil, err
			}
			return parse(newFieldReader(alphabet, o))
		}
	}
	return map[string]Adapter{
		"json": {Parse: entryParser(parseJSON), Answer: func(c *fiber.Ctx, id string) error {
			return c.JSON(fiber.Map{"data": fiber.Map{"id": id}})
		}},
		"kannel":  {Parse: entryParser(parseKannel), Answer: answerEmpty},
		"twilio":  {Parse: fieldParser(parseTwilio), Verify: verifyTwilio, Answer: answerXML("text/xml; charset=utf-8")},
		"vonage":  {Parse: fieldParser(parseVonage), Verify: verifyVonage, Answer: answerEmpty},
		"infobip": {Parse: fieldParser(parseInfobip), Answer: answerEmpty},
		"plivo":   {Parse: fieldParser(parsePlivo), Verify: newNonces().verifyPlivo, Answer: answerXML("application/xml")},
		"sinch":   {Parse: fieldParser(parseSinch), Verify: verifySinch, Answer: answerEmpty},
		"android": {Parse: entryParser(parseAndroid), Verify: verifyAndroid, Answer: answerEmpty},
	}
}

// answerEmpty answers 200 without a body. SendStatus would write "OK", which Kannel would send
// to the sender as an SMS.
func answerEmpty(c *fiber.Ctx, _ string) error {
	c.Status(fiber.StatusOK)
	return nil
}
