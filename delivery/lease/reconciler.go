package lease

import (
	"context"
	"log/slog"
	"time"

	"github.com/penstock/penstock/relay/gateway"
)

// Reconciler schedules due records that have no worker, for example after a crash or after
// asynq has lost a task. If several processes schedule a record, the first to acquire the
// lease processes it. Reconciler is not safe for concurrent use.
type Reconciler[R comparable] struct {
	// Due lists at most limit records that are due.
	Due   func(ctx context.Context, cutoff time.Time, limit int) ([]R, error)
	Limit int
	Gate  *gateway.Gate
	// Schedule is called with each record and the time that it returned for the record in the
	// previous pass, or the zero time.
	Schedule func(ctx context.Context, ref R, scheduledAt time.Time) time.Time
	Now      func() time.Time
	Log      *slog.Logger

	scheduled map[R]time.Time
}

// Pass schedules the records that are due, once, and returns their number. It does nothing
// while the gate is closed.
func (r *Reconciler[R]) Pass(ctx context.Context) int {
	if r.Gate.Closed() {
		return 0
	}
	refs, err := r.Due(ctx, r.Now(), r.Limit)
	if err != nil {
		if ctx.Err() == nil {
			r.Log.WarnContext(ctx, "cannot list due records", "error", err)
		}
		return 0
	}
	scheduled := make(map[R]time.Time, len(refs))
	for _, ref := range refs {
		if ctx.Err() != nil {
			break
		}
		if t := r.Schedule(ctx, ref, r.scheduled[ref]); !t.IsZero() {
			scheduled[ref] = t
		}
	}
	r.scheduled = scheduled
	return len(refs)
}

// Every calls f after each interval until ctx ends.
func Every(ctx context.Context, interval time.Duration, f func(context.Context)) {
	t := time.NewTicker(interval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			f(ctx)
		}
	}
}
