package admin

import (
	"context"
	"sync"
	"time"
)

// watchEvery is the interval at which the back ends are checked without requests for their
// state.
const watchEvery = 5 * time.Second

// BackendState is the state of a back end, with the start of that state.
type BackendState struct {
	Backend
	// Err is the reason why it is down; nil if it works.
	Err error
	// Since is the time of the first check with the present result: at the start, or at a
	// change.
	Since time.Time
	// LastErr is the last error it had, at LastErrAt; nil if it had none since the
	// start.
	LastErr   error
	LastErrAt time.Time
}

// watch checks the back ends and stores the start of each state.
type watch struct {
	backends []Backend
	now      func() time.Time

	mu     sync.Mutex
	states []BackendState
}

func newWatch(backends []Backend, now func() time.Time) *watch {
	if now == nil {
		now = time.Now
	}
	w := &watch{backends: backends, now: now, states: make([]BackendState, len(backends))}
	for i, b := range backends {
		w.states[i].Backend = b
	}
	return w
}

// check queries all of them at the same time, each for at most checkTime, and returns how
// they do, in their order.
func (w *watch) check(ctx context.Context) []BackendState {
	down := Down(ctx, w.backends)
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.now()
	for i := range w.states {
		s := &w.states[i]
		err := down[s.Name]
		if s.Since.IsZero() || (s.Err == nil) != (err == nil) {
			s.Since = t
		}
		if s.Err = err; err != nil {
			s.LastErr, s.LastErrAt = err, t
		}
	}
	return append([]BackendState(nil), w.states...)
}

// Watch queries the back ends every five seconds until the context ends, so that the status
// has the start of an outage even without requests for it.
func (s *Surface) Watch(ctx context.Context) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		s.watch.check(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
