package jobs

import (
	"context"
	"time"

	"github.com/penstock/penstock/delivery/queue/timer"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/job"
)

// process is called when a job is due. Its task lives until the job has ended.
func (j *Jobs) process(ctx context.Context, due timer.Ref) error {
	one, err := j.runIfDue(ctx, job.Ref(due))
	switch {
	case relay.KindOf(err) == relay.KindNotFound || err == nil && one.State.Ended():
		return nil
	case err != nil:
		return err
	}
	return timer.Again(one.Due.Sub(j.deps.Now()))
}

// runIfDue runs a job if it is due, and returns its current state.
func (j *Jobs) runIfDue(ctx context.Context, ref job.Ref) (job.Job, error) {
	now := j.deps.Now()
	one, taken, err := j.deps.Store.Lease(ctx, ref, now, now.Add(j.opts.Lease))
	if err != nil || !taken {
		return one, err
	}
	j.run(one)
	return j.deps.Store.Get(ctx, ref.Account, ref.ID)
}

// maxDue is the largest number of due jobs listed per account in one pass.
const maxDue = 1000

// scheduleDue creates the task of a job when it is listed as due a second time,
// since most jobs that are listed once already have a task about to run. A job
// that still has a task is run outside asynq, which may have lost it, be busy,
// or wait for a process that crashed.
func (j *Jobs) scheduleDue(ctx context.Context, ref job.Ref, listed time.Time) time.Time {
	if listed.IsZero() {
		return j.deps.Now()
	}
	if existed, err := j.timer.Schedule(ctx, timer.Ref(ref), time.Time{}); err != nil || !existed {
		return listed // the next pass retries, or the new task runs it
	}
	select {
	case j.slots <- struct{}{}:
		j.running.Go(func() {
			defer func() { <-j.slots }()
			if _, err := j.runIfDue(j.runCtx, ref); err != nil {
				j.deps.Logger.Debug("cannot run due job", "job_id", ref.ID, "error", err)
			}
		})
		return time.Time{}
	default: // all slots are taken
		return listed
	}
}
