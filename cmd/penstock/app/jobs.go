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
	runners := ledgers.Runners()
	maps.Copy(runners, sims.actions.Runners(sims.meter))
	runners[sip.Kind] = job.RunnerFunc(func(ctx context.Context, j job.Job) (any, error) { return calls.Run(ctx, j) })
	runners[usage.CDRKind] = job.RunnerFunc(func(ctx context.Context, j job.Job) (any, error) { return sims.usage.RunCDR(ctx, j) })
	runners[usage.ReportKind] = job.RunnerFunc(func(ctx context.Context, j job.Job) (any, error) { return sims.usage.RunReport(ctx, j) })
	runners[usage.BlockKind] = job.RunnerFunc(func(ctx context.Context, j job.Job) (any, error) { return sims.meter.RunBlock(ctx, j) })
	return runners
}

// submitted submits jobs and loads them.
type submitted struct {
	job.Submitter
	*job.Store
}
