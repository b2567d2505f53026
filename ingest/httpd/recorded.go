package httpd

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/audit"
)

// Note describes the change of a handler for the audit log.
type Note struct {
	Target        string          // the changed record; "" means the record in the path
	Account       relay.AccountID // the account of the record; 0 means the account as which the request acts
	Before, After any             // the record before and after, for JSON; nil for none
	// Request has the parameters to record; nil means all parameters of the request.
	Request map[string]any
}

type noteKey struct{}

// NoteOf returns the Note of a request. If the request is not recorded, the Note has no effect.
func NoteOf(c *fiber.Ctx) *Note {
	if n, ok := c.Locals(noteKey{}).(*Note); ok {
		return n
	}
	return new(Note)
}

// Record calls the next handlers and records their change in the audit log: first the start, so
// that every change is recorded, and then the result. e has the actor, role and operation.
func (a *Auth) Record(c *fiber.Ctx, e audit.Entry) error {
	now := a.Now().UTC()
	e.ID, e.At, e.Address, e.Outcome = relay.NewID(now), now, ClientIP(c), audit.Started
	if err := a.Audit.Begin(c.UserContext(), e); err != nil {
		return err
	}
	n := new(Note)
	c.Locals(noteKey{}, n)
	err := c.Next()
	e.Status = statusOf(c, err)
	e.Outcome = audit.OutcomeOf(e.Status)
	if n.Account != 0 {
		e.Account = n.Account
	}
	if n.Target != "" {
		e.Target = n.Target
	}
	if n.Request == nil {
		n.Request = QueryOf(c)
		var body map[string]any
		if raw, err := Body(c, maxRecorded); err == nil && json.Unmarshal(raw, &body) == nil {
			maps.Copy(n.Request, body)
		}
	}
	if len(n.Request) > 0 {
		e.Request = audit.Document(n.Request)
	}
	if e.Outcome == audit.Done {
		var answer map[string]any
		body := c.Response().Body()
		if n.Before == nil && n.After == nil && len(body) <= maxRecorded && json.Unmarshal(body, &answer) == nil {
			n.After = answer
		}
		e.Before, e.After = audit.Changes(n.Before, n.After)
	}
	// The result is recorded even if the client has left.
	if finishErr := a.Audit.Finish(context.WithoutCancel(c.UserContext()), e); finishErr != nil {
		a.Logger.ErrorContext(c.UserContext(), "result of a change not recorded in the audit log", "entry", e.ID, "user", e.Actor, "operation", e.Operation, "status", e.Status, "error", finishErr)
	}
	return err
}

// RouteTarget returns the value in the request's path of the last parameter of a route, or "" if
// the route has none.
func RouteTarget(c *fiber.Ctx, route string) string {
	names, values := strings.Split(route, "/"), strings.Split(strings.TrimSuffix(c.Path(), "/"), "/")
	values = values[max(0, len(values)-len(names)):]
	for i := len(names) - 1; i >= 0 && len(values) == len(names); i-- {
		if !strings.HasPrefix(names[i], ":") {
			continue
		}
		name := strings.Clone(values[i])
		if unescaped, err := url.PathUnescape(name); err == nil {
			name = unescaped
		}
		return strings.ToValidUTF8(name, "\uFFFD")
	}
	return ""
}

// statusOf returns the status of the answer to a request.
func statusOf(c *fiber.Ctx, err error) int {
	e, isFiber := errors.AsType[*fiber.Error](err)
	switch {
	case err == nil:
		return c.Response().StatusCode()
	case isFiber:
		return e.Code
	case relay.KindOf(err) == relay.KindUnavailable:
		return fiber.StatusServiceUnavailable
	}
	return fiber.StatusInternalServerError
}

// maxRecorded is the maximum size of a recorded body, in bytes.
const maxRecorded = 64 << 10

// QueryOf returns the query parameters of a request for the audit log.
func QueryOf(c *fiber.Ctx) map[string]any {
	parameters := map[string]any{}
	query, _ := url.ParseQuery(strings.Clone(string(c.Request().URI().QueryString())))
	for name, values := range query {
		parameters[name] = strings.Join(values, ",")
	}
	return parameters
}
