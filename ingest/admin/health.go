package admin

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/adaptor"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/penstock/penstock/relay"
)

// checkTime is the time that a back end may take to answer for itself.
const checkTime = 2 * time.Second

func (s *Surface) alive(c *fiber.Ctx) error { return c.JSON(fiber.Map{"status": "alive"}) }

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
		backends[states[i].Name] = backendOf(&states[i], inFull)
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

func backendOf(s *BackendState, inFull bool) backendJSON {
	view := backendJSON{Status: "ok", Note: s.Note}
	if s.Err == nil {
		return view
	}
	view.Status, view.Error = "down", hiddenReason
	if reason, public := errors.AsType[Reason](s.Err); public {
		view.Error = string(reason)
	}
	if inFull {
		view.Error = s.Err.Error()
	}
	return view
}

func (s *Surface) metrics() fiber.Handler {
	return adaptor.HTTPHandler(promhttp.HandlerFor(s.Metrics, promhttp.HandlerOpts{}))
}
