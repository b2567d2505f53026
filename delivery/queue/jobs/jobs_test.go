package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/cache"
	"github.com/penstock/penstock/relay/cache/redistest"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/sqlstore/recordstest"
)

// site is records and a Redis with whatever runs jobs on it.
type site struct {
	t     *testing.T
	db    *recordstest.Records
	redis *cache.DB
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := redistest.Start(t, "--appendonly", "no")
	redis, err := cache.Open(cache.Options{URL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = redis.Close() })
	return &site{t: t, db: recordstest.Open(t), redis: redis}
}

// open makes a Jobs; start says whether it runs.
func (s *site) open(start bool, o Options, run job.RunnerFunc) *Jobs {
	s.t.Helper()
	o.Reconcile = 20 * time.Millisecond
	j, err := New(Deps{
		Store: s.db.Jobs, Redis: s.redis, Runners: map[job.Kind]job.Runner{"test": run}, Logger: slog.New(slog.DiscardHandler),
	}, o)
	if err != nil {
		s.t.Fatal(err)
	}
	if start {
		if err := j.Start(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
	}
	s.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = j.Stop(ctx)
	})
	return j
}

func (s *site) submit(j *Jobs, id string) {
	s.t.Helper()
	if err := j.Submit(s.t.Context(), job.Job{ID: id, Account: 1, Kind: "test", Input: json.RawMessage(`{"n":1}`), CreatedAt: time.Now()}); err != nil {
		s.t.Fatal(err)
	}
}

// ended waits for the end of a job.
func (s *site) ended(id string) (one job.Job) {
	s.t.Helper()
	redistest.Await(s.t, time.Minute, "job "+id+" ends", func(ctx context.Context) bool {
		got, err := s.db.Jobs.Get(ctx, 1, id)
		one = got
		return err == nil && got.State.Ended()
	})
	return one
}

func TestAJobRunsToItsEnd(t *testing.T) {
	s := newSite(t)
	down := relay.Errorf(relay.KindUnavailable, "redis: down")
	var calls sync.Map
	j := s.open(true, Options{RetryDelay: time.Millisecond, MaxTries: 3}, func(_ context.Context, one job.Job) (any, error) {
		n, _ := calls.LoadOrStore(one.ID, new(atomic.Int32))
		count := n.(*atomic.Int32).Add(1)
		switch {
		case one.ID == "fails":
			return nil, fmt.Errorf("run: %w", job.Fail("The operator refused."))
		case one.ID == "panics":
			panic("oh")
		case one.ID == "comes-back" && count < 6:
			return nil, down
		}
		return map[string]string{"input": string(one.Input)}, nil
	})
	for _, tc := range []struct {
		id, result, err string
		state           job.State
		tries           int
	}{
		{"works", `{"input":"{\"n\":1}"}`, "", job.Completed, 1},
		{"fails", "", "The operator refused.", job.Failed, 1},
		{"panics", "", "internal error", job.Failed, 3},
		{"comes-back", `{"input":"{\"n\":1}"}`, "", job.Completed, 6},
	} {
		t.Run(tc.id, func(t *testing.T) {
			s.submit(j, tc.id)
			got := s.ended(tc.id)
			if got.State != tc.state || string(got.Result) != tc.result || got.Error != tc.err || got.Tries != tc.tries || !got.Due.IsZero() {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestAJobIsRunOnceByManyProcesses(t *testing.T) {
	s := newSite(t)
	var runs atomic.Int32
	run := func(context.Context, job.Job) (any, error) { runs.Add(1); return nil, nil }
	a, _ := s.open(true, Options{}, run), s.open(true, Options{}, run)
	for i := range 50 {
		s.submit(a, fmt.Sprint("j", i))
		s.submit(a, fmt.Sprint("j", i)) // the same again
	}
	for i := range 50 {
		s.ended(fmt.Sprint("j", i))
	}
	if n := runs.Load(); n != 50 {
		t.Errorf("%d runs of 50 jobs", n)
	}
}

func TestAJobOfAProcessThatDiedIsRunAgain(t *testing.T) {
	s := newSite(t)
	dead := s.open(false, Options{}, func(context.Context, job.Job) (any, error) { return nil, nil })
	s.submit(dead, "orphan")
	now := time.Now()
	if _, taken, err := s.db.Jobs.Lease(t.Context(), job.Ref{Account: 1, ID: "orphan"}, now, now.Add(300*time.Millisecond)); err != nil || !taken {
		t.Fatal(taken, err)
	}
	s.open(true, Options{}, func(context.Context, job.Job) (any, error) { return "again", nil })
	if got := s.ended("orphan"); got.Tries != 2 || string(got.Result) != `"again"` {
		t.Errorf("%+v", got)
	}
}

func TestAJobWithoutATaskIsFound(t *testing.T) {
	s := newSite(t)
	j := job.Job{ID: "lost", Account: 7, Kind: "test", CreatedAt: time.Now()}
	if err := s.db.Jobs.Create(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	s.open(true, Options{}, func(context.Context, job.Job) (any, error) { return 1, nil })
	redistest.Await(t, time.Minute, "the job ends", func(ctx context.Context) bool {
		got, err := s.db.Jobs.Get(ctx, 7, "lost")
		return err == nil && got.State == job.Completed
	})
}

func TestAShutdownLeavesAJobForTheNextStart(t *testing.T) {
	s := newSite(t)
	began := make(chan struct{})
	first := s.open(true, Options{}, func(ctx context.Context, _ job.Job) (any, error) {
		close(began)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	s.submit(first, "long")
	<-began
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := first.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	if got, err := s.db.Jobs.Get(t.Context(), 1, "long"); err != nil || got.State != job.Processing || got.Due.After(time.Now()) {
		t.Fatalf("%+v, %v", got, err)
	}
	s.open(true, Options{}, func(context.Context, job.Job) (any, error) { return nil, nil })
	s.ended("long")
}

func TestWhatCannotBeRunIsRefused(t *testing.T) {
	s := newSite(t)
	j := s.open(false, Options{}, nil)
	if err := j.Submit(t.Context(), job.Job{ID: "x", Kind: "other"}); err == nil || !strings.Contains(err.Error(), "no runner") {
		t.Error(err)
	}
	if _, err := New(Deps{Store: s.db.Jobs, Redis: s.redis, Runners: map[job.Kind]job.Runner{}}, Options{Timeout: time.Second, Lease: time.Second}); err == nil {
		t.Error("a lease as short as a run")
	}
	if _, err := New(Deps{}, Options{}); err == nil {
		t.Error("nothing to work with")
	}
	if wait := (&Jobs{opts: withDefaults(Options{})}).backoff(1000); wait != time.Minute {
		t.Error(wait)
	}
}
