package ledger

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/ledger/vault"
	"github.com/penstock/penstock/relay/outbox"
)

// Deps are the dependencies of a Service; all but Now, Events and Heads are required.
type Deps struct {
	Store *Store
	Vault *vault.Vault
	// Jobs returns saved jobs, Submit takes new ones.
	Jobs   job.Getter
	Submit job.Submitter
	Events outbox.Notifier // nil disables events
	// Heads keeps the last heads outside the store; nil: in memory, so that what
	// was changed while the program did not run is not noticed.
	Heads Heads
	Now   func() time.Time
}

// Options are optional settings; the zero value works.
type Options struct {
	// KeepJobs is how long a job is known after its end; 0 means 30 days.
	KeepJobs time.Duration
	// ShowPrivate is how long a private token is shown after its generation was
	// asked for; 0 means 24 h.
	ShowPrivate time.Duration
	// NotifyHeads sends each new head of a ledger to the account's callback.
	NotifyHeads bool
}

// Service has the use cases of ledgers and tokens.
type Service struct {
	deps    Deps
	opts    Options
	signing locks
	// trusted holds the head of each ledger that was examined last, so that one that
	// has not changed is not examined again.
	trusted table[Place, trust]
	alarms  alarms
}

// New returns a Service.
func New(deps Deps, o Options) (*Service, error) {
	if deps.Store == nil || deps.Vault == nil || deps.Jobs == nil {
		return nil, errors.New("ledger: store, vault and jobs are needed")
	}
	if deps.Now == nil {
		deps.Now = time.Now
	}
	if deps.Heads == nil {
		deps.Heads = HeadsOf(nil)
	}
	o.KeepJobs = cmp.Or(o.KeepJobs, 30*24*time.Hour)
	o.ShowPrivate = cmp.Or(o.ShowPrivate, 24*time.Hour)
	return &Service{deps: deps, opts: o}, nil
}

// Ledgers lists an account's ledgers.
func (s *Service) Ledgers(ctx context.Context, acct relay.AccountID) ([]Ledger, error) {
	return s.deps.Store.Ledgers(ctx, acct)
}

// Ledger returns a ledger by its id or its hash; NotFound if the account has
// none.
func (s *Service) Ledger(ctx context.Context, acct relay.AccountID, name string) (Ledger, error) {
	ledgers, err := s.deps.Store.Ledgers(ctx, acct)
	if err != nil {
		return Ledger{}, err
	}
	i := slices.IndexFunc(ledgers, func(l Ledger) bool { return l.ID == name || l.Hash == name })
	if i < 0 {
		return Ledger{}, relay.Errorf(relay.KindNotFound, "ledger: the account has none of that name")
	}
	return ledgers[i], nil
}

// RenewKeys wraps an account's keys by the newest master key, if an older one
// does.
func (s *Service) RenewKeys(ctx context.Context, acct relay.AccountID) error {
	return s.deps.Vault.Renew(ctx, acct)
}
