package admin

import (
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/outbox"
)

// breakerJSON is an open breaker in the form for the operator.
type breakerJSON struct {
	Endpoint string          `json:"endpoint"`
	Account  relay.AccountID `json:"account"`
	Relay    string          `json:"relay"`
	Target   string          `json:"target"`
	Reason   string          `json:"reason"`
	OpenedAt string          `json:"opened_at"`
	ProbeAt  string          `json:"probe_at"`
	Probes   int             `json:"probes"`
	Waiting  int             `json:"waiting"` // parked deliveries
}

// listBreakers lists the open breakers with their numbers of parked deliveries.
func (s *Surface) listBreakers(c *fiber.Ctx, sel *selection) error {
	if err := sel.Err(); err != nil {
		return err
	}
	open, err := s.Breakers.List(c.UserContext())
	if err != nil {
		return err
	}
	waiting, err := s.Deliveries.CountParked(c.UserContext())
	if err != nil {
		return err
	}
	views := []breakerJSON{}
	for _, b := range open {
		if !sees(c, b.Account) {
			continue
		}
		view := breakerJSON{
			Endpoint: b.Endpoint, Account: b.Account, Relay: b.Relay, Target: outbox.MaskTarget(b.Target), Reason: b.Reason,
			OpenedAt: formatTime(b.OpenedAt), ProbeAt: formatTime(b.ProbeAt), Probes: b.Probes, Waiting: waiting[b.Endpoint],
		}
		if hidesTexts(c) {
			view.Target = outbox.MaskPath(view.Target)
		}
		views = append(views, view)
	}
	return c.JSON(fiber.Map{"data": views})
}

// closeBreaker closes a breaker; its parked deliveries are attempted at once.
func (s *Surface) closeBreaker(c *fiber.Ctx) error {
	endpoint := strings.Clone(c.Params("endpoint"))
	if err := s.noteBreaker(c, endpoint); err != nil {
		return err
	}
	if err := s.Breakers.Close(c.UserContext(), endpoint); err != nil {
		return err
	}
	s.Logger.InfoContext(c.UserContext(), "breaker closed by the operator", "endpoint", endpoint, "address", httpd.ClientIP(c))
	return c.SendStatus(fiber.StatusNoContent)
}

// noteBreaker notes the breaker that is closed, if it is open.
func (s *Surface) noteBreaker(c *fiber.Ctx, endpoint string) error {
	open, err := s.Breakers.List(c.UserContext())
	for _, b := range open {
		if n := httpd.NoteOf(c); b.Endpoint == endpoint {
			n.Account = b.Account
			n.Before = fiber.Map{"endpoint": b.Endpoint, "relay": b.Relay, "target": outbox.MaskTarget(b.Target), "reason": b.Reason, "opened_at": formatTime(b.OpenedAt)}
		}
	}
	return err
}
