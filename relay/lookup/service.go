package lookup

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/credit"
)

// cost is what a lookup takes, in credits.
const cost = 1

// Deps is what lookups are made with; Backend, Cache and Credit are needed.
type Deps struct {
	Backend Backend
	Cache   Cache
	Credit  credit.Store
	Now     func() time.Time
	Logger  *slog.Logger
}

// Options are what may be chosen; the zero value works.
type Options struct {
	// Keep is how long a network's word is remembered; 0: not at all.
	Keep time.Duration
	// Timeout bounds a request to the back end; 0 means 15 s.
	Timeout time.Duration
}

// Service looks numbers up. It is safe for concurrent use.
type Service struct {
	deps    Deps
	opts    Options
	flights singleflight.Group
}

// New returns a Service.
func New(d Deps, o Options) (*Service, error) {
	if d.Backend == nil || d.Cache == nil || d.Credit == nil {
		return nil, errors.New("lookup: backend, cache and credit are needed")
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	d.Logger = cmp.Or(d.Logger, slog.Default())
	o.Timeout = cmp.Or(o.Timeout, 15*time.Second)
	return &Service{deps: d, opts: o}, nil
}

// Lookup finds out about a number and charges the account for an answer.
//
// It returns relay.KindNoCredit if the account cannot pay, before anybody is
// asked where that is known, and relay.KindUnavailable if nobody could be asked.
func (s *Service) Lookup(ctx context.Context, acct account.ID, number relay.MSISDN) (Result, error) {
	has, err := s.deps.Credit.Balance(ctx, acct)
	if err != nil {
		return Result{}, err
	}
	if has < cost {
		return Result{}, relay.Errorf(relay.KindNoCredit, "lookup: account %s has no credit", acct)
	}
	r, err := s.find(ctx, number)
	if err != nil || r.Code == NoAnswer {
		return r, err
	}
	if err := s.charge(ctx, acct, number); err != nil {
		return Result{}, err
	}
	return r, nil
}

// charge takes the credit. It is tried again once where the answer may have been
// lost: the change's id keeps that from charging twice.
func (s *Service) charge(ctx context.Context, acct account.ID, number relay.MSISDN) error {
	now := s.deps.Now()
	change := credit.Change{
		ID: relay.NewID(now), Account: acct, Credits: -cost, Reason: credit.Lookup, Reference: string(number), At: now,
	}
	_, err := s.deps.Credit.Apply(ctx, change)
	if relay.KindOf(err) == relay.KindUnavailable {
		_, err = s.deps.Credit.Apply(ctx, change)
	}
	return err
}

// find returns what is remembered, or asks; those who want the same number at
// the same time share one request, which outlives any of them.
func (s *Service) find(ctx context.Context, number relay.MSISDN) (Result, error) {
	flight := s.flights.DoChan(string(number), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opts.Timeout)
		defer cancel()
		return s.ask(ctx, number)
	})
	select {
	case <-ctx.Done():
		return Result{}, relay.Errorf(relay.KindUnavailable, "lookup: %w", ctx.Err())
	case landed := <-flight:
		r, _ := landed.Val.(Result)
		return r, landed.Err
	}
}

// ask looks into the cache, else to the back end. A cache that is down costs a
// request, not the answer.
func (s *Service) ask(ctx context.Context, number relay.MSISDN) (Result, error) {
	if s.opts.Keep > 0 {
		r, err := s.deps.Cache.Remembered(ctx, number)
		if err == nil {
			return r, nil
		}
		if relay.KindOf(err) != relay.KindNotFound {
			s.deps.Logger.WarnContext(ctx, "which lookups are remembered is not known", "error", err)
		}
	}
	r, err := s.deps.Backend.Find(ctx, number)
	if err != nil || r.Code == NoAnswer || s.opts.Keep <= 0 {
		return r, err
	}
	if err := s.deps.Cache.Remember(ctx, r, s.opts.Keep); err != nil {
		s.deps.Logger.WarnContext(ctx, "lookup is not remembered", "error", err)
	}
	return r, nil
}
