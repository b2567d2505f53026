package admin

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/config/inventory"
	"github.com/penstock/penstock/decoders/decimal"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/audit"
	domain "github.com/penstock/penstock/relay/inventory"
	"github.com/penstock/penstock/relay/user"
)

// getInventory answers with all declarations, or with one document. A document has the declared
// values or, with present=true, the current values. Only an admin may see secrets.
func (s *Surface) getInventory(c *fiber.Ctx, sel *selection) error {
	name, v := sel.text("document"), domain.View{Present: sel.flag("present"), Secrets: sel.flag("secrets")}
	if err := sel.Err(); err != nil {
		return err
	}
	p := principalOf(c)
	if v.Secrets && p.Role != user.Admin {
		return httpd.NotAllowed(p.Role, []user.Role{user.Admin})
	}
	if name == "" && v == (domain.View{}) {
		d, err := s.Inventory.Declared(c.UserContext())
		if err != nil {
			return err
		}
		return c.JSON(d)
	}
	d, err := s.Inventory.Document(c.UserContext(), name, v)
	if err != nil {
		return err
	}
	if v.Secrets {
		now := s.Now().UTC()
		err := s.Audit.Begin(c.UserContext(), audit.Entry{
			ID: relay.NewID(now), At: now, Actor: p.Name, Role: string(p.Role), Address: httpd.ClientIP(c), Operation: "getInventory",
			Target: d.Owner(), Outcome: audit.Done, Status: fiber.StatusOK, Request: audit.Document(map[string]any{"secrets": true}),
		})
		if err != nil {
			return err
		}
	}
	return c.JSON(d)
}

// driftJSON is a field whose value differs from the declared one.
type driftJSON struct {
	inventory.Drift
	ChangedAt *string `json:"changed_at"` // null if the time is unknown
	ChangedBy *string `json:"changed_by"` // null if the audit log does not have the change
	Reset     *string `json:"reset"`      // null if no reset restores the declared value
	Text      string  `json:"text"`
}

// getDrift lists the fields with values that differ from the documents. An apply keeps the values.
func (s *Surface) getDrift(c *fiber.Ctx, sel *selection) error {
	name := sel.text("document")
	if err := sel.Err(); err != nil {
		return err
	}
	fields, missing, err := s.Inventory.Drift(c.UserContext(), name)
	if err != nil {
		return err
	}
	views := httpd.Each(fields, func(d inventory.Drift) driftJSON {
		return driftJSON{d, formatTimeOrNil(d.ChangedAt), httpd.OrNull(d.ChangedBy), httpd.OrNull(d.Reset), d.String()}
	})
	return c.JSON(fiber.Map{"data": views, "missing": append([]string{}, missing...)})
}

func (s *Surface) putInventory(c *fiber.Ctx) error {
	httpd.NoteOf(c).Request = httpd.QueryOf(c) // without the document; Before and After have its changes
	m, err := modeOf(c)
	if err != nil {
		return err
	}
	data, err := httpd.Body(c, 8<<20)
	if err != nil {
		return err
	}
	m.Compare = !m.DryRun
	applied, err := s.Inventory.Apply(c.UserContext(), data, m)
	if err != nil {
		s.Logger.WarnContext(c.UserContext(), "inventory refused", "address", httpd.ClientIP(c), "error", err)
	}
	if mistakes, ok := errors.AsType[inventory.Mistakes](err); ok {
		byPath := make(map[string][]string, len(mistakes))
		for _, mistake := range mistakes {
			byPath[mistake.Path] = append(byPath[mistake.Path], mistake.Text)
		}
		return c.Status(fiber.StatusUnprocessableEntity).JSON(fiber.Map{
			"message": "The inventory was refused: " + mistakes[0].String(), "errors": byPath,
		})
	}
	if err != nil {
		return err
	}
	s.logApplied(c, m, applied)
	if n := httpd.NoteOf(c); m.Compare {
		n.Target, n.Before, n.After = applied.Document, applied.Before, applied.After
	} else {
		n.Target = applied.Document
	}
	return c.JSON(fiber.Map{"data": applied})
}

func (s *Surface) logApplied(c *fiber.Ctx, m inventory.Mode, a inventory.ApplyResult) {
	if a.DryRun {
		return
	}
	log := s.Logger.With("document", a.Document, "address", httpd.ClientIP(c))
	log.InfoContext(c.UserContext(), "inventory applied", "added", len(a.Added), "changed", len(a.Changed), "removed", len(a.Removed), "kept", len(a.Kept))
	if len(a.Kept) > 0 {
		log.InfoContext(c.UserContext(), "inventory applied; some values are kept", "count", len(a.Kept), "kept", inventory.FirstNames(a.Kept))
	}
	if m.Prune {
		log.InfoContext(c.UserContext(), "inventory pruned", "count", len(a.Removed), "removed", inventory.FirstNames(a.Removed))
	}
}

// modeOf reads the mode of an apply from the query.
func modeOf(c *fiber.Ctx) (m inventory.Mode, err error) {
	for _, name := range strings.FieldsFunc(c.Query("reset"), func(r rune) bool { return r == ',' }) {
		if !slices.Contains([]string{"credit", "sims", "relays", "rules"}, name) {
			return m, relay.Invalid("reset", fmt.Sprintf("The reset must be credit, sims, relays or rules, not %q.", name))
		}
		m.Reset = append(m.Reset, strings.Clone(name))
	}
	if name := c.Query("account"); name != "" {
		if len(m.Reset) == 0 {
			return m, relay.Invalid("account", "The account requires reset, because it limits the reset to one account.")
		}
		m.ResetAccounts = []string{strings.Clone(name)}
	}
	for name, flag := range map[string]*bool{"prune": &m.Prune, "adopt": &m.Adopt, "dry_run": &m.DryRun} {
		if text := c.Query(name); text != "" {
			var ok bool
			if *flag, ok = params.ParseBool(text); !ok {
				return m, relay.Invalid(name, "The "+relay.FieldWords(name)+" must be true or false.")
			}
		}
	}
	if text := c.Query("allow_removals"); text != "" {
		n, ok := decimal.Int(text)
		if !ok || n < 0 {
			return m, relay.Invalid("allow_removals", "The allow removals must be a number of records.")
		}
		m.AllowRemovals = int(n)
	}
	unknown := relay.Problems{}
	params.RefuseUnknown(c, unknown, []string{"dry_run", "prune", "allow_removals", "adopt", "reset", "account"})
	return m, unknown.Err()
}
