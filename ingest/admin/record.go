package admin

import (
	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay/audit"
)

// record makes a change and records it in the audit log.
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
