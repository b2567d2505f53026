package main

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

// openSIMs makes the use cases of SIMs that take effect at once.
func (d *daemon) openSIMs(context.Context) (err error) {
	d.sims, err = sim.New(sim.Deps{
		SIMs: d.back.records.SIMs, Pools: d.back.records.Pools, Subscribers: d.back.records.Subscribers,
		Callbacks: d.accounts, Prober: d.prober,
	}, sim.Options{AllowHTTP: d.cfg.Egress.AllowHTTPCallback})
	return err
}

// prober tries callback URLs with a request like those that will come: from the
// same client, signed alike.
type prober struct {
	send    *worker.Worker
	secrets func(ctx context.Context, acct account.ID) ([]string, error)
}

// Probe sends the event callback.test. Whatever answers is reached: what an
// endpoint thinks of an event that it does not know is its own affair.
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
		return errors.New(r.Attempt.Error)
	}
	return nil
}
