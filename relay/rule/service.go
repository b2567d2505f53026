package rule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/outbox"
)

// Deps are the dependencies of a Service. Store, Fleet and Deliveries are required.
type Deps struct {
	Store      *Store
	Fleet      *iot.Service // provides devices and their readings
	Deliveries outbox.Sender
	// Transactions replaces the transactions of Store in tests. nil means Store.
	Transactions Transactions
	// CheckURL returns an error if the gateway may not call a URL. nil allows all URLs.
	CheckURL func(string) error
	// Behind reports whether the processing of frames is behind. While Behind returns true, silence is
	// not checked and due states are not evaluated. nil means never behind.
	Behind func() bool
}

// Options configures a Service. The zero value is valid.
type Options struct {
	Settings Settings
	// Tick is the interval of Service.Tick; 0 means 1 s.
	Tick time.Duration
	// MaxRules is the largest number of rules that an account may have; 0 means 2,000.
	MaxRules int
	// ActionsPerFrame is the largest number of deliveries of all rules for one frame; 0 means 100.
	// ActionsPerMinute is the largest number of deliveries of an account per minute; 0 means 6,000.
	// Beyond these limits, alarms are raised and cleared without actions.
	ActionsPerFrame, ActionsPerMinute int
	Now                               func() time.Time
	NewID                             func() string
	Logger                            *slog.Logger
}

// Service implements the operations on rules and alarms. It is safe for concurrent use.
type Service struct {
	deps     Deps
	o        Options
	mu       sync.Mutex
	sets     map[relay.AccountID]*ruleSet
	failures failures
	counters counters
	limiter  limiter
}

// New returns a Service. It returns an error if a required dependency is missing.
func New(d Deps, o Options) (*Service, error) {
	if d.Store == nil || d.Fleet == nil || d.Deliveries.Dispatcher == nil {
		return nil, errors.New("rule: store, fleet and deliveries are required")
	}
	if d.Transactions == nil {
		d.Transactions = d.Store
	}
	if d.CheckURL == nil {
		d.CheckURL = func(string) error { return nil }
	}
	if d.Behind == nil {
		d.Behind = func() bool { return false }
	}
	o.Tick, o.MaxRules = cmp.Or(o.Tick, time.Second), cmp.Or(o.MaxRules, 2000)
	o.ActionsPerFrame, o.ActionsPerMinute = cmp.Or(o.ActionsPerFrame, 100), cmp.Or(o.ActionsPerMinute, 6000)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = func() string { return relay.NewID(o.Now()) }
	}
	if o.Settings.Now == nil {
		o.Settings.Now = o.Now
	}
	o.Settings.Zone = cmp.Or(o.Settings.Zone, time.UTC)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	return &Service{deps: d, o: o, sets: make(map[relay.AccountID]*ruleSet)}, nil
}

// Create saves a new rule. A rule without an ID gets a new one. Create returns the saved rule and
// warnings about missing decoders, locations, devices and keys.
//
// It returns relay.KindInvalid with the field, such as "when" or "actions[1].body", and
// relay.KindConflict if the ID exists.
func (s *Service) Create(ctx context.Context, acct relay.AccountID, r Rule) (Rule, []string, error) {
	now := s.o.Now().UTC()
	r.ID, r.CreatedAt, r.UpdatedAt, r.Failures = cmp.Or(r.ID, s.o.NewID()), now, now, Failures{}
	p, err := s.check(&r)
	if err != nil {
		return Rule{}, nil, err
	}
	n, err := s.deps.Store.CountRules(ctx, acct)
	if err != nil {
		return Rule{}, nil, err
	}
	if n >= s.o.MaxRules {
		return Rule{}, nil, relay.Invalid("name", fmt.Sprintf("The account has %d rules, the largest number allowed.", n))
	}
	if err := s.deps.Store.Create(ctx, acct, r); err != nil {
		return Rule{}, nil, err
	}
	return r, s.warnings(ctx, acct, p), nil
}

// Change calls change with a rule and saves the result. If the rule is disabled, or its trigger, a
// condition, For, SilentFor or the devices change, its states are deleted and its alarms are cleared
// without actions. Change returns relay.KindNotFound if there is no such rule, relay.KindInvalid like
// Create, and the errors of change.
func (s *Service) Change(ctx context.Context, acct relay.AccountID, id string, change func(*Rule) error) (Rule, []string, error) {
	var p *Program
	now := s.o.Now().UTC()
	r, err := s.deps.Store.Change(ctx, acct, id, func(r *Rule) (err error) {
		createdAt := r.CreatedAt
		if err := change(r); err != nil {
			return err
		}
		r.ID, r.CreatedAt, r.UpdatedAt = id, createdAt, now
		p, err = s.check(r)
		return err
	}, resetsStates, now)
	if err != nil {
		return Rule{}, nil, err
	}
	return r, s.warnings(ctx, acct, p), nil
}

// Delete deletes a rule. Its alarms stay as history, and raised ones are cleared without actions. It
// returns relay.KindNotFound if there is no such rule.
func (s *Service) Delete(ctx context.Context, acct relay.AccountID, id string) error {
	return s.deps.Store.Delete(ctx, acct, id, s.o.Now())
}

// Rule returns a rule, or relay.KindNotFound if there is none.
func (s *Service) Rule(ctx context.Context, acct relay.AccountID, id string) (Rule, error) {
	return s.deps.Store.Rule(ctx, acct, id)
}

// Rules lists an account's rules in order of creation.
func (s *Service) Rules(ctx context.Context, acct relay.AccountID) ([]Rule, error) {
	return s.deps.Store.Rules(ctx, acct)
}

// FindRules returns up to limit rules after cursor of an account, or of all accounts if acct is 0, in
// the order of account and time of creation.
func (s *Service) FindRules(ctx context.Context, acct relay.AccountID, cursor Cursor, limit int) ([]AccountRecord[Rule], error) {
	return s.deps.Store.FindRules(ctx, acct, cursor, limit)
}

func (s *Service) check(r *Rule) (*Program, error) {
	p, err := Compile(r)
	if err != nil {
		return nil, err
	}
	if err := p.actions.checkURLs(s.deps.CheckURL); err != nil {
		return nil, err
	}
	return p, nil
}

// warnings returns warnings about a decoder, a location and devices of a rule that do not exist, and
// about keys in its expressions that no decoder of its devices maps. It returns no warnings if the
// records cannot be read.
func (s *Service) warnings(ctx context.Context, acct relay.AccountID, p *Program) (warnings []string) {
	add := func(format string, args ...any) { warnings = append(warnings, fmt.Sprintf(format, args...)) }
	d := p.Rule.Devices
	// 1. The location and the devices.
	if d.LocationID != "" {
		locations, err := s.deps.Fleet.Locations(ctx, acct)
		if err == nil && !slices.ContainsFunc(locations, func(l iot.Location) bool { return l.ID == d.LocationID }) {
			add("There is no location %q: the rule has no devices.", d.LocationID)
		}
	}
	if len(d.IDs) > 0 {
		found, err := s.deps.Fleet.DevicesByID(ctx, acct, d.IDs)
		missing := slices.DeleteFunc(slices.Clone(d.IDs), func(id string) bool { _, ok := found[id]; return ok || err != nil })
		for _, id := range missing[:min(len(missing), maxMissingDevices)] {
			add("There is no device %q.", id)
		}
	}
	// 2. The decoder, and the keys that the decoders map.
	keys := p.keys()
	if len(keys) == 0 && d.DecoderID == "" {
		return warnings
	}
	decoders, err := s.deps.Fleet.Decoders(ctx, acct)
	if err != nil {
		return warnings
	}
	exists, mapped := d.DecoderID == "", make(map[string]bool)
	for _, decoder := range decoders {
		if d.DecoderID != "" && d.DecoderID != decoder.ID {
			continue
		}
		exists = true
		for _, m := range decoder.Sensors {
			mapped[m.Key] = true
		}
	}
	if !exists {
		add("There is no decoder %q: the rule has no devices.", d.DecoderID)
		return warnings
	}
	for _, key := range keys {
		if !mapped[key] {
			add("No decoder of the selected devices maps the key %q.", key)
		}
	}
	return warnings
}

const maxMissingDevices = 10

// errUnchanged cancels the transaction of Declare, so that the stored rule does not change.
var errUnchanged = errors.New("the stored rule is unchanged")

// Declare creates a rule or replaces the stored rule with the same ID. It calls keep with the stored
// rule, or nil for none, and saves nothing if keep returns true. It does not check whether the gateway
// may call the rule's URLs, because the inventory has already been checked. It returns
// relay.KindInvalid like Create.
func (s *Service) Declare(ctx context.Context, acct relay.AccountID, r Rule, keep func(stored *Rule) bool) error {
	now := s.o.Now().UTC()
	if _, err := Compile(&r); err != nil {
		return err
	}
	_, err := s.deps.Store.Change(ctx, acct, r.ID, func(stored *Rule) error {
		if keep(stored) {
			return errUnchanged
		}
		createdAt := stored.CreatedAt
		*stored = r
		stored.CreatedAt, stored.UpdatedAt = createdAt, now
		return nil
	}, resetsStates, now)
	if errors.Is(err, errUnchanged) {
		return nil
	}
	if relay.KindOf(err) != relay.KindNotFound {
		return err
	}
	if keep(nil) {
		return nil
	}
	r.CreatedAt, r.UpdatedAt = now, now
	return s.deps.Store.Create(ctx, acct, r)
}
