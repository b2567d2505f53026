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

// appliedJSON lists the changes that an apply made, or in a dry run would make.
type appliedJSON struct {
	Document      string               `json:"document"`
	DryRun        bool                 `json:"dry_run"`
	Accounts      []appliedAccountJSON `json:"accounts"`
	Added         []string             `json:"added"`
	Changed       []string             `json:"changed"`
	Removed       []string             `json:"removed"`
	Kept          []string             `json:"kept"`
	AllowRemovals int                  `json:"allow_removals"`
}

// appliedAccountJSON names an account of a document.
type appliedAccountJSON struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

// getInventory returns everything that is declared, or one document of it: what it
// declares, or with present=true how its records are now. Only an admin may see secrets.
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

// driftJSON is a field that differs from what a document declares.
type driftJSON struct {
	Document  string  `json:"document"`
	Account   string  `json:"account"`
	Path      string  `json:"path"`
	Declared  any     `json:"declared"`
	Present   any     `json:"present"`
	Deleted   bool    `json:"deleted"`
	ChangedAt *string `json:"changed_at"` // null if it is not known
	ChangedBy *string `json:"changed_by"` // null if the audit log does not say
	Reset     *string `json:"reset"`      // null if no reset takes the declared value
	Text      string  `json:"text"`
}

// getDrift returns what differs from the documents, which an apply keeps.
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
		return driftJSON{
			Document: d.Document, Account: d.Account, Path: d.Path, Declared: d.Declared, Present: d.Present, Deleted: d.Deleted,
			ChangedAt: httpd.OrNull(timeOrNone(d.ChangedAt)), ChangedBy: httpd.OrNull(d.ChangedBy), Reset: httpd.OrNull(d.Reset), Text: d.String(),
		}
	})
	return c.JSON(fiber.Map{"data": views, "missing": append([]string{}, missing...)})
}

func (s *Surface) putInventory(c *fiber.Ctx) error {
	httpd.NoteOf(c).Request = httpd.QueryOf(c) // the entry says what the document changed
	m, err := modeOf(c)
	if err != nil {
		return err
	}
	data, err := httpd.Body(c, 8<<20)
	if err != nil {
		return err
	}
	m.Compare = !m.DryRun
	done, err := s.Inventory.Apply(c.UserContext(), data, m)
	if err != nil {
		s.Logger.WarnContext(c.UserContext(), "inventory refused", "address", httpd.ClientIP(c), "error", err)
	}
	if mistakes, ok := errors.AsType[inventory.Mistakes](err); ok {
		byPath := make(map[string][]string, len(mistakes))
		for _, m := range mistakes {
			byPath[m.Path] = append(byPath[m.Path], m.Text)
		}
		return c.Status(fiber.StatusUnprocessableEntity).JSON(fiber.Map{
			"message": "The inventory was refused: " + mistakes[0].String(), "errors": byPath,
		})
	}
	if err != nil {
		return err
	}
	s.logApplied(c, m, done)
	if n := httpd.NoteOf(c); m.Compare {
		n.Target, n.Before, n.After = done.Document, done.Before, done.After
	} else {
		n.Target = done.Document
	}
	return c.JSON(fiber.Map{"data": appliedJSON{
		Document: done.Document, DryRun: done.DryRun, Added: done.Added, Changed: done.Changed, Removed: done.Removed, Kept: done.Kept, AllowRemovals: done.AllowRemovals,
		Accounts: httpd.Each(done.Accounts, func(a inventory.AppliedAccount) appliedAccountJSON { return appliedAccountJSON(a) }),
	}})
}

// logApplied logs what an apply did, what its prune removed, and what it kept.
func (s *Surface) logApplied(c *fiber.Ctx, m inventory.Mode, a inventory.Applied) {
	if a.DryRun {
		return
	}
	log := s.Logger.With("document", a.Document, "address", httpd.ClientIP(c))
	log.InfoContext(c.UserContext(), "inventory applied", "added", len(a.Added), "changed", len(a.Changed), "removed", len(a.Removed), "kept", len(a.Kept))
	if len(a.Kept) > 0 {
		log.InfoContext(c.UserContext(), "inventory not taken everywhere", "count", len(a.Kept), "kept", inventory.FirstNames(a.Kept))
	}
	if m.Prune {
		log.InfoContext(c.UserContext(), "inventory pruned", "count", len(a.Removed), "removed", inventory.FirstNames(a.Removed))
	}
}

// modeOf reads how far an apply goes.
func modeOf(c *fiber.Ctx) (m inventory.Mode, err error) {
	for _, word := range strings.FieldsFunc(c.Query("reset"), func(r rune) bool { return r == ',' }) {
		if !slices.Contains([]string{"credit", "sims", "relays", "rules"}, word) {
			return m, relay.Invalid("reset", fmt.Sprintf("want credit, sims, relays or rules, got %q", word))
		}
		m.Reset = append(m.Reset, strings.Clone(word))
	}
	if name := c.Query("account"); name != "" {
		if len(m.Reset) == 0 {
			return m, relay.Invalid("account", "want reset as well: account limits what is reset to one account")
		}
		m.ResetAccounts = []string{strings.Clone(name)}
	}
	for name, flag := range map[string]*bool{"prune": &m.Prune, "adopt": &m.Adopt, "dry_run": &m.DryRun} {
		if text := c.Query(name); text != "" {
			var ok bool
			if *flag, ok = params.ParseBool(text); !ok {
				return m, relay.Invalid(name, "want true or false")
			}
		}
	}
	if text := c.Query("allow_removals"); text != "" {
		n, ok := decimal.Int(text)
		if !ok || n < 0 {
			return m, relay.Invalid("allow_removals", "want a number of records")
		}
		m.AllowRemovals = int(n)
	}
	unknown := relay.Problems{}
	params.RefuseUnknown(c, unknown, []string{"dry_run", "prune", "allow_removals", "adopt", "reset", "account"})
	return m, unknown.Err()
}
