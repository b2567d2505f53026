package uplink

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/decoders/netserver"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

type logger = *slog.Logger

// Types looks sensor types up for the generic webhook's answer.
type Types interface {
	SensorTypes(ctx context.Context) (map[string]iot.SensorType, error)
}

// Options are what may be chosen; the zero value works.
type Options struct {
	BodyLimit int // bytes, also of an inflated body; 0 means 1 MiB
	// Patience is how long the generic webhook waits for its answer before it
	// says that the frame was taken; 0 means 3 s.
	Patience time.Duration
	Logger   *slog.Logger
	Now      func() time.Time // for signatures; nil means time.Now
}

// New returns the surface over the intake of uplinks, whose processor p is.
func New(in *intake.Intake, p *Processor, types Types, o Options) *Surface {
	s := &Surface{
		intake: in, waiters: p.waiters, types: types,
		bodyLimit: o.BodyLimit, patience: o.Patience, logger: o.Logger, now: o.Now,
	}
	if s.bodyLimit == 0 {
		s.bodyLimit = 1 << 20
	}
	if s.patience == 0 {
		s.patience = 3 * time.Second
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.logger == nil {
		s.logger = slog.Default()
	}
	p.logger = s.logger
	return s
}

// frame takes a post of the four webhooks that answer with an empty body.
func (s *Surface) frame(c *fiber.Ctx) error {
	r, err := s.read(c)
	if err != nil {
		return err
	}
	if _, err := s.intake.Accept(c.UserContext(), &r.entry); err != nil {
		return s.refuse(c, err)
	}
	return reply(c, &r)
}

// generic takes a post and answers with the sensors it updated, or with none
// when it could only be journalled. A sender that takes a body for a command,
// or waits for a word, gets what it can bear instead.
func (s *Surface) generic(c *fiber.Ctx) error {
	r, err := s.read(c)
	if err != nil {
		return err
	}
	if particular(&r) {
		if _, err := s.intake.Accept(c.UserContext(), &r.entry); err != nil {
			return s.refuse(c, err)
		}
		return reply(c, &r)
	}
	r.entry.Waiter = relay.NewID(time.Now())
	result := s.waiters.add(r.entry.Waiter)
	defer s.waiters.remove(r.entry.Waiter)
	if _, err := s.intake.Accept(c.UserContext(), &r.entry); err != nil {
		return s.refuse(c, err)
	}
	return c.JSON(fiber.Map{"data": s.updated(c.UserContext(), result)})
}

// updated waits for the points of a frame and describes them.
func (s *Surface) updated(ctx context.Context, result <-chan []iot.Point) []iot.Record {
	if s.intake.Waits() {
		return []iot.Record{}
	}
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	select {
	case points := <-result:
		types, err := s.types.SensorTypes(ctx)
		if err != nil {
			return []iot.Record{}
		}
		return iot.Records(points, types)
	case <-ctx.Done():
		return []iot.Record{}
	}
}

// reception is a post as it came in. It points into the request and is valid
// until the handler returns.
type reception struct {
	post   netserver.Post
	sender netserver.Sender
	entry  intake.Entry
}

// read checks a post as far as its answer needs and makes an entry of it.
func (s *Surface) read(c *fiber.Ctx) (reception, error) {
	post, err := s.post(c)
	if err != nil {
		return reception{}, err
	}
	r := reception{post: post, entry: intake.Entry{
		Account: httpd.AccountOf(c), Path: c.Path(),
		Query: string(c.Request().URI().QueryString()), ContentType: post.ContentType, Body: post.Body,
	}}
	r.sender, err = netserver.Inspect(post)
	r.entry.Source = string(r.sender)
	switch {
	case errors.Is(err, netserver.ErrProtobuf):
		return r, s.protobuf(c, &r.entry)
	case err != nil:
		return r, fiber.NewError(fiber.StatusUnprocessableEntity, "Invalid JSON.")
	}
	return r, nil
}

// post takes from a request what tells its sender.
func (s *Surface) post(c *fiber.Ctx) (netserver.Post, error) {
	body, err := httpd.Body(c, s.bodyLimit)
	return netserver.Post{
		Path: hint(c.Path()), DeviceID: deviceIn(c.Path()), ContentType: c.Get(fiber.HeaderContentType),
		Query: query(c), Body: body,
	}, err
}

// protobuf refuses a body that no other setting of ours could read. It is kept
// all the same, so that the operator sees why nothing arrives: the sender's own
// log is read by somebody else.
func (s *Surface) protobuf(c *fiber.Ctx, e *intake.Entry) error {
	e.Source = "protobuf"
	if _, err := s.intake.Accept(c.UserContext(), e); err != nil {
		s.logger.Warn("protobuf refused", "account", e.Account, "path", c.Route().Path, "error", err)
	}
	return fiber.NewError(fiber.StatusUnsupportedMediaType, "Protobuf is not supported: set the integration's encoding to JSON.")
}

func query(c *fiber.Ctx) url.Values {
	raw := c.Request().URI().QueryString()
	if len(raw) == 0 {
		return nil
	}
	q, _ := url.ParseQuery(string(raw)) // what can be read of it
	return q
}

// refuse answers for an entry that the journal did not take.
func (s *Surface) refuse(c *fiber.Ctx, err error) error {
	if errors.Is(err, intake.ErrTooLarge) {
		return httpd.ErrBodyTooLarge
	}
	s.logger.Error("frame not accepted", "account", httpd.AccountOf(c), "error", err)
	return httpd.Unavailable(c)
}

// hint returns the webhook's name within a path: lorawan, community, …
func hint(path string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(strings.ToLower(path), "/webhooks/"), "/")
	return name
}

// deviceIn returns the device id within the path of the generic webhook, as it
// was sent.
func deviceIn(path string) string {
	const before = "/webhooks/generic/"
	if len(path) < len(before) || !strings.EqualFold(path[:len(before)], before) {
		return ""
	}
	rest := path[len(before):]
	if id, err := url.PathUnescape(rest); err == nil {
		return id
	}
	return rest
}
