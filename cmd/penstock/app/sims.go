package app

import (
	"context"
	"errors"
	"time"

	"github.com/penstock/penstock/delivery/worker"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/sim"
)

// openSIM opens the service for SIM operations that take effect at once.
func (d *Gateway) openSIM(context.Context) (err error) {
	d.sim, err = sim.New(sim.Deps{
		SIMs: d.backends.records.SIMs, Pools: d.backends.records.Pools, Subscribers: d.backends.records.Subscribers,
		Callbacks: d.accounts, Prober: d.prober, Limits: holder{d},
	}, sim.Options{AllowHTTP: d.cfg.Egress.AllowHTTPCallback})
	return err
}

// prober checks callback URLs with a request like those of events: from the same
// client, with a signature.
type prober struct {
	send    *worker.Worker
	secrets func(ctx context.Context, acct account.ID) ([]string, error)
}

// Probe sends the event callback.test. Any response counts as success: an endpoint may
// reject an unknown event. The error is shown to the account.
func (p prober) Probe(ctx context.Context, acct account.ID, url string) error {
	if _, err := p.secrets(ctx, acct); err != nil {
		return err // a store that is down is not the URL's fault
	}
	now := time.Now()
	test, err := outbox.Callback(acct, url, outbox.Event{
		ID: relay.NewID(now), Type: "callback.test", CreatedAt: now, Data: map[string]string{"callback_url": url},
	})
	if err != nil {
		return err
	}
	if r := p.send.Send(ctx, test); r.Attempt.Status == 0 {
		return errors.New(r.Verdict.Public)
	}
	return nil
}
