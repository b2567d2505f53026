package jobs

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay/job"
)

// window is how many due jobs are looked at in one pass, of each account.
const window = 1000

// reconcileLoop wakes what is due until ctx ends.
func (j *Jobs) reconcileLoop(ctx context.Context) {
	first := make(map[job.Ref]time.Time) // when a due job was seen first
	tick := time.NewTicker(j.opts.Reconcile)
	defer tick.Stop()
	for {
		j.reconcile(ctx, first)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// reconcile looks at what is due once.
func (j *Jobs) reconcile(ctx context.Context, first map[job.Ref]time.Time) {
	now := j.deps.Now()
	refs, err := j.deps.Store.Due(ctx, now, window)
	if err != nil {
		if ctx.Err() == nil {
			j.deps.Logger.WarnContext(ctx, "which jobs are due is not known", "error", err)
		}
		return
	}
	due := make(map[job.Ref]bool, len(refs))
	for _, ref := range refs {
		due[ref] = true
		if ctx.Err() == nil {
			j.rouse(ctx, ref, first, now)
		}
	}
	for ref := range first {
		if !due[ref] {
			delete(first, ref)
		}
	}
}

// rouse makes the task of a due job when it is seen the second time, since most
// that are seen once are on their way. One that has a task already is run beside
// asynq, which has lost it, has much to do, or waits for a process that died.
func (j *Jobs) rouse(ctx context.Context, ref job.Ref, first map[job.Ref]time.Time, now time.Time) {
	if _, known := first[ref]; !known {
		first[ref] = now
		return
	}
	if existed, err := j.wake(ctx, ref); err != nil || !existed {
		return // tried again with the next pass, or on its way
	}
	select {
	case j.slots <- struct{}{}:
		delete(first, ref)
		j.running.Go(func() {
			defer func() { <-j.slots }()
			if _, err := j.try(j.life, ref); err != nil {
				j.deps.Logger.Debug("due job was not run", "job_id", ref.ID, "error", err)
			}
		})
	default: // all slots are taken
	}
}
