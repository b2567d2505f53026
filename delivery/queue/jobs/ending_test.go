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

// endings records the states before and after the ends of jobs.
type endings struct {
	s     *site
	mu    sync.Mutex
	seen  []string
	fails int // how many of the next endings fail
}

func (e *endings) ending(ctx context.Context, j job.Job, o job.Outcome) (func(), error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.fails > 0 {
		e.fails--
		return nil, errors.New("redis is down")
	}
	e.seen = append(e.seen, "before "+string(o.State())+" "+o.Error)
	return func() {
		now, err := e.s.db.Jobs.Get(context.WithoutCancel(ctx), j.Account, j.ID)
		if err != nil {
			e.s.t.Error(err)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.seen = append(e.seen, "after "+string(now.State))
	}, nil
}

func TestTheEndOfAJobIsAnnounced(t *testing.T) {
	for name, tc := range map[string]struct {
		err   error
		fails int
		want  []string
	}{
		"when it completes":        {nil, 0, []string{"before completed ", "after completed"}},
		"when it fails":            {job.Fail("no"), 0, []string{"before failed no", "after failed"}},
		"and ends only once it is": {nil, 2, []string{"before completed ", "after completed"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			e := &endings{s: s, fails: tc.fails}
			pauses := 2
			run := job.Runner(func(context.Context, job.Job) (any, error) {
				if pauses > 0 {
					pauses--
					return nil, job.Pause(time.Millisecond)
				}
				return nil, tc.err
			})
			j := relaytest.Must(New(Deps{
				Store: s.db.Jobs, Redis: s.redis, Logger: slog.New(slog.DiscardHandler),
			}, Options{Reconcile: 20 * time.Millisecond, Timeout: 2 * time.Second, Lease: 3 * time.Second}))(t)
			relaytest.NoError(t, j.Start(Work{Runners: map[job.Kind]job.Runner{"test": run}, OnEnd: e.ending}))
			defer func() { _ = j.Stop(context.Background()) }()
			relaytest.NoError(t, j.Submit(t.Context(), job.Job{ID: "x", Account: 1, Kind: "test", Input: json.RawMessage(`1`), CreatedAt: time.Now()}))
			relaytest.Equal(t, "the number of tries without pauses", s.ended("x").Tries, 1+tc.fails)
			redistest.Await(t, "the end is announced", func(context.Context) bool {
				e.mu.Lock()
				defer e.mu.Unlock()
				return len(e.seen) >= len(tc.want)
			})
			e.mu.Lock()
			defer e.mu.Unlock()
			relaytest.Equal(t, "the first announcements", e.seen[:len(tc.want)], tc.want)
		})
	}
}
