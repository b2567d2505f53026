package sim

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
)

// Deps are what the use cases need, all of it.
type Deps struct {
	SIMs        SIMs
	Pools       Pools
	Subscribers Subscribers
	Callbacks   Callbacks
	Prober      Prober
}

// Options are what may be chosen; the zero value works.
type Options struct {
	// AllowHTTP lets callbacks be http: for networks of one's own.
	AllowHTTP bool
	Now       func() time.Time
}

// Service is the use cases of SIMs that take effect at once. What takes a job is
// not among them.
type Service struct {
	Deps
	opts Options
}

// New returns the use cases.
func New(d Deps, o Options) (*Service, error) {
	if d.SIMs == nil || d.Pools == nil || d.Subscribers == nil || d.Callbacks == nil || d.Prober == nil {
		return nil, errors.New("sim: a dependency is missing")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Service{d, o}, nil
}

// List returns a page of the account's SIMs and how many there are.
func (s *Service) List(ctx context.Context, acct account.ID, q Query) ([]SIM, int, error) {
	return s.SIMs.List(ctx, acct, Scope{}, q)
}

// Get returns a SIM; the refusal NoSIM if the account has none with the ICCID.
func (s *Service) Get(ctx context.Context, acct account.ID, iccid string) (SIM, error) {
	id, err := ParseICCID(iccid)
	if err != nil {
		return SIM{}, NoSIM()
	}
	one, err := s.SIMs.Get(ctx, acct, id)
	return one, missing(err, NoSIM())
}

// change is Change of a SIM by what a path names.
func (s *Service) change(ctx context.Context, acct account.ID, iccid string, change func(*SIM) error) (SIM, error) {
	id, err := ParseICCID(iccid)
	if err != nil {
		return SIM{}, NoSIM()
	}
	one, err := s.SIMs.Change(ctx, acct, id, change)
	return one, missing(err, NoSIM())
}

// LimitChange is a change to a limit; what is nil stays as it is.
type LimitChange struct {
	Monthly, Warning *int64 // bytes
	Cap              *Cap
	// NoMonthly and NoWarning lift them.
	NoMonthly, NoWarning bool
}

// check notes what is wrong, with the names of the parameters; least is the least
// number of bytes.
func (c LimitChange) check(p Problems, least int64) {
	for name, value := range map[string]*int64{"monthly_usage_limit": c.Monthly, "monthly_usage_limit_warning": c.Warning} {
		switch {
		case value == nil || *value >= least:
		case least > 0:
			p.Add(name, "The %s must be greater than 0.")
		default:
			p.Add(name, "The %s must be at least 0.")
		}
	}
	if c.Cap != nil && !slices.Contains(Caps(), *c.Cap) {
		p.Add("cap_limit", "The %s must be none, notify or block.")
	}
}

// value is what a pointer leads to, 0 for nil.
func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// of applies the change. A first limit without a cap is one that is told: nobody
// sets a limit to hear nothing of it.
func (c LimitChange) of(l Limit) Limit {
	if value(c.Monthly) > 0 && l.Monthly == 0 && l.Cap == NoCap {
		l.Cap = Notify
	}
	if c.Monthly != nil || c.NoMonthly {
		l.Monthly = value(c.Monthly)
	}
	if c.Warning != nil || c.NoWarning {
		l.Warning = value(c.Warning)
	}
	if c.Cap != nil {
		l.Cap = *c.Cap
	}
	return l
}

// SetLimit changes the monthly limit of a SIM, which must be given; 0 lifts it.
func (s *Service) SetLimit(ctx context.Context, acct account.ID, iccid string, c LimitChange) (SIM, error) {
	p := Problems{}
	if c.Monthly == nil {
		p.Add("monthly_usage_limit", "The %s field is required.")
	}
	c.check(p, 0)
	if err := p.Err(); err != nil {
		return SIM{}, err
	}
	return s.change(ctx, acct, iccid, func(one *SIM) error {
		one.Limit = c.of(one.Limit)
		return nil
	})
}

// SetCallback saves where the account is told what happens, once a test request
// has reached it. What is wrong with the URL is Invalid of callback_url.
func (s *Service) SetCallback(ctx context.Context, acct account.ID, url string) error {
	if err := checkCallback(url, s.opts.AllowHTTP); err != nil {
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
