package carrier

import (
	"net/url"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay/inbound"
)

// Adapter speaks one carrier's way of handing messages over.
type Adapter struct {
	// Parse reads a post. It fills what the carrier said about each message;
	// the ids, the account and the time of receipt are the processor's. An
	// error is params.ErrSyntax, relay.KindInvalid with the fields, or notMessage;
	// messages that could be read come with it.
	Parse func(e *intake.Entry) ([]inbound.Message, error)
	// Verify checks what the carrier signed with the token's secret; nil for a
	// carrier that signs nothing.
	Verify func(r *Signed, secret string) error
	// Answer writes the success response; id is the event's.
	Answer func(c *fiber.Ctx, id string) error
}

// Adapters returns the adapters by the name their path has.
func Adapters() map[string]Adapter {
	alphabet := sms.NewAlphabet()
	read := func(parse func(*sms.Alphabet, *intake.Entry) ([]inbound.Message, error)) func(*intake.Entry) ([]inbound.Message, error) {
		return func(e *intake.Entry) ([]inbound.Message, error) { return parse(alphabet, e) }
	}
	return map[string]Adapter{
		"json":    {Parse: read(parseJSON), Answer: answerID},
		"kannel":  {Parse: read(parseKannel), Answer: empty},
		"twilio":  {Parse: read(parseTwilio), Verify: verifyTwilio, Answer: answerXML("text/xml; charset=utf-8")},
		"vonage":  {Parse: read(parseVonage), Verify: verifyVonage, Answer: empty},
		"infobip": {Parse: read(parseInfobip), Answer: empty},
		"plivo":   {Parse: read(parsePlivo), Verify: newNonces().verifyPlivo, Answer: answerXML("application/xml")},
		"sinch":   {Parse: read(parseSinch), Verify: verifySinch, Answer: empty},
		"android": {Parse: read(parseAndroid), Verify: verifyAndroid, Answer: empty},
	}
}

// answerID says by which id the message is found.
func answerID(c *fiber.Ctx, id string) error {
	var answer struct {
		Data struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	answer.Data.ID = id
	return c.JSON(&answer)
}

// empty answers 200 with nothing; SendStatus would write "OK", which Kannel
// would text to the sender.
func empty(c *fiber.Ctx, _ string) error {
	c.Status(fiber.StatusOK)
	return nil
}

// parameters reads the query; its error is about the whole of it.
func parameters(raw string) (url.Values, error) {
	q, err := url.ParseQuery(raw)
	if err != nil {
		f := newForm(nil)
		f.Add("query", "The query is not URL-encoded.")
		return nil, f.Err()
	}
	return q, nil
}
