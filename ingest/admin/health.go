package admin

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/relay"
)

// checkTime is the time that a back end may take to answer for itself.
const checkTime = 2 * time.Second

// Reason is the reason why a back end is down, in a public text: it names no address and no
// path.
type Reason string

// Error returns the text.
func (r Reason) Error() string { return string(r) }

// hiddenReason stands for the reasons that only the administrator may read.
const hiddenReason = "unavailable; the reason is in /readyz with the admin token"

// backendJSON is the status of one back end.
type backendJSON struct {
	Status string `json:"status"` // ok, or down
	Note   string `json:"note,omitempty"`
	Error  string `json:"error,omitempty"`
}

// ready answers 200 when every back end that it needs works, else 503 with what
// is wrong. The gateway goes on accepting meanwhile. What a back end says of an
// error names addresses, resolvers and paths, so that takes the admin token.
func (s *Surface) ready(c *fiber.Ctx) error {
	states := s.watch.check(c.UserContext())
	inFull := s.seesBackends(c)
	backends := make(map[string]backendJSON, len(states))
	for i := range states {
		s := &states[i]
		view := backendJSON{Status: "ok", Note: s.Note}
		if s.Err != nil {
			view.Status, view.Error = "down", hiddenReason
			if reason, public := errors.AsType[Reason](s.Err); public {
				view.Error = string(reason)
			}
			if inFull {
				view.Error = s.Err.Error()
			}
		}
		backends[s.Name] = view
	}
	status, word := fiber.StatusOK, "ready"
	if !ready(states) {
		status, word = fiber.StatusServiceUnavailable, "not ready"
	}
	return c.Status(status).JSON(fiber.Map{"status": word, "backends": backends})
}

// Down checks every back end and returns the errors of those that do not,
// by name.
func Down(ctx context.Context, backends []Backend) map[string]error {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	errs := make([]error, len(backends))
	var wg sync.WaitGroup
	for i, b := range backends {
		wg.Go(func() {
			errs[i] = relay.Recovered("check of "+b.Name, func() error { return b.Check(ctx) })
		})
	}
	wg.Wait()
	out := make(map[string]error)
	for i, b := range backends {
		if errs[i] != nil {
			out[b.Name] = errs[i]
		}
	}
	return out
}

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
