package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/cache/redistest"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/relaytest"
)

// endings records the states of jobs before and after their end is recorded.
type endings struct {
	site     *site
	mu       sync.Mutex
	calls    []string
	failures int // number of the next calls that fail
}

func (e *endings) onEnd(ctx context.Context, j job.Job, o job.Outcome) (func(), error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failures > 0 {
		e.failures--
		return nil, errors.New("redis is down")
	}
	e.calls = append(e.calls, "before "+string(o.State())+" "+o.Error)
	return func() {
		recorded, err := e.site.db.Jobs.Get(context.WithoutCancel(ctx), j.Account, j.ID)
		if err != nil {
			e.site.t.Error(err)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.calls = append(e.calls, "after "+string(recorded.State))
	}, nil
}

func TestOnEndIsCalledBeforeAndAfterTheEndIsRecorded(t *testing.T) {
	for name, tc := range map[string]struct {
		err      error
		failures int
		want     []string
	}{
		"the job completes": {nil, 0, []string{"before completed ", "after completed"}},
		"the job fails":     {job.Fail("no"), 0, []string{"before failed no", "after failed"}},
		"OnEnd fails twice": {nil, 2, []string{"before completed ", "after completed"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			e := &endings{site: s, failures: tc.failures}
			remainingPauses := 2
			run := job.Runner(func(context.Context, job.Job) (any, error) {
				if remainingPauses > 0 {
					remainingPauses--
					return nil, job.Pause(time.Millisecond)
				}
				return nil, tc.err
			})
			j := relaytest.Must(New(Deps{
				Store: s.db.Jobs, Redis: s.redis, Logger: slog.New(slog.DiscardHandler),
			}, Options{Reconcile: 20 * time.Millisecond, Timeout: 2 * time.Second, Lease: 3 * time.Second}))(t)
			relaytest.NoError(t, j.Start(Work{Runners: map[job.Kind]job.Runner{"test": run}, OnEnd: e.onEnd}))
			defer func() { _ = j.Stop(context.Background()) }()
			relaytest.NoError(t, j.Submit(t.Context(), job.Job{ID: "x", Account: 1, Kind: "test", Input: json.RawMessage(`1`), CreatedAt: time.Now()}))
			relaytest.Equal(t, "the number of tries without pauses", s.awaitEnd("x").Tries, 1+tc.failures)
			redistest.Await(t, "OnEnd is called", func(context.Context) bool {
				e.mu.Lock()
				defer e.mu.Unlock()
				return len(e.calls) >= len(tc.want)
			})
			e.mu.Lock()
			defer e.mu.Unlock()
			relaytest.Equal(t, "the first calls", e.calls[:len(tc.want)], tc.want)
		})
	}
}
