package uplink

import (
	"context"
	"errors"
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

// acceptPost handles posts of the webhooks other than generic. It answers once the post, which may
// have several frames, is in the journal.
func (s *Surface) acceptPost(c *fiber.Ctx) error {
	r, err := s.readRequest(c)
	if err != nil {
		return err
	}
	return s.acceptRequest(c, &r)
}

// acceptRequest writes a request to the journal and answers it as its sender expects.
func (s *Surface) acceptRequest(c *fiber.Ctx, r *request) error {
	if _, err := s.intake.Accept(c.UserContext(), &r.entry); err != nil {
		return httpd.NotAccepted(c, s.logger, "frame not accepted", err)
	}
	return reply(c, r)
}

// acceptGeneric handles a post of the generic webhook. It answers with the updated sensors and the
// notes, or without sensors if the post was only journalled. Senders that treat a body as a command
// or expect a fixed text receive their own reply.
func (s *Surface) acceptGeneric(c *fiber.Ctx) error {
	r, err := s.readRequest(c)
	if err != nil {
		return err
	}
	if needsOwnReply(&r) {
		return s.acceptRequest(c, &r)
	}
	r.entry.Waiter = relay.NewID(time.Now())
	result := s.waiters.add(r.entry.Waiter)
	defer s.waiters.remove(r.entry.Waiter)
	if _, err := s.intake.Accept(c.UserContext(), &r.entry); err != nil {
		return httpd.NotAccepted(c, s.logger, "frame not accepted", err)
	}
	httpd.Waiting(c)
	return c.JSON(s.awaitResult(c.UserContext(), result))
}

// awaitResult waits for the result of a post. If none arrives in time, it returns no sensors.
func (s *Surface) awaitResult(ctx context.Context, result <-chan answer) iot.UpdatedSensors {
	updated := iot.UpdatedSensors{Sensors: []iot.ReadingRow{}}
	if s.intake.Blocked() {
		return updated
	}
	ctx, cancel := context.WithTimeout(ctx, s.answerTimeout)
	defer cancel()
	select {
	case a := <-result:
		updated.Notes = a.notes
		if types, err := s.types.SensorTypes(ctx); err == nil {
			updated.Sensors = iot.ReadingRows(a.points, types, iot.Metric)
		}
	case <-ctx.Done():
	}
	return updated
}

// request is a received post. It points into the HTTP request and is valid until the
// handler returns.
type request struct {
	post   netserver.Post
	sender netserver.Sender
	entry  intake.Entry
}

// readRequest validates a post as far as the response requires and builds its entry.
func (s *Surface) readRequest(c *fiber.Ctx) (request, error) {
	query := string(c.Request().URI().QueryString())
	post, err := s.postOf(c, query)
	if err != nil {
		return request{}, err
	}
	r := request{post: post, entry: intake.Entry{
		Account: httpd.AccountOf(c), Path: c.Path(), Query: query, ContentType: post.ContentType, Body: post.Body,
	}}
	r.sender, err = netserver.Inspect(post)
	r.entry.Source = string(r.sender)
	switch {
	case errors.Is(err, netserver.ErrProtobuf):
		// Journal the body anyway, so that the operator can find the reason without the
		// sender's log.
		r.entry.Source = "protobuf"
		if _, err := s.intake.Accept(c.UserContext(), &r.entry); err != nil {
			s.logger.WarnContext(c.UserContext(), "refused protobuf post not journalled", "account", r.entry.Account, "path", c.Route().Path, "error", err)
		}
		return r, fiber.NewError(fiber.StatusUnsupportedMediaType, "Protobuf is not supported: set the integration's encoding to JSON.")
	case errors.Is(err, netserver.ErrTooMany):
		return r, fiber.NewError(fiber.StatusRequestEntityTooLarge, "A"+strings.TrimPrefix(err.Error(), "a")+".")
	case err != nil:
		return r, fiber.NewError(fiber.StatusUnprocessableEntity, "Invalid JSON.")
	}
	return r, nil
}

// postOf extracts the parts of a request that identify its sender.
func (s *Surface) postOf(c *fiber.Ctx, query string) (netserver.Post, error) {
	body, err := httpd.Body(c, s.bodyLimit)
	q, _ := url.ParseQuery(query) // without malformed parameters
	return netserver.Post{
		Path: webhookName(c.Path()), DeviceID: deviceOf(c.Path(), q), ContentType: c.Get(fiber.HeaderContentType),
		Query: q, Body: body,
	}, err
}

// webhookName returns the name of the webhook in a path: lorawan, community, …
func webhookName(path string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(strings.ToLower(path), "/webhooks/"), "/")
	return name
}

// deviceOf returns the unnormalized device in a URL of the generic webhook, from the path or the
// query parameter deviceId.
func deviceOf(path string, query url.Values) string {
	const prefix = "/webhooks/generic/"
	if len(path) > len(prefix) && strings.EqualFold(path[:len(prefix)], prefix) {
		device := path[len(prefix):]
		if id, err := url.PathUnescape(device); err == nil {
			return id
		}
		return device
	}
	if webhookName(path) == "generic" {
		return query.Get("deviceId")
	}
	return ""
}
