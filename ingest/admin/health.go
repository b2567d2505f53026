package admin

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/relay"
)

// checkTime is the time limit of the checks of the back ends.
const checkTime = 2 * time.Second

// Reason is an error of a back end with a public text, without addresses and paths.
type Reason string

// Error returns the text of the reason.
func (r Reason) Error() string { return string(r) }

// hiddenReason replaces the errors of back ends for callers who may not read them.
const hiddenReason = "unavailable; the reason is in /readyz with the admin token"

// backendJSON is the status of a back end.
type backendJSON struct {
	Status string `json:"status"` // ok, or down
	Note   string `json:"note,omitempty"`
	Error  string `json:"error,omitempty"`
}

// ready answers 200 if all back ends except optional ones work, and otherwise 503. The gateway
// accepts traffic in both cases. Errors of back ends may contain addresses and paths, and are
// hidden from callers who may not read them.
func (s *Surface) ready(c *fiber.Ctx) error {
	states := s.watch.check(c.UserContext())
	showErrors := s.seesBackends(c)
	backends := make(map[string]backendJSON, len(states))
	for i := range states {
		state := &states[i]
		view := backendJSON{Status: "ok", Note: state.Note}
		if state.Err != nil {
			view.Status, view.Error = "down", hiddenReason
			if reason, public := errors.AsType[Reason](state.Err); public {
				view.Error = string(reason)
			}
			if showErrors {
				view.Error = state.Err.Error()
			}
		}
		backends[state.Name] = view
	}
	status, word := fiber.StatusOK, "ready"
	if !isReady(states) {
		status, word = fiber.StatusServiceUnavailable, "not ready"
	}
	return c.Status(status).JSON(fiber.Map{"status": word, "backends": backends})
}

// CheckBackends checks back ends and returns the errors of failed ones by name.
func CheckBackends(ctx context.Context, backends []Backend) map[string]error {
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
	down := make(map[string]error)
	for i, b := range backends {
		if errs[i] != nil {
			down[b.Name] = errs[i]
		}
	}
	return down
}

// watchInterval is the interval at which Watch checks the back ends.
const watchInterval = 5 * time.Second

// BackendState is the state of a back end.
type BackendState struct {
	Backend
	// Err is the reason why the back end is down; nil if it works.
	Err error
	// Since is the time at which the current state was first observed.
	Since time.Time
	// LastErr is the last error since the start, at LastErrAt; nil if there was none.
	LastErr   error
	LastErrAt time.Time
}

// watch checks back ends and stores their states.
type watch struct {
	backends []Backend
	now      func() time.Time

	mu     sync.Mutex
	states []BackendState
}

func newWatch(backends []Backend, now func() time.Time) *watch {
	w := &watch{backends: backends, now: now, states: make([]BackendState, len(backends))}
	for i, b := range backends {
		w.states[i].Backend = b
	}
	return w
}

// check checks all back ends and returns their states in the order of backends.
func (w *watch) check(ctx context.Context) []BackendState {
	down := CheckBackends(ctx, w.backends)
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

// Watch checks the back ends every five seconds until the context ends, so that the status has
// the start of an outage even if the status was not requested at that time.
func (s *Surface) Watch(ctx context.Context) {
	tick := time.NewTicker(watchInterval)
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
