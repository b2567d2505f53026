package app

import (
	"context"

	"github.com/penstock/penstock/delivery/archive"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/provisioning"
	"github.com/penstock/penstock/relay/sim"
	"github.com/penstock/penstock/relay/usage"
)

// newMeter creates the meter of SIM usage.
func (d *Gateway) newMeter(r *recordStores, senders outbound, suspend usage.Suspender, run job.Submitter) (*usage.Meter, error) {
	return usage.NewMeter(usage.MeterDeps{
		Counters: r.Usage, SIMs: r.SIMs, Pools: r.Pools, Events: senders.events, Mails: senders.mails, Suspender: suspend, Jobs: run,
	})
}

// openUsage opens the service that exports the usage of SIMs.
func (d *Gateway) openUsage(r *recordStores, run job.Submitter) (*usage.Service, error) {
	files := archive.NewFileStore(r.Files, "exports", usage.FileLife, 0)
	running := archive.NewExports(0)
	d.onClose(running.Close)
	d.onClose(files.Close)
	return usage.New(usage.Deps{
		Records: r.Usage, Reports: r.Usage, SIMs: r.SIMs, Subscribers: r.Subscribers, Jobs: submitted{run, r.Jobs}, Files: files, Exports: running,
	}, usage.Options{List: provisioning.List})
}

// declaredSIMs saves the SIMs of inventories and enforces their limits.
type declaredSIMs struct {
	*sim.SIMs
	limits sim.LimitEnforcer
}

// Declare saves the SIMs of an inventory.
func (s declaredSIMs) Declare(ctx context.Context, acct relay.AccountID, sims []sim.SIM, reset bool) error {
	if err := s.SIMs.Declare(ctx, acct, sims, reset); err != nil || !reset {
		return err
	}
	iccids := make([]sim.ICCID, len(sims))
	for i, sim := range sims {
		iccids[i] = sim.ICCID
	}
	return s.limits.EnforceSIMs(ctx, acct, iccids)
}
