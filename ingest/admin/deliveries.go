package admin

import (
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/outbox"
)

type deliveryJSON struct {
	ID            string          `json:"id"`
	Account       relay.AccountID `json:"account"`
	Kind          outbox.Kind     `json:"kind"`
	Relay         string          `json:"relay"`
	MessageID     string          `json:"message_id"`
	Originator    string          `json:"originator,omitempty"`
	Destination   string          `json:"destination,omitempty"`
	Target        string          `json:"target"` // secrets masked
	State         outbox.State    `json:"state"`
	Reason        string          `json:"reason"`
	CreatedAt     string          `json:"created_at"`
	NextAttemptAt *string         `json:"next_attempt_at"`
	Attempts      []attemptJSON   `json:"attempts"`
	// WaitsFor is the reason why the delivery is parked, and Endpoint its endpoint; both are
	// empty for a delivery that is not parked.
	WaitsFor outbox.Wait `json:"waits_for,omitempty"`
	Endpoint string      `json:"endpoint,omitempty"`
	// Hidden means that the path of the target and the answers are omitted because the caller
	// may not read texts of messages.
	Hidden bool `json:"hidden,omitempty"`
	// Undecryptable means that the record cannot be decrypted (see relay.ErrUndecryptable). Its
	// encrypted fields are omitted.
	Undecryptable bool `json:"unopened,omitempty"`
}

type attemptJSON struct {
	At         string  `json:"at"`
	DurationMS float64 `json:"duration_ms"`
	Status     int     `json:"status"` // 0 if there was no answer
	Error      string  `json:"error"`
	Reason     string  `json:"reason"` // a description of the error that an account may read
	Response   string  `json:"response"`
}

func deliveryOf(d outbox.Delivery) deliveryJSON {
	view := deliveryJSON{
		ID: d.ID, Account: d.Account, Kind: d.Kind, Relay: d.Relay, MessageID: d.MessageID, Originator: d.Originator, Destination: d.Destination,
		Target: outbox.MaskTarget(d.Target()), State: d.State, Reason: d.Reason, CreatedAt: formatTime(d.CreatedAt),
		Undecryptable: d.Undecryptable, NextAttemptAt: formatTimeOrNil(d.NextAttemptAt),
		Attempts: httpd.Each(d.Attempts, func(a outbox.Attempt) attemptJSON {
			milliseconds := float64(a.Duration.Microseconds()) / 1000
			return attemptJSON{formatTime(a.At), milliseconds, a.Status, a.Error, a.Reason, a.Response}
		}),
	}
	if d.WaitsFor != "" {
		view.WaitsFor, view.Endpoint = d.WaitsFor, d.EndpointKey()
	}
	return view
}

func (s *selection) deliveryFilter() outbox.Filter {
	return outbox.Filter{
		IDs: s.ids(), Account: s.account(), State: oneOf(s, "state", outbox.States()...), Kind: oneOf(s, "kind", outbox.Kinds()...),
		WaitsFor: oneOf(s, "waits_for", outbox.WaitsForBreaker, outbox.WaitsForTurn),
		Relay:    s.text("relay"), Number: s.number(), Target: s.text("target"), Reason: s.text("reason"),
		From: s.timestamp("from"), To: s.timestamp("to"), Query: s.text("q"),
	}
}

func (s *Surface) listDeliveries(c *fiber.Ctx, sel *selection) error {
	f := sel.deliveryFilter()
	limit := sel.limit()
	f.Cursor, f.SearchUntil = sel.option("cursor"), sel.searchUntil()
	sel.refuseTextSearch("q", "target")
	if err := sel.Err(); err != nil {
		return err
	}
	var meta searchMeta
	found, err := readInPieces(limit, sizeOfDelivery, func(n int) (found []outbox.Delivery, hasMore bool, err error) {
		f.Limit = n
		found, f.Cursor, err = s.Deliveries.List(c.UserContext(), f)
		if meta.Next = f.Cursor; meta.Next != "" && len(found) < n {
			meta.SearchedTo = formatTime(outbox.SearchedTo(f.Cursor))
		}
		return found, f.Cursor != "", err
	})
	if err != nil {
		return err
	}
	views := httpd.Each(found, deliveryOf)
	for i := range views {
		views[i].hide(c)
	}
	return c.JSON(fiber.Map{"data": views, "meta": meta})
}

// sizeOfDelivery returns the approximate size of a delivery, in bytes.
func sizeOfDelivery(d *outbox.Delivery) int {
	size := 1 << 10
	if d.Request != nil {
		size += len(d.Request.Body)
	}
	if d.Mail != nil {
		size += len(d.Mail.Text)
	}
	for i := range d.Attempts {
		size += 200 + len(d.Attempts[i].Error) + len(d.Attempts[i].Response)
	}
	return size
}

// replayDeliveries queues selected deliveries again: dead ones, and delivered ones if
// include_delivered is set.
func (s *Surface) replayDeliveries(c *fiber.Ctx, sel *selection) error {
	f, includeDelivered := sel.deliveryFilter(), sel.flag("include_delivered")
	sel.requireFilter()
	if err := sel.Err(); err != nil {
		return err
	}
	n, err := s.Deliveries.ReplayAll(c.UserContext(), f, includeDelivered, s.Now)
	if err != nil {
		return err
	}
	s.Logger.InfoContext(c.UserContext(), "deliveries replayed", "count", n, "selection", sel.String(), "address", httpd.ClientIP(c))
	return c.JSON(fiber.Map{"count": n})
}

type breakerJSON struct {
	Endpoint string          `json:"endpoint"`
	Account  relay.AccountID `json:"account"`
	Relay    string          `json:"relay"`
	Target   string          `json:"target"`
	Reason   string          `json:"reason"`
	OpenedAt string          `json:"opened_at"`
	ProbeAt  string          `json:"probe_at"`
	Probes   int             `json:"probes"`
	Waiting  int             `json:"waiting"` // the number of parked deliveries
}

// listBreakers lists the open breakers with their numbers of parked deliveries.
func (s *Surface) listBreakers(c *fiber.Ctx) error {
	breakers, err := s.Breakers.List(c.UserContext())
	if err != nil {
		return err
	}
	waiting, err := s.Deliveries.CountParked(c.UserContext())
	if err != nil {
		return err
	}
	views := []breakerJSON{}
	for _, b := range breakers {
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

// closeBreaker closes a breaker, after which its parked deliveries are attempted.
func (s *Surface) closeBreaker(c *fiber.Ctx) error {
	endpoint := strings.Clone(c.Params("endpoint"))
	breakers, err := s.Breakers.List(c.UserContext())
	if err != nil {
		return err
	}
	for _, b := range breakers {
		if n := httpd.NoteOf(c); b.Endpoint == endpoint {
			n.Account = b.Account
			n.Before = fiber.Map{"endpoint": b.Endpoint, "relay": b.Relay, "target": outbox.MaskTarget(b.Target), "reason": b.Reason, "opened_at": formatTime(b.OpenedAt)}
		}
	}
	if err := s.Breakers.Close(c.UserContext(), endpoint); err != nil {
		return err
	}
	s.Logger.InfoContext(c.UserContext(), "breaker closed by the operator", "endpoint", endpoint, "address", httpd.ClientIP(c))
	return c.SendStatus(fiber.StatusNoContent)
}
