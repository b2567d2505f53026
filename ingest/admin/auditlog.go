package admin

import (
	"encoding/json"
	"slices"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/audit"
)

type auditJSON struct {
	ID        string          `json:"id"`
	At        string          `json:"at"`
	Actor     string          `json:"actor"`
	Role      string          `json:"role"`
	Address   string          `json:"address"`
	Operation string          `json:"operation"`
	Action    string          `json:"action"` // the summary of the operation
	Target    string          `json:"target"`
	Account   relay.AccountID `json:"account"` // 0 for none or several
	Outcome   audit.Outcome   `json:"outcome"`
	Status    int             `json:"status"`
	Request   json.RawMessage `json:"request"` // null if it is not recorded; the same applies to Before and After
	Before    json.RawMessage `json:"before"`
	After     json.RawMessage `json:"after"`
}

// listAudit lists the entries of the audit log, newest first.
func (s *Surface) listAudit(c *fiber.Ctx, sel *selection) error {
	f := audit.Filter{
		Actor: sel.text("actor"), Operation: sel.text("operation"), Target: sel.text("target"), Account: sel.account(),
		Outcome: oneOf(sel, "outcome", audit.Outcomes()...), From: sel.timestamp("from"), To: sel.timestamp("to"),
		Cursor: sel.option("cursor"),
	}
	limit := sel.limit()
	if err := sel.Err(); err != nil {
		return err
	}
	size := func(e *audit.Entry) int { return 500 + len(e.Request) + len(e.Before) + len(e.After) }
	found, err := readInPieces(limit, size, func(n int) (found []audit.Entry, hasMore bool, err error) {
		f.Limit = n
		found, f.Cursor, err = s.Audit.List(c.UserContext(), f)
		return found, f.Cursor != "", err
	})
	if err != nil {
		return err
	}
	views := httpd.Each(found, func(e audit.Entry) auditJSON {
		return auditJSON{
			ID: e.ID, At: formatTime(e.At), Actor: e.Actor, Role: e.Role, Address: e.Address, Operation: e.Operation, Target: e.Target,
			Action: s.summaryOf(e.Operation), Account: e.Account, Outcome: e.Outcome, Status: e.Status, Request: e.Request, Before: e.Before, After: e.After,
		}
	})
	return sendPage(c, views, f.Cursor)
}

// summaryOf returns the summary of an operation, also of requests without an operation.
func (s *Surface) summaryOf(id string) string {
	i := slices.IndexFunc(s.Operations, func(o httpd.Operation) bool { return o.ID == id })
	if i < 0 {
		return "Unknown request"
	}
	return s.Operations[i].Summary
}

// record calls the next handler and records its change in the audit log.
func (s *Surface) record(c *fiber.Ctx) error {
	o, p := s.operationOf(c), principalOf(c)
	if !o.change {
		return c.Next()
	}
	if o.prepare != nil {
		if err := o.prepare(c); err != nil {
			return err
		}
	}
	role := p.Role
	if p.peer != "" {
		role = p.peerRole
	}
	return s.auth.Record(c, audit.Entry{Actor: p.Name, Role: string(role), Operation: o.id, Target: httpd.RouteTarget(c, o.path)})
}
