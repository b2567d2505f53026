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
}

// New returns the surface over the intake of uplinks, whose processor p is.
func New(in *intake.Intake, p *Processor, types Types, o Options) *Surface {
	s := &Surface{
		intake: in, waiters: p.waiters, types: types,
		bodyLimit: o.BodyLimit, patience: o.Patience, logger: o.Logger,
	}
	if s.bodyLimit == 0 {
		s.bodyLimit = 1 << 20
	}
	if s.patience == 0 {
		s.patience = 3 * time.Second
	}
	if s.logger == nil {
		s.logger = slog.Default()
	}
	p.logger = s.logger
	return s
}

// frame takes a post of the four webhooks that answer with an empty body.
func (s *Surface) frame(c *fiber.Ctx) error {
	entry, sender, refused := s.read(c)
	if refused != nil {
		return refused(c)
	}
	if _, err := s.intake.Accept(c.UserContext(), &entry); err != nil {
		return s.refuse(c, err)
	}
	return answer(c, sender)
}

// answer is the success that each sender can bear: a body is a downlink to some
// of them, and UbiBot wants a word.
func answer(c *fiber.Ctx, sender netserver.Sender) error {
	c.Status(fiber.StatusOK)
	if sender == netserver.UbiBot {
		return c.SendString("SUCCESS")
	}
	return nil
}

// generic takes a post and answers with the sensors it updated, or with none
// when it could only be journalled.
func (s *Surface) generic(c *fiber.Ctx) error {
	entry, _, refused := s.read(c)
	if refused != nil {
		return refused(c)
	}
	entry.Waiter = relay.NewID(time.Now())
	result := s.waiters.add(entry.Waiter)
	defer s.waiters.remove(entry.Waiter)
	if _, err := s.intake.Accept(c.UserContext(), &entry); err != nil {
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

// read checks a post as far as its answer needs and makes an entry of it. The
// entry points into the request and is valid until the handler returns.
func (s *Surface) read(c *fiber.Ctx) (intake.Entry, netserver.Sender, fiber.Handler) {
	body, err := httpd.Body(c, s.bodyLimit)
	if err != nil {
		return intake.Entry{}, "", func(*fiber.Ctx) error { return err }
	}
	post := netserver.Post{
		Path: hint(c.Path()), DeviceID: deviceIn(c.Path()), ContentType: c.Get(fiber.HeaderContentType),
		Query: query(c), Body: body,
	}
	sender, err := netserver.Inspect(post)
	switch {
	case errors.Is(err, netserver.ErrProtobuf):
		s.logger.Warn("protobuf refused", "account", httpd.AccountOf(c), "path", c.Route().Path)
		return intake.Entry{}, "", httpd.Refuse(fiber.StatusUnsupportedMediaType, "Protobuf is not supported: set the integration's encoding to JSON.")
	case err != nil:
		return intake.Entry{}, "", httpd.Refuse(fiber.StatusUnprocessableEntity, "Invalid JSON.")
	}
	return intake.Entry{
		Account: httpd.AccountOf(c), Source: string(sender), Path: c.Path(),
		Query: string(c.Request().URI().QueryString()), ContentType: post.ContentType, Body: body,
	}, sender, nil
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
