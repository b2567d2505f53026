package admin

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/adaptor"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// checkTime is how long a back end may take to answer for itself.
const checkTime = 2 * time.Second

func (s *Surface) alive(c *fiber.Ctx) error { return c.JSON(fiber.Map{"status": "alive"}) }

// Reason is why a back end is down, in a public text: it names no address and no
// path.
type Reason string

// Error returns the text.
func (r Reason) Error() string { return string(r) }

// hiddenReason stands for the reasons that only the administrator may read.
const hiddenReason = "unavailable; the reason is in /readyz with the admin token"

// backendJSON is how one back end does.
type backendJSON struct {
	Status string `json:"status"` // ok, or down
	Note   string `json:"note,omitempty"`
	Error  string `json:"error,omitempty"`
}

// ready answers 200 when every back end that it needs works, else 503 with what
// is wrong. The gateway goes on accepting meanwhile. What a back end says of an
// error names addresses, resolvers and paths, so that takes the admin token.
func (s *Surface) ready(c *fiber.Ctx) error {
	states := s.check(c.UserContext(), s.seesBackends(c))
	status, word := fiber.StatusOK, "ready"
	for _, b := range s.Backends {
		if states[b.Name].Error != "" && !b.Optional {
			status, word = fiber.StatusServiceUnavailable, "not ready"
		}
	}
	return c.Status(status).JSON(fiber.Map{"status": word, "backends": states})
}

// Down asks every back end whether it works and returns the errors of those that do
// not, by name.
func Down(ctx context.Context, all []Backend) map[string]error {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, b := range all {
		wg.Go(func() { errs[i] = b.Check(ctx) })
	}
	wg.Wait()
	out := make(map[string]error)
	for i, b := range all {
		if errs[i] != nil {
			out[b.Name] = errs[i]
		}
	}
	return out
}

func (s *Surface) check(ctx context.Context, inFull bool) map[string]backendJSON {
	down := Down(ctx, s.Backends)
	out := make(map[string]backendJSON, len(s.Backends))
	for _, b := range s.Backends {
		state := backendJSON{Status: "ok", Note: b.Note}
		if err := down[b.Name]; err != nil {
			state.Status, state.Error = "down", hiddenReason
			if reason, public := errors.AsType[Reason](err); public {
				state.Error = string(reason)
			}
			if inFull {
				state.Error = err.Error()
			}
		}
		out[b.Name] = state
	}
	return out
}

func (s *Surface) metrics() fiber.Handler {
	return adaptor.HTTPHandler(promhttp.HandlerFor(s.Metrics, promhttp.HandlerOpts{}))
}
