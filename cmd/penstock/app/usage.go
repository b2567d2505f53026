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

// openUsage creates the meter of SIM usage and the service that exports it.
func (d *Gateway) openUsage(context.Context) (err error) {
	d.fileStore = archive.NewFileStore(d.backends.records.Files, "exports", usage.FileLife, 0)
	running := archive.NewExports(0)
	d.closers = append(d.closers, func(context.Context) error { return running.Close() }, func(context.Context) error { return d.fileStore.Close() })
	store := d.backends.records.Usage
	known := simDirectory{d.backends.records.SIMs, d.backends.records.Pools, d.backends.records.Subscribers}
	d.meter, err = usage.NewMeter(usage.MeterDeps{
		Counters: store, SIMs: known, Events: d.events(), Deliveries: d.backends.records.Deliveries, Dispatcher: d.queue,
		Suspender: d.actions, Jobs: d.jobs,
	}, usage.MeterOptions{MailDomain: mailDomain(d.cfg.SMTP.From), Lease: d.queue.Lease()})
	if err != nil {
		return err
	}
	d.usage, err = usage.New(usage.Deps{
		Records: store, Reports: store, SIMs: known, Jobs: submitted{d.jobs, d.backends.records.Jobs}, Files: d.fileStore, Exports: running,
	}, usage.Options{List: provisioning.List})
	return err
}

// usageRunners returns the runners of CDR files, usage reports and suspensions. The
// services that they call are created later.
func (d *Gateway) usageRunners() map[job.Kind]job.Runner {
	return map[job.Kind]job.Runner{
		usage.CDRKind:    job.RunnerFunc(func(ctx context.Context, j job.Job) (any, error) { return d.usage.RunCDR(ctx, j) }),
		usage.ReportKind: job.RunnerFunc(func(ctx context.Context, j job.Job) (any, error) { return d.usage.RunReport(ctx, j) }),
		usage.BlockKind:  job.RunnerFunc(func(ctx context.Context, j job.Job) (any, error) { return d.meter.RunBlock(ctx, j) }),
	}
}

// holder implements sim.LimitEnforcer with the meter, which is created later.
type holder struct{ d *Gateway }

// EnforceSIMs enforces the limits of SIMs.
func (h holder) EnforceSIMs(ctx context.Context, acct account.ID, iccids []sim.ICCID) error {
	return h.d.meter.EnforceSIMs(ctx, acct, textsOf(iccids))
}

// EnforcePool enforces the limit of a pool.
func (h holder) EnforcePool(ctx context.Context, acct account.ID, id string) error {
	return h.d.meter.EnforcePool(ctx, acct, id)
}

// declaredSIMs saves the SIMs of inventories and enforces their limits.
type declaredSIMs struct {
	*sims.SIMs
	holder sim.LimitEnforcer
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
	return s.holder.EnforceSIMs(ctx, acct, iccids)
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
