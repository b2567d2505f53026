package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock/penstock/delivery/queue/timer"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/cache"
	"github.com/penstock/penstock/relay/cache/redistest"
	"github.com/penstock/penstock/relay/gateway"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/recordstest"
	"github.com/penstock/penstock/relay/relaytest"
)

// site provides the records and the Redis of one or more Jobs.
type site struct {
	t     *testing.T
	db    *recordstest.Records
	redis *cache.DB
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := redistest.Start(t, "--appendonly", "no")
	redis := relaytest.Must(cache.Open(cache.Options{URL: s.URL}))(t)
	t.Cleanup(func() { _ = redis.Close() })
	return &site{t: t, db: recordstest.Open(t), redis: redis}
}

// open returns a Jobs, and starts it if start is set.
func (s *site) open(start bool, o Options, run job.Runner) *Jobs {
	s.t.Helper()
	o.Reconcile = 20 * time.Millisecond
	j := relaytest.Must(New(Deps{
		Store: s.db.Jobs, Redis: s.redis, Logger: slog.New(slog.DiscardHandler),
	}, o))(s.t)
	j.work = Work{Runners: map[job.Kind]job.Runner{"test": run}}
	if start {
		relaytest.NoError(s.t, j.Start(j.work))
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
	relaytest.NoError(s.t, j.Submit(s.t.Context(), job.Job{ID: id, Account: 1, Kind: "test", Input: json.RawMessage(`{"n":1}`), CreatedAt: time.Now()}))
}

// awaitEnd waits until a job has ended and returns it.
func (s *site) awaitEnd(id string) (ended job.Job) {
	s.t.Helper()
	redistest.Await(s.t, "job "+id+" ends", func(ctx context.Context) bool {
		got, err := s.db.Jobs.Get(ctx, 1, id)
		ended = got
		return err == nil && got.State.Ended()
	})
	return ended
}

func TestAJobRunsToItsEnd(t *testing.T) {
	s := newSite(t)
	down := relay.Errorf(relay.KindUnavailable, "redis: down")
	var calls sync.Map
	j := s.open(true, Options{RetryDelay: time.Millisecond, MaxTries: 3}, func(_ context.Context, jb job.Job) (any, error) {
		n, _ := calls.LoadOrStore(jb.ID, new(atomic.Int32))
		count := n.(*atomic.Int32).Add(1)
		switch {
		case jb.ID == "fails":
			return nil, fmt.Errorf("run: %w", job.Fail("The operator refused."))
		case jb.ID == "panics":
			panic("oh")
		case jb.ID == "recovers" && count < 6:
			return nil, down
		}
		return map[string]string{"input": string(jb.Input)}, nil
	})
	for _, tc := range []struct {
		id, result, err string
		state           job.State
		tries           int
	}{
		{"works", `{"input":"{\"n\":1}"}`, "", job.Completed, 1},
		{"fails", "", "The operator refused.", job.Failed, 1},
		{"panics", "", "internal error", job.Failed, 3},
		{"recovers", `{"input":"{\"n\":1}"}`, "", job.Completed, 6},
	} {
		t.Run(tc.id, func(t *testing.T) {
			s.submit(j, tc.id)
			got := s.awaitEnd(tc.id)
			relaytest.Equal(t, "the result", string(got.Result), tc.result)
			ended := job.Job{State: got.State, Error: got.Error, Tries: got.Tries, Due: got.Due}
			relaytest.Equal(t, "the job", ended, job.Job{State: tc.state, Error: tc.err, Tries: tc.tries})
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
		s.submit(a, fmt.Sprint("j", i)) // has no effect
	}
	for i := range 50 {
		s.awaitEnd(fmt.Sprint("j", i))
	}
	relaytest.Equal(t, "the number of runs", runs.Load(), 50)
}

func TestAJobOfACrashedProcessIsRunAgain(t *testing.T) {
	s := newSite(t)
	crashed := s.open(false, Options{}, func(context.Context, job.Job) (any, error) { return nil, nil })
	s.submit(crashed, "orphan")
	now := time.Now()
	_, leased, err := s.db.Jobs.Lease(t.Context(), job.Ref{Account: 1, ID: "orphan"}, now, now.Add(300*time.Millisecond))
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the job is leased", leased, true)
	s.open(true, Options{}, func(context.Context, job.Job) (any, error) { return "again", nil })
	got := s.awaitEnd("orphan")
	relaytest.Equal(t, "the number of tries", got.Tries, 2)
	relaytest.Equal(t, "the result", string(got.Result), `"again"`)
}

func TestAJobWithoutATaskIsRun(t *testing.T) {
	s := newSite(t)
	j := job.Job{ID: "lost", Account: 7, Kind: "test", CreatedAt: time.Now()}
	relaytest.NoError(t, s.db.Jobs.Create(t.Context(), j))
	s.open(true, Options{}, func(context.Context, job.Job) (any, error) { return 1, nil })
	redistest.Await(t, "the job ends", func(ctx context.Context) bool {
		got, err := s.db.Jobs.Get(ctx, 7, "lost")
		return err == nil && got.State == job.Completed
	})
}

func TestAShutdownLeavesAJobForTheNextStart(t *testing.T) {
	s := newSite(t)
	began := make(chan struct{})
	j := s.open(true, Options{}, func(ctx context.Context, _ job.Job) (any, error) {
		close(began)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	s.submit(j, "long")
	<-began
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	relaytest.NoError(t, j.Stop(ctx))
	got := relaytest.Must(s.db.Jobs.Get(t.Context(), 1, "long"))(t)
	relaytest.Equal(t, "the state after the shutdown", got.State, job.Processing)
	if got.Due.After(time.Now()) {
		t.Fatalf("the job is due at %s, want it due now", got.Due)
	}
	s.open(true, Options{}, func(context.Context, job.Job) (any, error) { return nil, nil })
	s.awaitEnd("long")
}

func TestAJobWithoutARunnerAndInvalidOptionsAreRefused(t *testing.T) {
	s := newSite(t)
	j := s.open(false, Options{}, nil)
	if _, err := j.call(t.Context(), job.Job{ID: "x", Kind: "other"}); relay.KindOf(err) != relay.KindUnavailable {
		t.Errorf("call without a runner: error = %v, want kind unavailable", err)
	}
	if _, err := New(Deps{Store: s.db.Jobs, Redis: s.redis}, Options{Timeout: time.Second, Lease: time.Second}); err == nil {
		t.Error("a lease as short as the timeout of a run was accepted")
	}
	if _, err := New(Deps{}, Options{}); err == nil {
		t.Error("missing dependencies were accepted")
	}
	relaytest.Equal(t, "the longest backoff", (&Jobs{opts: Options{RetryDelay: time.Second}}).backoff(1000), time.Minute)
}

func TestNoJobRunsWhileTheGateIsClosed(t *testing.T) {
	s := newSite(t)
	j := s.open(false, Options{}, func(context.Context, job.Job) (any, error) { return "done", nil })
	gate := gateway.NewGate()
	j.deps.Gate, j.reconciler.Gate = gate, gate
	s.submit(j, "j1")
	if err := j.process(t.Context(), timer.Ref{Account: 1, ID: "j1"}); !errors.As(err, new(timer.RetryAfter)) {
		t.Errorf("process while the gate is closed: error = %v, want RetryAfter", err)
	}
	relaytest.Equal(t, "the due jobs that are scheduled", j.reconciler.Pass(t.Context()), 0)
	relaytest.Equal(t, "the state", relaytest.Must(s.db.Jobs.Get(t.Context(), 1, "j1"))(t).State, job.Queued)
	gate.Open()
	if err := j.process(t.Context(), timer.Ref{Account: 1, ID: "j1"}); err != nil {
		t.Error(err)
	}
	relaytest.Equal(t, "the state when the gate is open", relaytest.Must(s.db.Jobs.Get(t.Context(), 1, "j1"))(t).State, job.Completed)
}
