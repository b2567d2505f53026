package lookup

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/credit"
)

// cost is the price of a lookup, in credits.
const cost = 1

// Credit charges for lookups. *credit.Store implements it. It is an interface because tests simulate
// a lost response to a charge.
type Credit interface {
	Balance(ctx context.Context, acct relay.AccountID) (int64, error)
	Apply(ctx context.Context, c credit.Change) (credit.Entry, error)
}

// Deps are the dependencies of a Service. Backend, Cache and Credit are required.
type Deps struct {
	Backend Backend
	Cache   *Store
	Credit  Credit
	Now     func() time.Time
	Logger  *slog.Logger
}

// Options are optional settings. The zero value is valid.
type Options struct {
	// CacheTTL is the time for which a result is cached; 0 disables caching.
	CacheTTL time.Duration
	// Timeout bounds a request to the back end; 0 means 15 s.
	Timeout time.Duration
}

// Service looks up numbers. It is safe for concurrent use.
type Service struct {
	deps     Deps
	opts     Options
	requests singleflight.Group
}

// New returns a Service.
func New(d Deps, o Options) (*Service, error) {
	if d.Backend == nil || d.Cache == nil || d.Credit == nil {
		return nil, errors.New("lookup: Backend, Cache and Credit are required")
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	d.Logger = cmp.Or(d.Logger, slog.Default())
	o.Timeout = cmp.Or(o.Timeout, 15*time.Second)
	return &Service{deps: d, opts: o}, nil
}

// Lookup finds the network of a number and charges the account for an answer.
//
// It returns relay.KindNoCredit if the account cannot pay, and relay.KindUnavailable if no query could
// be made. An account without credit causes no query.
func (s *Service) Lookup(ctx context.Context, acct relay.AccountID, number relay.MSISDN) (Result, error) {
	balance, err := s.deps.Credit.Balance(ctx, acct)
	if err != nil {
		return Result{}, err
	}
	if balance < cost {
		return Result{}, relay.Errorf(relay.KindNoCredit, "lookup: account %s has no credit", acct)
	}
	r, err := s.find(ctx, number)
	if err != nil || r.Code == NoAnswer {
		return r, err
	}
	// The charge is retried once if its response may have been lost. The ID of the change prevents a
	// second charge.
	now := s.deps.Now()
	change := credit.Change{
		ID: relay.NewID(now), Account: acct, Credits: -cost, Reason: credit.Lookup, Reference: string(number), At: now,
	}
	_, err = s.deps.Credit.Apply(ctx, change)
	if relay.KindOf(err) == relay.KindUnavailable {
		_, err = s.deps.Credit.Apply(ctx, change)
	}
	if err != nil {
		return Result{}, err
	}
	return r, nil
}

// find returns the cached result or queries the back end. Concurrent lookups of the same number share
// one request, which continues if the context of a lookup ends.
func (s *Service) find(ctx context.Context, number relay.MSISDN) (Result, error) {
	results := s.requests.DoChan(string(number), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opts.Timeout)
		defer cancel()
		return s.query(ctx, number)
	})
	select {
	case <-ctx.Done():
		return Result{}, relay.Errorf(relay.KindUnavailable, "lookup: %w", ctx.Err())
	case result := <-results:
		r, _ := result.Val.(Result)
		return r, result.Err
	}
}

// query queries the cache, then the back end. A cache that is down is not an error.
func (s *Service) query(ctx context.Context, number relay.MSISDN) (Result, error) {
	if s.opts.CacheTTL > 0 {
		r, err := s.deps.Cache.Get(ctx, number)
		if err == nil {
			return r, nil
		}
		if relay.KindOf(err) != relay.KindNotFound {
			s.deps.Logger.WarnContext(ctx, "cannot read cached lookup", "error", err)
		}
	}
	r, err := s.deps.Backend.Find(ctx, number)
	if err != nil || r.Code == NoAnswer || s.opts.CacheTTL <= 0 {
		return r, err
	}
	if err := s.deps.Cache.Put(ctx, r, s.opts.CacheTTL); err != nil {
		s.deps.Logger.WarnContext(ctx, "lookup not cached", "error", err)
	}
	return r, nil
}
