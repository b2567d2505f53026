package ledger_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/ledger"
	"github.com/penstock/penstock/relay/ledger/vault"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/recordstest"
	"github.com/penstock/penstock/relay/relaytest"
)

// site is a service with a real store. Submit runs each job at once, and twice, because a
// job may be repeated after a crash.
type site struct {
	t           *testing.T
	db          *recordstest.Records
	s           *ledger.Service
	mu          sync.Mutex
	clock       *relaytest.Clock
	sent        []outbox.Event
	masters     []string
	heads       ledger.Heads
	events      outbox.Notifier
	notifyHeads bool
}

func newSite(t *testing.T) *site {
	t.Helper()
	st := &site{t: t, clock: relaytest.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)), masters: []string{vault.NewMasterKey()}, heads: ledger.HeadsOf(nil)}
	st.events = st
	st.db = recordstest.OpenAt(t, st.clock.Now)
	st.s = st.open()
	for _, l := range []ledger.Ledger{
		{ID: "plain", Name: "Assets", Description: "where they are", Claims: 3, Expiry: time.Hour, Metadata: true, Certificates: true},
		{ID: "locked", Name: "Locked", PrivateKeyRequired: true},
	} {
		l.Hash = ledger.NewHash()
		relaytest.NoError(t, st.db.Ledgers.Put(t.Context(), 1, l))
	}
	return st
}

// open returns a new service with the site's master keys and heads.
func (st *site) open() *ledger.Service {
	st.t.Helper()
	v, err := vault.New(st.db.Ledgers, st.masters)
	relaytest.NoError(st.t, err)
	return ledger.New(ledger.Deps{
		Store: st.db.Ledgers, Vault: v, Jobs: st.db.Jobs, Submit: st, Events: st.events, Heads: st.heads, NotifyHeads: st.notifyHeads, Now: st.clock.Now,
	})
}

// Notify records an event.
func (st *site) Notify(_ context.Context, _ relay.AccountID, e outbox.Event) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.sent = append(st.sent, e)
	return nil
}

// Submit runs a job twice and saves its outcome.
func (st *site) Submit(ctx context.Context, j job.Job) error {
	if err := st.db.Jobs.Create(ctx, j); err != nil {
		return err
	}
	var result any
	for range 2 {
		var err error
		if result, err = st.s.Runners()[j.Kind](ctx, j); err != nil {
			reason, ok := job.Reason(err)
			if !ok {
				return err
			}
			return st.db.Jobs.Finish(ctx, j, job.Outcome{Error: reason}, j.CreatedAt)
		}
	}
	b, err := json.Marshal(result)
	if err != nil {
		return err
	}
	return st.db.Jobs.Finish(ctx, j, job.Outcome{Result: b}, j.CreatedAt)
}

// generate generates a token and returns its details.
func (st *site) generate(ledgerID string, n ledger.NewToken) *ledger.Details {
	st.t.Helper()
	id, err := st.s.Generate(st.t.Context(), 1, ledgerID, n)
	relaytest.NoError(st.t, err)
	return st.finished(id).Token
}

func (st *site) finished(id string) ledger.Status {
	st.t.Helper()
	status, err := st.s.Job(st.t.Context(), 1, id)
	relaytest.NoError(st.t, err)
	if status.State != job.Completed {
		st.t.Fatalf("job %s: state = %s, want completed; error %s", id, status.State, status.Error)
	}
	return status
}

func (st *site) claim(text, private string) ledger.ClaimOutcome {
	st.t.Helper()
	id, err := st.s.Claim(st.t.Context(), 1, text, nil, private)
	relaytest.NoError(st.t, err)
	return st.finished(id).Claims[0]
}

func (st *site) history(c ledger.Credential) ledger.History {
	st.t.Helper()
	h, err := st.s.History(st.t.Context(), 1, c)
	relaytest.NoError(st.t, err)
	return h
}
