package app

import (
	"context"
	"maps"

	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/ledger"
	"github.com/penstock/penstock/relay/sip"
	"github.com/penstock/penstock/relay/usage"
)

// runnersOf returns the runners of jobs by kind.
func runnersOf(ledgers *ledger.Service, sims simServices, calls *sip.Service) map[job.Kind]job.Runner {
	all := ledgers.Runners()
	maps.Copy(all, sims.actions.Runners(sims.meter))
	all[sip.Kind] = job.RunnerFunc(func(ctx context.Context, j job.Job) (any, error) { return calls.Run(ctx, j) })
	all[usage.CDRKind] = job.RunnerFunc(func(ctx context.Context, j job.Job) (any, error) { return sims.usage.RunCDR(ctx, j) })
	all[usage.ReportKind] = job.RunnerFunc(func(ctx context.Context, j job.Job) (any, error) { return sims.usage.RunReport(ctx, j) })
	all[usage.BlockKind] = job.RunnerFunc(func(ctx context.Context, j job.Job) (any, error) { return sims.meter.RunBlock(ctx, j) })
	return all
}

// submitted submits jobs and loads them.
type submitted struct {
	job.Submitter
	*job.Store
}
