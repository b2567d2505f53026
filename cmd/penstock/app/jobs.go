package app

import (
	"context"
	"maps"

	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/sip"
	"github.com/penstock/penstock/relay/sqlstore/jobs"
)

// runners returns the runners of jobs by kind. The services that they call are created
// before the first job runs.
func (d *Gateway) runners() map[job.Kind]job.Runner {
	all := d.ledger.Runners()
	maps.Copy(all, d.actions.Runners())
	all[sip.Kind] = job.RunnerFunc(func(ctx context.Context, j job.Job) (any, error) { return d.sip.Run(ctx, j) })
	maps.Copy(all, d.usageRunners())
	return all
}

// submitted submits jobs and loads them.
type submitted struct {
	job.Submitter
	*jobs.Store
}
