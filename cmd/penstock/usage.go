package main

import (
	"context"

	"github.com/penstock/penstock/delivery/archive"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/sim"
	"github.com/penstock/penstock/relay/usage"
)

// openUsage makes what counts what SIMs used, and hands it out.
func (d *daemon) openUsage(context.Context) (err error) {
	d.exports = archive.NewShelf(d.back.records.Files, "exports", usage.FileLife, 0)
	works := archive.NewWorks(0)
	d.closers = append(d.closers, func(context.Context) error { return works.Close() }, func(context.Context) error { return d.exports.Close() })
	store := d.back.records.Usage
	sims := lines{d.back.records.SIMs, d.back.records.Pools, d.back.records.Subscribers}
	d.meter, err = usage.NewMeter(usage.MeterDeps{
		Counters: store, SIMs: sims, Events: d.events(), Deliveries: d.back.records.Deliveries, Dispatcher: d.queue,
		Suspender: d.actions, Jobs: d.jobs,
	}, usage.MeterOptions{MailDomain: mailDomain(d.cfg.SMTP.From), Lease: d.queue.Lease()})
	if err != nil {
		return err
	}
	d.usage, err = usage.New(usage.Deps{
		Records: store, Reports: store, SIMs: sims, Jobs: submitted{d.jobs, d.back.records.Jobs}, Files: d.exports, Works: works,
	}, usage.Options{List: sim.List})
	return err
}

// usageRunners make CDR files and usage reports and block what has reached its
// limit. They are made after what runs them.
func (d *daemon) usageRunners() map[job.Kind]job.Runner {
	return map[job.Kind]job.Runner{
		usage.CDRKind:    job.RunnerFunc(func(ctx context.Context, j job.Job) (any, error) { return d.usage.RunCDR(ctx, j) }),
		usage.ReportKind: job.RunnerFunc(func(ctx context.Context, j job.Job) (any, error) { return d.usage.RunReport(ctx, j) }),
		usage.BlockKind:  job.RunnerFunc(func(ctx context.Context, j job.Job) (any, error) { return d.meter.RunBlock(ctx, j) }),
	}
}

// lines tells usage of SIMs, pools and subscribers; it is a usage.SIMs.
type lines struct {
	sims        sim.SIMs
	pools       sim.Pools
	subscribers sim.Subscribers
}

// Lines loads SIMs.
func (l lines) Lines(ctx context.Context, acct account.ID, iccids []string) (map[string]usage.Line, error) {
	ids := make([]sim.ICCID, len(iccids))
	for i, iccid := range iccids {
		ids[i] = sim.ICCID(iccid)
	}
	found, err := l.sims.GetMany(ctx, acct, ids)
	out := make(map[string]usage.Line, len(found))
	for iccid, one := range found {
		out[string(iccid)] = usage.Line{Subscriber: one.Subscriber, Pool: one.Pool, Limit: limitOf(one.Limit, one.Recipients)}
	}
	return out, err
}

func limitOf(l sim.Limit, recipients []sim.Recipient) usage.Limit {
	out := usage.Limit{Monthly: l.Monthly, Warning: l.Warning, Cap: usage.Cap(l.Cap)}
	for _, r := range recipients {
		out.Recipients = append(out.Recipients, r.Email)
	}
	return out
}

// Pool loads a pool.
func (l lines) Pool(ctx context.Context, acct account.ID, id string) (usage.Pool, error) {
	p, err := l.pools.Get(ctx, acct, id)
	return usage.Pool{Name: p.Name, Limit: limitOf(p.Limit, p.Recipients)}, err
}

// OfPool lists SIMs of a pool.
func (l lines) OfPool(ctx context.Context, acct account.ID, pool, after string, limit int) ([]string, error) {
	return l.walk(ctx, acct, sim.Scope{Pool: pool}, after, limit)
}

// OfSubscriber lists SIMs of a subscriber.
func (l lines) OfSubscriber(ctx context.Context, acct account.ID, subscriber, after string, limit int) ([]string, error) {
	return l.walk(ctx, acct, sim.Scope{Subscriber: subscriber}, after, limit)
}

func (l lines) walk(ctx context.Context, acct account.ID, in sim.Scope, after string, limit int) ([]string, error) {
	found, err := l.sims.Walk(ctx, acct, in, sim.ICCID(after), limit)
	out := make([]string, len(found))
	for i, iccid := range found {
		out[i] = string(iccid)
	}
	return out, err
}

// Company names a subscriber's company.
func (l lines) Company(ctx context.Context, acct account.ID, id string) (string, error) {
	s, err := l.subscribers.Get(ctx, acct, id)
	return s.CompanyName, err
}
