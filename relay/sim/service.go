package sim

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/penstock/penstock/relay"
)

// LimitEnforcer suspends SIMs that have reached a blocking limit. Callers report SIMs that were
// activated or attached, or whose limit has changed; they do not report usage.
type LimitEnforcer interface {
	// EnforceSIMs suspends the SIMs that are in service although they or their pool have reached a
	// blocking limit.
	EnforceSIMs(ctx context.Context, acct relay.AccountID, iccids []ICCID) error
	// EnforcePool does the same as EnforceSIMs for all SIMs of a pool.
	EnforcePool(ctx context.Context, acct relay.AccountID, id string) error
}

// Callbacks stores the callback URLs of accounts.
type Callbacks interface {
	SetCallback(ctx context.Context, acct relay.AccountID, url string) error
}

// Prober makes a test request to a URL, guarded like every outgoing request. Its error is the
// reason why the URL cannot be reached; relay.KindUnavailable means that the request could not be
// made.
type Prober interface {
	Probe(ctx context.Context, acct relay.AccountID, url string) error
}

// Deps are the dependencies of a Service; all but AllowHTTP and Now are required.
type Deps struct {
	SIMs        *SIMs
	Pools       *Pools
	Subscribers *Subscribers
	Callbacks   Callbacks
	Prober      Prober
	Limits      LimitEnforcer
	AllowHTTP   bool // allows http: callbacks, for private networks
	Now         func() time.Time
}

// Service has the operations on SIMs that take effect at once. Package provisioning has the
// operations that are jobs.
type Service struct{ Deps }

// New returns a Service.
func New(d Deps) *Service {
	if d.Now == nil {
		d.Now = time.Now
	}
	return &Service{d}
}

// List returns a page of the account's SIMs and their total number.
func (s *Service) List(ctx context.Context, acct relay.AccountID, q Query) ([]SIM, int, error) {
	return s.SIMs.List(ctx, acct, Scope{}, q)
}

// Get returns a SIM; the refusal NotFound if the account does not have the SIM.
func (s *Service) Get(ctx context.Context, acct relay.AccountID, iccid string) (SIM, error) {
	return Load(ctx, s.SIMs, acct, iccid)
}

// Load loads the SIM with the ICCID of a request; the refusal NotFound if the account does not have
// the SIM.
func Load(ctx context.Context, sims *SIMs, acct relay.AccountID, iccid string) (SIM, error) {
	id, err := ParseICCID(iccid)
	if err != nil {
		return SIM{}, NotFound()
	}
	sim, err := sims.Get(ctx, acct, id)
	return sim, ReplaceNotFound(err, NotFound())
}

func (s *Service) change(ctx context.Context, acct relay.AccountID, iccid string, change func(*SIM) error) (SIM, error) {
	id, err := ParseICCID(iccid)
	if err != nil {
		return SIM{}, NotFound()
	}
	sim, err := s.SIMs.Change(ctx, acct, id, change)
	return sim, ReplaceNotFound(err, NotFound())
}

// LimitChange has the changes to a limit; a nil field is left unchanged.
type LimitChange struct {
	Monthly, Warning *int64 // bytes
	Action           *LimitAction
	// NoMonthly and NoWarning remove the limit and the warning.
	NoMonthly, NoWarning bool
}

// check adds the problems of the parameters. minimum is the smallest valid number of bytes.
func (c LimitChange) check(p relay.Problems, minimum int64) {
	for name, value := range map[string]*int64{"monthly_usage_limit": c.Monthly, "monthly_usage_limit_warning": c.Warning} {
		switch {
		case value == nil || *value >= minimum:
		case minimum > 0:
			p.AddNamed(name, "The %s must be greater than 0.")
		default:
			p.AddNamed(name, "The %s must be at least 0.")
		}
	}
	if c.Action != nil && !slices.Contains(LimitActions(), *c.Action) {
		p.AddNamed("cap_limit", "The %s must be none, notify or block.")
	}
}

// apply returns the limit after the change. It returns an Invalid error if the warning is above
// the limit. The default action of a first limit is Notify, because a limit without an action has no
// effect.
func (c LimitChange) apply(l Limit) (Limit, error) {
	if c.Monthly != nil && *c.Monthly > 0 && l.Monthly == 0 && l.Action == NoAction {
		l.Action = Notify
	}
	if c.NoMonthly {
		l.Monthly = 0
	}
	if c.NoWarning {
		l.Warning = 0
	}
	relay.Assign(&l.Monthly, c.Monthly)
	relay.Assign(&l.Warning, c.Warning)
	relay.Assign(&l.Action, c.Action)
	if l.Monthly > 0 && l.Warning > l.Monthly {
		return l, relay.Problem("monthly_usage_limit_warning", "The %s must not be above the monthly usage limit.")
	}
	return l, nil
}

// SetLimit changes the monthly limit of a SIM. Monthly is required; 0 removes the limit.
func (s *Service) SetLimit(ctx context.Context, acct relay.AccountID, iccid string, c LimitChange) (SIM, error) {
	p := relay.Problems{}
	if c.Monthly == nil {
		p.AddNamed("monthly_usage_limit", "The %s field is required.")
	}
	c.check(p, 0)
	if err := p.Err(); err != nil {
		return SIM{}, err
	}
	newSIM, err := s.change(ctx, acct, iccid, func(sim *SIM) (err error) {
		sim.Limit, err = c.apply(sim.Limit)
		return err
	})
	if err != nil {
		return SIM{}, err
	}
	return newSIM, s.Limits.EnforceSIMs(ctx, acct, []ICCID{newSIM.ICCID})
}

// SetCallback saves the account's callback URL after a successful test request to the URL. It
// returns an Invalid error for callback_url if the URL is invalid or cannot be reached.
func (s *Service) SetCallback(ctx context.Context, acct relay.AccountID, url string) error {
	if err := checkCallback(url, s.AllowHTTP); err != nil {
		return err
	}
	err := s.Prober.Probe(ctx, acct, url)
	switch {
	case relay.KindOf(err) == relay.KindUnavailable:
		return err
	case err != nil:
		return relay.Invalid("callback_url", "The callback url must be reachable: "+err.Error()+".")
	}
	return s.Callbacks.SetCallback(ctx, acct, url)
}

// Register saves a new subscriber, which must have the RequiredFields.
func (s *Service) Register(ctx context.Context, acct relay.AccountID, subscriber Subscriber) (Subscriber, error) {
	if err := subscriber.Check(RequiredFields()); err != nil {
		return subscriber, err
	}
	subscriber.ID = s.newID()
	return subscriber, s.Subscribers.Put(ctx, acct, subscriber)
}

// Subscriber returns a subscriber; the refusal SubscriberNotFound if the account does not have it.
func (s *Service) Subscriber(ctx context.Context, acct relay.AccountID, id string) (Subscriber, error) {
	subscriber, err := s.Subscribers.Get(ctx, acct, id)
	return subscriber, ReplaceNotFound(err, SubscriberNotFound())
}

// ListSubscribers returns a page of the account's subscribers and their total number.
func (s *Service) ListSubscribers(ctx context.Context, acct relay.AccountID, q Query) ([]Subscriber, int, error) {
	return s.Subscribers.List(ctx, acct, q)
}

// SubscriberSIMs returns a page of a subscriber's SIMs and their total number.
func (s *Service) SubscriberSIMs(ctx context.Context, acct relay.AccountID, id string, q Query) ([]SIM, int, error) {
	if _, err := s.Subscriber(ctx, acct, id); err != nil {
		return nil, 0, err
	}
	return s.SIMs.List(ctx, acct, Scope{Subscriber: id}, q)
}

// maxURL is the largest length of a callback's URL, in bytes.
const maxURL = 2048

func checkCallback(raw string, allowHTTP bool) error {
	if raw == "" {
		return relay.Invalid("callback_url", "The callback url field is required.")
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil || len(raw) > maxURL || u.Hostname() == "" || u.Fragment != "" || strings.ContainsFunc(raw, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }):
		return relay.Invalid("callback_url", "The callback url must be a valid URL.")
	case u.Scheme == "https" || u.Scheme == "http" && allowHTTP:
		return nil
	}
	return relay.Invalid("callback_url", "The callback url must begin with https://.")
}
