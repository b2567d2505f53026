package jobs

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay/job"
)

// maxDue is the largest number of due jobs listed per account in one pass.
const maxDue = 1000

// reconcileLoop schedules due jobs until ctx ends.
func (j *Jobs) reconcileLoop(ctx context.Context) {
	firstSeen := make(map[job.Ref]time.Time) // when a due job was first listed
	tick := time.NewTicker(j.opts.Reconcile)
	defer tick.Stop()
	for {
		j.reconcile(ctx, firstSeen)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// reconcile schedules the jobs that are due, once.
func (j *Jobs) reconcile(ctx context.Context, firstSeen map[job.Ref]time.Time) {
	now := j.deps.Now()
	refs, err := j.deps.Store.Due(ctx, now, maxDue)
	if err != nil {
		if ctx.Err() == nil {
			j.deps.Logger.WarnContext(ctx, "cannot list due jobs", "error", err)
		}
		return
	}
	due := make(map[job.Ref]bool, len(refs))
	for _, ref := range refs {
		due[ref] = true
		if ctx.Err() == nil {
			j.scheduleDue(ctx, ref, firstSeen, now)
		}
	}
	for ref := range firstSeen {
		if !due[ref] {
			delete(firstSeen, ref)
		}
	}
}

// scheduleDue creates the task of a job when it is listed as due a second time,
// since most jobs that are listed once already have a task about to run. A job
// that still has a task is run outside asynq, which may have lost it, be busy,
// or wait for a process that crashed.
func (j *Jobs) scheduleDue(ctx context.Context, ref job.Ref, firstSeen map[job.Ref]time.Time, now time.Time) {
	if _, seen := firstSeen[ref]; !seen {
		firstSeen[ref] = now
		return
	}
	if existed, err := j.enqueueTask(ctx, ref); err != nil || !existed {
		return // the next pass retries, or the new task runs it
	}
	select {
	case j.slots <- struct{}{}:
		delete(firstSeen, ref)
		j.running.Go(func() {
			defer func() { <-j.slots }()
			if _, err := j.runIfDue(j.runCtx, ref); err != nil {
				j.deps.Logger.Debug("cannot run due job", "job_id", ref.ID, "error", err)
			}
		})
	default: // all slots are taken
	}
}
