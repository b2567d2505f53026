package admin

import (
	"net/url"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/outbox"
)

// deliveryJSON is a delivery as the operator sees it.
type deliveryJSON struct {
	ID            string        `json:"id"`
	Account       account.ID    `json:"account"`
	Kind          outbox.Kind   `json:"kind"`
	Relay         string        `json:"relay"`
	MessageID     string        `json:"message_id"`
	Target        string        `json:"target"` // secrets masked
	State         outbox.State  `json:"state"`
	Reason        string        `json:"reason"`
	CreatedAt     string        `json:"created_at"`
	NextAttemptAt *string       `json:"next_attempt_at"`
	Attempts      []attemptJSON `json:"attempts"`
}

type attemptJSON struct {
	At         string  `json:"at"`
	DurationMS float64 `json:"duration_ms"`
	Status     int     `json:"status"` // 0 when there was no answer
	Error      string  `json:"error"`
	Response   string  `json:"response"`
}

func deliveryOf(d outbox.Delivery) deliveryJSON {
	out := deliveryJSON{
		ID: d.ID, Account: d.Account, Kind: d.Kind, Relay: d.Relay, MessageID: d.MessageID,
		Target: masked(d.Target()), State: d.State, Reason: d.Reason, CreatedAt: stamp(d.CreatedAt),
		NextAttemptAt: stampOrNil(d.NextAttemptAt), Attempts: make([]attemptJSON, len(d.Attempts)),
	}
	for i, a := range d.Attempts {
		out.Attempts[i] = attemptJSON{
			At: stamp(a.At), DurationMS: float64(a.Duration.Microseconds()) / 1000,
			Status: a.Status, Error: a.Error, Response: a.Response,
		}
	}
	return out
}

// masked hides what can be a secret in a URL: the password, and the values of
// the query. Anything else is shown as it is.
func masked(target string) string {
	u, err := url.Parse(target)
	if err != nil || u.Scheme == "" {
		return target
	}
	if u.User != nil {
		u.User = url.UserPassword(u.User.Username(), "***")
	}
	q := u.Query()
	for name := range q {
		q[name] = []string{"***"}
	}
	u.RawQuery = q.Encode()
	return u.String()
}

func (s *selection) deliveries() outbox.Filter {
	return outbox.Filter{
		IDs: s.ids(),
		State: outbox.State(s.oneOf("state", string(outbox.Queued), string(outbox.Retrying),
			string(outbox.Delivered), string(outbox.Simulated), string(outbox.Dead))),
		Account: s.account(),
		Kind:    outbox.Kind(s.oneOf("kind", string(outbox.KindRelay), string(outbox.KindReceipt), string(outbox.KindCallback))),
		Relay:   s.text("relay"), Target: s.text("target"),
		From: s.moment("from"), To: s.moment("to"), Query: s.text("q"),
	}
}

func (s *Surface) listDeliveries(c *fiber.Ctx) error {
	sel, err := selectionOf(c)
	if err != nil {
		return err
	}
	f := sel.deliveries()
	f.Limit, f.Cursor = sel.limit(), sel.cursor()
	if err := sel.err(); err != nil {
		return err
	}
	found, next, err := s.Deliveries.List(c.UserContext(), f)
	if err != nil {
		return err
	}
	out := make([]deliveryJSON, len(found))
	for i, d := range found {
		out[i] = deliveryOf(d)
	}
	return c.JSON(fiber.Map{"data": out, "meta": fiber.Map{"next": next}})
}

// replayDeliveries puts what is dead back to work, page by page.
func (s *Surface) replayDeliveries(c *fiber.Ctx) error {
	sel, err := selectionOf(c)
	if err != nil {
		return err
	}
	f, delivered := sel.deliveries(), sel.flag("include_delivered")
	sel.require()
	if err := sel.err(); err != nil {
		return err
	}
	if f.State == "" && !delivered {
		f.State = outbox.Dead
	}
	count := 0
	for f.Limit = maxLimit; ; {
		found, next, err := s.Deliveries.List(c.UserContext(), f)
		if err != nil {
			return err
		}
		n, err := s.replay(c, found, delivered)
		if err != nil {
			return err
		}
		count += n
		if f.Cursor = next; next == "" {
			return c.JSON(fiber.Map{"count": count})
		}
	}
}

func (s *Surface) replay(c *fiber.Ctx, found []outbox.Delivery, delivered bool) (int, error) {
	refs := make([]outbox.Ref, len(found))
	for i, d := range found {
		refs[i] = outbox.Ref{Account: d.Account, ID: d.ID}
	}
	replayed, err := s.Deliveries.Replay(c.UserContext(), refs, s.Now(), delivered)
	return len(replayed), err
}
