package carrier

import (
	"errors"
	"net/url"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/decoders/gsm"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay/inbound"
)

// Adapter speaks one carrier's way of handing messages over.
type Adapter struct {
	// Parse reads a post. It fills what the carrier said about each message;
	// the ids, the account and the time of receipt are the processor's. An
	// error is errInvalidJSON or relay.KindInvalid with the fields.
	Parse func(e *intake.Entry) ([]inbound.Message, error)
	// Answer tells the carrier that its post is safe under an event's id.
	Answer func(c *fiber.Ctx, id string) error
}

// Adapters returns the adapters by the name their path has.
func Adapters() map[string]Adapter {
	alphabet := gsm.NewAlphabet()
	return map[string]Adapter{
		"json": {
			Parse:  func(e *intake.Entry) ([]inbound.Message, error) { return parseJSON(alphabet, e) },
			Answer: func(c *fiber.Ctx, id string) error { return c.JSON(fiber.Map{"data": fiber.Map{"id": id}}) },
		},
		"kannel": {
			Parse:  func(e *intake.Entry) ([]inbound.Message, error) { return parseKannel(alphabet, e) },
			Answer: empty,
		},
	}
}

// empty answers 200 with nothing; SendStatus would write "OK", which Kannel
// would text to the sender.
func empty(c *fiber.Ctx, _ string) error {
	c.Status(fiber.StatusOK)
	return nil
}

// errInvalidJSON is a body that is no JSON.
var errInvalidJSON = errors.New("Invalid JSON.") //nolint:staticcheck // the answer's text

// parameters reads the query; its error is about the whole of it.
func parameters(raw string) (url.Values, error) {
	q, err := url.ParseQuery(raw)
	if err != nil {
		f := newForm(nil)
		f.fail("query", "The query is not URL-encoded.")
		return nil, f.err()
	}
	return q, nil
}
