package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/config/inventory"
	"github.com/penstock/penstock/config/strict"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/credit"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/ledger"
	"github.com/penstock/penstock/relay/lookup"
	"github.com/penstock/penstock/relay/sim"
	"github.com/penstock/penstock/relay/sip"
)

// Relays keeps relays as an inventory needs them.
type Relays interface {
	Get(ctx context.Context, acct account.ID, k inbound.Kind, id string) (inbound.Relay, error)
	Put(ctx context.Context, r inbound.Relay) error
	Delete(ctx context.Context, acct account.ID, k inbound.Kind, id string) error
}

// Devices keeps what decodes, as an inventory needs it.
type Devices interface {
	iot.Store
	PutSensorType(ctx context.Context, t iot.SensorType) error
	DeleteSensorType(ctx context.Context, id string) error
	PutLocation(ctx context.Context, acct account.ID, l iot.Location) error
	DeleteLocation(ctx context.Context, acct account.ID, id string) error
	DeleteDecoder(ctx context.Context, acct account.ID, id string) error
}

// Networks keeps the table of the simulated lookup.
type Networks interface {
	PutNetwork(ctx context.Context, n lookup.Network) error
	DeleteNetwork(ctx context.Context, prefix string) error
}

// Ledgers keeps ledgers as an inventory needs them.
type Ledgers interface {
	Put(ctx context.Context, acct account.ID, l ledger.Ledger) error
	Delete(ctx context.Context, acct account.ID, id string) error
}

// Trunks keeps where accounts' SIP calls come from.
type Trunks interface {
	PutTrunks(ctx context.Context, acct account.ID, list []sip.Trunk) error
}

// SIMs keeps SIMs as an inventory needs them.
type SIMs interface {
	Declare(ctx context.Context, acct account.ID, all []sim.SIM, reset bool) error
	Delete(ctx context.Context, acct account.ID, iccid sim.ICCID) error
}

// InventoryDeps are what an inventory is applied to and checked against.
type InventoryDeps struct {
	Accounts account.Store
	Devices  Devices
	Relays   Relays
	Networks Networks
	Credit   credit.Store
	Ledgers  Ledgers
	Trunks   Trunks
	SIMs     SIMs
	// CheckURL refuses URLs that requests must not reach.
	CheckURL func(url string) error
	// CheckSource refuses a decoder's source that does not compile.
	CheckSource       func(codec, source string) error
	AllowHTTPCallback bool
	Now               func() time.Time
}

// Inventory applies documents that declare accounts and what they have.
type Inventory struct {
	InventoryDeps
	mu sync.Mutex // one apply at a time
}

// NewInventory returns an Inventory.
func NewInventory(d InventoryDeps) *Inventory { return &Inventory{InventoryDeps: d} }

// Mode says how far an apply goes.
type Mode struct {
	// Reset names what is set to what the document says although it lives on
	// through REST and traffic: relays, credit, sims.
	Reset []string
	// Prune removes what an earlier inventory declared and this one omits.
	Prune bool
	// Trusted leaves out the check of URLs; for the demo, which is our own.
	Trusted bool
}

// Applied says what an apply did.
type Applied struct {
	Accounts []AppliedAccount `json:"accounts"`
	// Removed names what a prune removed; Kept what it did not, and why.
	Removed []string `json:"removed"`
	Kept    []string `json:"kept"`
}

// AppliedAccount is an account that a document names.
type AppliedAccount struct {
	ID   account.ID `json:"id"`
	Name string     `json:"name"`
}

// Apply reads a document and applies it. A mistake refuses it whole: the error
// is strict.Mistakes then.
//
// When another gateway applied one meanwhile, this one is applied again over
// the other, so that what is kept names what both declared.
func (v *Inventory) Apply(ctx context.Context, data []byte, m Mode) (done Applied, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for range maxApplies {
		done, err = v.apply(ctx, data, m)
		if !errors.Is(err, errRaced) {
			break
		}
	}
	return done, err
}

// maxApplies is how often an apply gives way to those of other gateways.
const maxApplies = 10

func (v *Inventory) apply(ctx context.Context, data []byte, m Mode) (Applied, error) {
	was, old, err := v.load(ctx)
	if err != nil {
		return Applied{}, err
	}
	fresh, err := v.parse(data, old, m)
	if err != nil {
		return Applied{}, err
	}
	a := apply{Inventory: v, mode: m, was: was, old: old, fresh: *fresh}
	if err := a.run(ctx); err != nil {
		return Applied{}, err
	}
	return a.done, nil
}

// parse checks a document against what stands. With a prune, what stands and is
// omitted goes, so that the document may also claim what that had.
func (v *Inventory) parse(data []byte, old inventory.Document, m Mode) (*inventory.Document, error) {
	o := inventory.Options{
		Known: old, CheckURL: v.CheckURL, CheckSource: v.CheckSource, CheckFilter: inbound.CheckFilter, AllowHTTPCallback: v.AllowHTTPCallback,
	}
	if m.Trusted {
		o.CheckURL = nil
	}
	fresh, err := inventory.Parse(data, o)
	if err != nil && m.Prune {
		o.Known = inventory.Document{}
		if alone, again := inventory.Parse(data, o); again == nil {
			return alone, v.unavailable(alone)
		}
	}
	if err != nil {
		return nil, err
	}
	return fresh, v.unavailable(fresh)
}

// unavailable refuses actions that this version cannot perform.
func (v *Inventory) unavailable(d *inventory.Document) error {
	var mistakes strict.Mistakes
	for i, a := range d.Accounts {
		for j, r := range relaysOf(a) {
			if err := r.Action.Validate(r.Kind, nil); err != nil {
				kind, n := "geo", j
				if r.Kind == inbound.VirtualNumber {
					kind, n = "vmn", j-len(a.Relays.Geo)
				}
				mistakes.Add(fmt.Sprintf("accounts[%d].relays.%s[%d].action", i, kind, n), "%s", problemOf(err))
			}
		}
	}
	return mistakes.Err()
}

// load returns what earlier inventories declared, as it is kept and read.
func (v *Inventory) load(ctx context.Context) (b []byte, d inventory.Document, err error) {
	if b, err = v.Accounts.Inventory(ctx); err != nil || b == nil {
		return nil, d, err
	}
	if err := json.Unmarshal(b, &d); err != nil {
		return nil, d, fmt.Errorf("inventory: stored document: %w", err)
	}
	return b, d, nil
}

// Empty reports whether no inventory was ever applied.
func (v *Inventory) Empty(ctx context.Context) (bool, error) {
	b, err := v.Accounts.Inventory(ctx)
	return b == nil, err
}

func (s *Surface) getInventory(c *fiber.Ctx) error {
	_, d, err := s.Inventory.load(c.UserContext())
	if err != nil {
		return err
	}
	return c.JSON(inventory.Mask(d))
}

func (s *Surface) putInventory(c *fiber.Ctx) error {
	m := Mode{Prune: c.QueryBool("prune")}
	for _, word := range strings.FieldsFunc(c.Query("reset"), func(r rune) bool { return r == ',' }) {
		if !slices.Contains([]string{"credit", "sims", "relays"}, word) {
			return badReset(c, word)
		}
		m.Reset = append(m.Reset, strings.Clone(word))
	}
	data, err := httpd.Body(c, 8<<20)
	if err != nil {
		return err
	}
	done, err := s.Inventory.Apply(c.UserContext(), data, m)
	if mistakes, ok := errors.AsType[strict.Mistakes](err); ok {
		return refused(c, mistakes)
	}
	if err != nil {
		return err
	}
	return c.JSON(fiber.Map{"data": done})
}

// refused answers with every mistake by its path.
func refused(c *fiber.Ctx, mistakes strict.Mistakes) error {
	byPath := make(map[string][]string, len(mistakes))
	for _, m := range mistakes {
		byPath[m.Path] = append(byPath[m.Path], m.Text)
	}
	return c.Status(fiber.StatusUnprocessableEntity).JSON(fiber.Map{
		"message": "The inventory was refused: " + mistakes[0].String(), "errors": byPath,
	})
}

func badReset(c *fiber.Ctx, word string) error {
	return c.Status(fiber.StatusUnprocessableEntity).JSON(fiber.Map{
		"message": "The given data was invalid.",
		"errors":  fiber.Map{"reset": []string{fmt.Sprintf("want credit, sims or relays, got %q", word)}},
	})
}

// problemOf is the text of the first field of an error about fields.
func problemOf(err error) string {
	for _, problems := range relay.FieldsOf(err) {
		return problems[0]
	}
	return err.Error()
}
