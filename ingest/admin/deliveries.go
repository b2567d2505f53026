package admin

import (
	"strings"

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
	Originator    string        `json:"originator,omitempty"`
	Destination   string        `json:"destination,omitempty"`
	Target        string        `json:"target"` // secrets masked
	State         outbox.State  `json:"state"`
	Reason        string        `json:"reason"`
	CreatedAt     string        `json:"created_at"`
	NextAttemptAt *string       `json:"next_attempt_at"`
	Attempts      []attemptJSON `json:"attempts"`
	// What it waits for instead of a time, and the endpoint it is for.
	WaitsFor outbox.Wait `json:"waits_for,omitempty"`
	Endpoint string      `json:"endpoint,omitempty"`
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
		ID: d.ID, Account: d.Account, Kind: d.Kind, Relay: d.Relay, MessageID: d.MessageID, Originator: d.Originator, Destination: d.Destination,
		Target: masked(d.Target()), State: d.State, Reason: d.Reason, CreatedAt: stamp(d.CreatedAt),
		NextAttemptAt: stampOrNil(d.NextAttemptAt), Attempts: make([]attemptJSON, len(d.Attempts)),
	}
	out.WaitsFor, out.Endpoint = waiting(&d)
	for i, a := range d.Attempts {
		out.Attempts[i] = attemptJSON{
			At: stamp(a.At), DurationMS: float64(a.Duration.Microseconds()) / 1000,
			Status: a.Status, Error: a.Error, Response: a.Response,
		}
	}
	return out
}

// masked hides what can be a secret in a URL: the password, the values of the
// query and the fragment. Names and order stay. Anything else, an address for
// example, is shown as it is. It works on the text, because a URL that does not
// parse holds secrets too.
func masked(target string) string {
	scheme, rest, ok := strings.Cut(target, "://")
	if !ok {
		return target
	}
	rest, fragment, marked := strings.Cut(rest, "#")
	rest, query, asks := strings.Cut(rest, "?")
	out := scheme + "://" + maskedUser(rest)
	if asks {
		out += "?" + maskedQuery(query)
	}
	if marked && fragment != "" {
		out += "#***"
	}
	return out
}

// maskedUser hides the password before the host of a URL without its scheme.
func maskedUser(rest string) string {
	host, path, slash := strings.Cut(rest, "/")
	if at := strings.LastIndexByte(host, '@'); at >= 0 {
		user, _, secret := strings.Cut(host[:at], ":")
		if secret {
			user += ":***"
		}
		host = user + host[at:]
	}
	if slash {
		return host + "/" + path
	}
	return host
}

// maskedQuery hides every value of a query; a part without a name is a value.
func maskedQuery(query string) string {
	parts := strings.Split(query, "&")
	for i, part := range parts {
		name, _, named := strings.Cut(part, "=")
		switch {
		case named:
			parts[i] = name + "=***"
		case part != "":
			parts[i] = "***"
		}
	}
	return strings.Join(parts, "&")
}

func (s *selection) deliveries() outbox.Filter {
	return outbox.Filter{
		IDs: s.ids(),
		State: outbox.State(s.oneOf("state", string(outbox.Queued), string(outbox.Retrying),
			string(outbox.Delivered), string(outbox.Simulated), string(outbox.Dead))),
		Account: s.account(),
		Kind:    outbox.Kind(s.oneOf("kind", string(outbox.KindRelay), string(outbox.KindReceipt), string(outbox.KindCallback), string(outbox.KindNotice))),
		Waits:   outbox.Wait(s.oneOf("waits_for", string(outbox.WaitsForBreaker), string(outbox.WaitsForTurn))),
		Relay:   s.text("relay"), Number: s.number(), Target: s.text("target"), Reason: s.text("reason"),
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
