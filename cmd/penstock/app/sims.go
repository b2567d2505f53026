package app

import (
	"context"
	"errors"
	"time"

	"github.com/penstock/penstock/delivery/archive"
	"github.com/penstock/penstock/delivery/worker"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/provisioning"
	"github.com/penstock/penstock/relay/sim"
	"github.com/penstock/penstock/relay/usage"
)

// simServices has the services for SIMs and their usage.
type simServices struct {
	sims    *sim.Service          // operations that take effect at once
	actions *provisioning.Actions // operations that run as jobs
	meter   *usage.Meter
	usage   *usage.Service
}

func (g *Gateway) openSIMs(r *recordStores, senders outbound, submitter job.Submitter) (s simServices) {
	s.actions = provisioning.New(provisioning.Deps{
		SIMs: r.SIMs, Subscribers: r.Subscribers, Jobs: r.Jobs, Operator: senders.operator, Events: senders.events, Submit: submitter,
	}, provisioning.Options{ReportWithin: g.cfg.Operator.ReportWithin, Now: time.Now})
	s.meter = usage.NewMeter(usage.MeterDeps{
		Counters: r.Usage, SIMs: r.SIMs, Pools: r.Pools, Events: senders.events, Mails: senders.mails, Suspender: s.actions, Jobs: submitter,
	})
	s.sims = sim.New(sim.Deps{
		SIMs: r.SIMs, Pools: r.Pools, Subscribers: r.Subscribers, Callbacks: r.Accounts, Prober: senders.prober, Limits: s.meter,
		AllowHTTP: g.cfg.Egress.AllowHTTPCallback,
	})
	files := archive.NewFileStore(r.Files, "exports", usage.FileLifetime)
	exports := archive.NewExports()
	g.onClose(exports.Close)
	g.onClose(files.Close)
	s.usage = usage.New(usage.Deps{
		Records: r.Usage, SIMs: r.SIMs, Subscribers: r.Subscribers, Jobs: submitterAndStore{submitter, r.Jobs}, Files: files, Exports: exports,
		List: provisioning.List,
	})
	return s
}

// prober checks callback URLs with a signed request, which the worker sends like an event.
type prober struct {
	worker  *worker.Worker
	secrets func(ctx context.Context, acct relay.AccountID) ([]string, error)
}

// Probe sends the event callback.test. Any response counts as success, because an endpoint may
// reject an unknown event. The account sees the error.
func (p prober) Probe(ctx context.Context, acct relay.AccountID, url string) error {
	if _, err := p.secrets(ctx, acct); err != nil {
		return err // the database is down: the URL was not tried
	}
	now := time.Now()
	test, err := outbox.Callback(acct, url, outbox.Event{
		ID: relay.NewID(now), Type: "callback.test", CreatedAt: now, Data: map[string]string{"callback_url": url},
	})
	if err != nil {
		return err
	}
	if r := p.worker.Send(ctx, test); r.Attempt.Status == 0 {
		return errors.New(r.Verdict.Public)
	}
	return nil
}

// inventorySIMs saves the SIMs of inventories and enforces their limits.
type inventorySIMs struct {
	*sim.SIMs
	limits sim.LimitEnforcer
}

// Declare saves the SIMs of an inventory.
func (s inventorySIMs) Declare(ctx context.Context, acct relay.AccountID, sims []sim.SIM, reset bool) error {
	if err := s.SIMs.Declare(ctx, acct, sims, reset); err != nil || !reset {
		return err
	}
	iccids := make([]sim.ICCID, len(sims))
	for i := range sims {
		iccids[i] = sims[i].ICCID
	}
	return s.limits.EnforceSIMs(ctx, acct, iccids)
}

// submitterAndStore submits jobs and loads the submitted jobs.
type submitterAndStore struct {
	job.Submitter
	*job.Store
}
