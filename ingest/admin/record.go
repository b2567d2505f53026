package admin

import (
	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay/audit"
)

// record makes a change and records it in the audit log.
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
	role := who.Role
	if who.peer != "" {
		role = who.peerRole
	}
	return s.auth.Record(c, audit.Entry{Actor: who.Name, Role: string(role), Operation: o.id, Target: httpd.RouteTarget(c, o.path)})
}
