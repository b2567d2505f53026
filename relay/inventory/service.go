package inventory

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	document "github.com/penstock/penstock/config/inventory"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/audit"
	"github.com/penstock/penstock/relay/credit"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/ledger"
	"github.com/penstock/penstock/relay/lookup"
	"github.com/penstock/penstock/relay/rule"
	"github.com/penstock/penstock/relay/sim"
	"github.com/penstock/penstock/relay/sip"
)

// SIMs stores the SIMs of accounts; *sim.SIMs implements it. It is an interface because the
// gateway enforces limits on the SIMs that an inventory declares.
type SIMs interface {
	GetMany(ctx context.Context, acct relay.AccountID, iccids []sim.ICCID) (map[sim.ICCID]sim.SIM, error)
	Declare(ctx context.Context, acct relay.AccountID, sims []sim.SIM, reset bool) error
	Delete(ctx context.Context, acct relay.AccountID, iccid sim.ICCID) error
}

// Deps are the dependencies of a Service: stores, and checks of document fields.
type Deps struct {
	Store    *Store
	Accounts *account.Store
	Devices  *iot.Store
	Relays   *inbound.Store
	Rules    *rule.Service
	Networks *lookup.Store
	Credit   *credit.Store
	Ledgers  *ledger.Store
	Trunks   *sip.Trunks
	SIMs     SIMs
	Audit    *audit.Store
	// CheckURL returns an error for URLs that requests must not reach.
	CheckURL func(url string) error
	// CheckSource returns an error for a decoder's source that does not compile.
	CheckSource       func(codec, source string) error
	AllowHTTPCallback bool
	Now               func() time.Time
}

// Service applies documents that declare accounts and their records.
type Service struct {
	Deps
	mu sync.Mutex // one apply at a time
	// afterRead lets a test change a record between the read and the save of an apply;
	// nil outside of tests.
	afterRead func(record string)
}

func (s *Service) didRead(record string) {
	if s.afterRead != nil {
		s.afterRead(record)
	}
}

// New returns a Service.
func New(d Deps) *Service { return &Service{Deps: d} }

// Apply reads a document and applies it. It returns document.Mistakes, without a change, if the
// document is invalid.
//
// If another gateway applies a document at the same time, Apply starts again, so that the stored
// set has the records of both.
func (s *Service) Apply(ctx context.Context, data []byte, m document.Mode) (result document.ApplyResult, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range maxApplies {
		result, err = s.apply(ctx, data, m)
		if !errors.Is(err, errRaced) {
			break
		}
	}
	return result, err
}

// maxApplies is the largest number of attempts of an apply while other gateways apply documents.
const maxApplies = 10

func (s *Service) apply(ctx context.Context, data []byte, m document.Mode) (document.ApplyResult, error) {
	stored, err := s.loadSet(ctx)
	if err != nil {
		return document.ApplyResult{}, err
	}
	fresh, err := s.parse(ctx, data, &stored, m)
	if err != nil {
		return document.ApplyResult{}, err
	}
	if m.ResetAccounts, err = s.resetAccounts(ctx, m.ResetAccounts, *fresh); err != nil {
		return document.ApplyResult{}, err
	}
	a := apply{Service: s, result: result{mode: m}, oldSet: stored, set: stored.set, fresh: *fresh}
	if err := a.run(ctx); err != nil {
		return document.ApplyResult{}, err
	}
	return a.report, nil
}

// parse checks a document against the stored set. It adds the SIMs that the document concerns to
// the set.
func (s *Service) parse(ctx context.Context, data []byte, stored *storedSet, m document.Mode) (*document.Document, error) {
	o := document.Options{
		Load: func(d document.Document) (document.Set, error) {
			err := s.loadSIMs(ctx, stored, concernedSIMs(d, m))
			return stored.set, err
		},
		CheckURL: s.CheckURL, CheckSource: s.CheckSource, AllowHTTPCallback: s.AllowHTTPCallback, Prune: m.Prune,
		HasDecoder: func(a document.Account, id string) (bool, error) {
			acct, err := s.Accounts.AccountByName(ctx, a.Name)
			if err == nil {
				_, err = s.Devices.Decoder(ctx, acct.ID, id)
			}
			return err == nil, ignoreMissing(err)
		},
	}
	if m.Trusted {
		o.CheckURL = nil
	}
	return Parse(data, o)
}

// Parse reads a document and checks it, including the rules of other domains. The options have the
// checks that depend on the gateway.
func Parse(data []byte, o document.Options) (*document.Document, error) {
	o.CheckFilter, o.CheckEndpoint, o.CheckRule = inbound.CheckFilter, inbound.CheckEndpoint, CheckRule
	d, err := document.Parse(data, o)
	if err != nil {
		return nil, err
	}
	return d, checkActions(d)
}

// checkActions checks the actions of relays by the rules of the REST API.
func checkActions(d *document.Document) error {
	var mistakes document.Mistakes
	for i, a := range d.Accounts {
		for j, r := range relaysOf(a) {
			if err := r.Action.Validate(r.Kind, nil); err != nil {
				kind, n := "geo", j
				if r.Kind == inbound.VirtualNumber {
					kind, n = "vmn", j-len(a.Relays.Geo)
				}
				reason := err.Error()
				for _, reasons := range relay.FieldsOf(err) {
					reason = reasons[0]
				}
				mistakes.Add(fmt.Sprintf("accounts[%d].relays.%s[%d].action", i, kind, n), "%s", reason)
			}
		}
	}
	return mistakes.Err()
}

// Declared returns the records that all applied inventories declare, with masked secrets.
func (s *Service) Declared(ctx context.Context) (document.Document, error) {
	stored, err := s.loadSet(ctx)
	if err == nil {
		err = s.loadSIMs(ctx, &stored, SIMSelection{All: true})
	}
	if err != nil {
		return document.Document{}, err
	}
	return document.Mask(stored.set.Merged()), nil
}

// Empty reports whether no inventory was ever applied.
func (s *Service) Empty(ctx context.Context) (bool, error) {
	b, err := s.Store.Merged(ctx)
	return b == nil, err
}
