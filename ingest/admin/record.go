package admin

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/audit"
)

// note is what a handler says of the change that it makes.
type note struct {
	target        string
	account       relay.AccountID
	before, after any // nil for nothing; values that become JSON
}

// noteKey is the key of a request's note in its locals.
type noteKey struct{}

// noteOf returns the note of a request; what is noted of one that is not recorded is
// dropped.
func noteOf(c *fiber.Ctx) *note {
	if n, ok := c.Locals(noteKey{}).(*note); ok {
		return n
	}
	return new(note)
}

// record makes a change and records it in the audit log: before it begins, so that
// none is made that is not recorded, and again with its result.
func (s *Surface) record(c *fiber.Ctx) error {
	o, who := s.operationOf(c), principalOf(c)
	if !o.change {
		return c.Next()
	}
	if o.prepare != nil {
		if err := o.prepare(c); err != nil {
			return err
		}
	}
	role := who.role
	if who.peer != "" {
		role = who.peerRole
	}
	now := s.Now().UTC()
	e := audit.Entry{
		ID: relay.NewID(now), At: now, Actor: who.name, Role: string(role), Address: httpd.ClientIP(c), Operation: o.id,
		Target: target(c, o), Outcome: audit.Started,
	}
	if err := s.Audit.Begin(c.UserContext(), e); err != nil {
		return err
	}
	n := new(note)
	c.Locals(noteKey{}, n)
	err := c.Next()
	e.Status = statusOf(c, err)
	e.Outcome = audit.OutcomeOf(e.Status)
	if e.Account = n.account; n.target != "" {
		e.Target = n.target
	}
	e.Request = asked(c, o)
	if e.Outcome == audit.Done {
		if n.before == nil && n.after == nil {
			n.after = answered(c)
		}
		e.Before, e.After = audit.Changes(n.before, n.after)
	}
	// The change was made, whether or not the client is still there.
	if failed := s.Audit.Finish(context.WithoutCancel(c.UserContext()), e); failed != nil {
		s.Logger.ErrorContext(c.UserContext(), "the result of a change is not in the audit log", "entry", e.ID, "user", e.Actor, "operation", e.Operation, "status", e.Status, "error", failed)
	}
	return err
}

// target is what a request's path names.
func target(c *fiber.Ctx, o operation) string {
	last := o.path[strings.LastIndex(o.path, "/")+1:]
	if !strings.HasPrefix(last, ":") {
		return ""
	}
	path := strings.TrimSuffix(c.Path(), "/")
	name := path[strings.LastIndex(path, "/")+1:]
	if plain, err := url.PathUnescape(name); err == nil {
		name = plain
	}
	return strings.ToValidUTF8(strings.Clone(name), "\uFFFD")
}

// statusOf is the status that a request is answered with.
func statusOf(c *fiber.Ctx, err error) int {
	e, own := errors.AsType[*fiber.Error](err)
	switch {
	case err == nil:
		return c.Response().StatusCode()
	case own:
		return e.Code
	case relay.KindOf(err) == relay.KindUnavailable:
		return fiber.StatusServiceUnavailable
	}
	return fiber.StatusInternalServerError
}

// maxRecorded bounds the bodies that are recorded, in bytes.
const maxRecorded = 64 << 10

// asked returns the parameters of a request as an entry has them. An inventory is not
// among them: the entry says what it changed.
func asked(c *fiber.Ctx, o operation) json.RawMessage {
	out := map[string]any{}
	query, _ := url.ParseQuery(strings.Clone(string(c.Request().URI().QueryString())))
	for name, values := range query {
		out[name] = strings.Join(values, ",")
	}
	if o.id != "putInventory" {
		var body map[string]any
		if raw, err := httpd.Body(c, maxRecorded); err == nil && json.Unmarshal(raw, &body) == nil {
			maps.Copy(out, body)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return audit.Document(out)
}

// answered returns the JSON of an answer, nil if it has none or is large.
func answered(c *fiber.Ctx) any {
	body := c.Response().Body()
	var out map[string]any
	if len(body) > maxRecorded || json.Unmarshal(body, &out) != nil {
		return nil
	}
	return out
}
