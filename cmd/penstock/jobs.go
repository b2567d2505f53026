package main

import (
	"context"
	"maps"

	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/sip"
	"github.com/penstock/penstock/relay/sqlstore/jobs"
)

// runners do the work, by the kind of job. What they call is made before the
// first job runs.
func (d *daemon) runners() map[job.Kind]job.Runner {
	all := d.tokens.Runners()
	maps.Copy(all, d.actions.Runners())
	all[sip.Kind] = job.RunnerFunc(func(ctx context.Context, j job.Job) (any, error) { return d.records.Run(ctx, j) })
	maps.Copy(all, d.usageRunners())
	return all
}

// submitted is jobs as those use them who ask how theirs stand.
type submitted struct {
	job.Submitter
	*jobs.Store
}
