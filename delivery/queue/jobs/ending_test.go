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
)

// endings notes what is said before and after the ends of jobs.
type endings struct {
	s     *site
	mu    sync.Mutex
	seen  []string
	fails int // the next endings that fail
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
		"when it completes":            {nil, 0, []string{"before completed ", "after completed"}},
		"when it fails":                {job.Fail("no"), 0, []string{"before failed no", "after failed"}},
		"and does not end until it is": {nil, 2, []string{"before completed ", "after completed"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			e := &endings{s: s, fails: tc.fails}
			pauses := 2
			run := job.RunnerFunc(func(context.Context, job.Job) (any, error) {
				if pauses > 0 {
					pauses--
					return nil, job.Pause(time.Millisecond)
				}
				return nil, tc.err
			})
			j, err := New(Deps{
				Store: s.db.Jobs, Redis: s.redis, Runners: map[job.Kind]job.Runner{"test": run}, OnEnd: e.ending,
				Logger: slog.New(slog.DiscardHandler),
			}, Options{Reconcile: 20 * time.Millisecond, Timeout: 2 * time.Second, Lease: 3 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			if err := j.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = j.Stop(context.Background()) }()
			if err := j.Submit(t.Context(), job.Job{ID: "x", Account: 1, Kind: "test", Input: json.RawMessage(`1`), CreatedAt: time.Now()}); err != nil {
				t.Fatal(err)
			}
			if got := s.ended("x"); got.Tries != 1+tc.fails {
				t.Errorf("%d tries, pauses are none", got.Tries)
			}
			redistest.Await(t, time.Minute, "it is announced", func(context.Context) bool {
				e.mu.Lock()
				defer e.mu.Unlock()
				return len(e.seen) >= len(tc.want)
			})
			for i, want := range tc.want {
				if i >= len(e.seen) || e.seen[i] != want {
					t.Fatalf("%q, want %q", e.seen, tc.want)
				}
			}
		})
	}
}
