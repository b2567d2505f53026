package app

import (
	"context"

	"github.com/penstock/penstock/delivery/archive"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/provisioning"
	"github.com/penstock/penstock/relay/sim"
	"github.com/penstock/penstock/relay/sqlstore/sims"
	"github.com/penstock/penstock/relay/usage"
)

// newMeter creates the meter of SIM usage.
func (d *Gateway) newMeter(r *recordStores, out outbound, suspend usage.Suspender, run job.Submitter) (*usage.Meter, error) {
	return usage.NewMeter(usage.MeterDeps{
		Counters: r.Usage, SIMs: directoryOf(r), Events: out.events, Mails: out.mails, Suspender: suspend, Jobs: run,
	})
}

// openUsage opens the service that exports the usage of SIMs.
func (d *Gateway) openUsage(r *recordStores, run job.Submitter) (*usage.Service, error) {
	files := archive.NewFileStore(r.Files, "exports", usage.FileLife, 0)
	running := archive.NewExports(0)
	d.onClose(running.Close)
	d.onClose(files.Close)
	return usage.New(usage.Deps{
		Records: r.Usage, Reports: r.Usage, SIMs: directoryOf(r), Jobs: submitted{run, r.Jobs}, Files: files, Exports: running,
	}, usage.Options{List: provisioning.List})
}

// meterLimits implements sim.LimitEnforcer with the meter.
type meterLimits struct{ meter *usage.Meter }

// EnforceSIMs enforces the limits of SIMs.
func (h *meterLimits) EnforceSIMs(ctx context.Context, acct account.ID, iccids []sim.ICCID) error {
	return h.meter.EnforceSIMs(ctx, acct, textsOf(iccids))
}

// EnforcePool enforces the limit of a pool.
func (h *meterLimits) EnforcePool(ctx context.Context, acct account.ID, id string) error {
	return h.meter.EnforcePool(ctx, acct, id)
}

// declaredSIMs saves the SIMs of inventories and enforces their limits.
type declaredSIMs struct {
	*sims.SIMs
	limits sim.LimitEnforcer
}

// Declare saves the SIMs of an inventory.
func (s declaredSIMs) Declare(ctx context.Context, acct account.ID, all []sim.SIM, reset bool) error {
	if err := s.SIMs.Declare(ctx, acct, all, reset); err != nil || !reset {
		return err
	}
	iccids := make([]sim.ICCID, len(all))
	for i, one := range all {
		iccids[i] = one.ICCID
	}
	return s.limits.EnforceSIMs(ctx, acct, iccids)
}

func textsOf(iccids []sim.ICCID) []string {
	out := make([]string, len(iccids))
	for i, iccid := range iccids {
		out[i] = string(iccid)
	}
	return out
}

// simDirectory implements usage.SIMs with the SIM stores.
type simDirectory struct {
	sims        sim.SIMs
	pools       sim.Pools
	subscribers sim.Subscribers
}

func directoryOf(r *recordStores) simDirectory {
	return simDirectory{r.SIMs, r.Pools, r.Subscribers}
}

// Find loads SIMs.
func (l simDirectory) Find(ctx context.Context, acct account.ID, iccids []string) (map[string]sim.SIM, error) {
	ids := make([]sim.ICCID, len(iccids))
	for i, iccid := range iccids {
		ids[i] = sim.ICCID(iccid)
	}
	found, err := l.sims.GetMany(ctx, acct, ids)
	out := make(map[string]sim.SIM, len(found))
	for iccid, one := range found {
		out[string(iccid)] = one
	}
	return out, err
}

// Pool loads a pool.
func (l simDirectory) Pool(ctx context.Context, acct account.ID, id string) (sim.Pool, error) {
	return l.pools.Get(ctx, acct, id)
}

// OfPool lists SIMs of a pool.
func (l simDirectory) OfPool(ctx context.Context, acct account.ID, pool, after string, limit int) ([]string, error) {
	return l.scan(ctx, acct, sim.Scope{Pool: pool}, after, limit)
}

// OfSubscriber lists SIMs of a subscriber.
func (l simDirectory) OfSubscriber(ctx context.Context, acct account.ID, subscriber, after string, limit int) ([]string, error) {
	return l.scan(ctx, acct, sim.Scope{Subscriber: subscriber}, after, limit)
}

func (l simDirectory) scan(ctx context.Context, acct account.ID, in sim.Scope, after string, limit int) ([]string, error) {
	found, err := l.sims.Scan(ctx, acct, in, sim.ICCID(after), limit)
	return textsOf(found), err
}

// Company names a subscriber's company.
func (l simDirectory) Company(ctx context.Context, acct account.ID, id string) (string, error) {
	s, err := l.subscribers.Get(ctx, acct, id)
	return s.CompanyName, err
}
