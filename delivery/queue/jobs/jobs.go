package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/hibiken/asynq"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/job"
)

// Deps is what jobs are run with. Store, Redis and Runners are needed.
type Deps struct {
	Store job.Store
	// Redis is where asynq keeps its tasks; each of its parts gets a client.
	Redis asynq.RedisConnOpt
	// Runners do the work, by the kind of job.
	Runners map[job.Kind]job.Runner
	// Ending is called before a job's end is recorded, perhaps again after a crash,
	// and what it returns, unless nil, after that. While it fails the job does not
	// end. nil: nobody is called.
	Ending func(ctx context.Context, j job.Job, o job.Outcome) (after func(), err error)
	Now    func() time.Time
	Logger *slog.Logger
}

// Options bounds the running of jobs; the zero value works.
type Options struct {
	// AtOnce is how many jobs run at one time; 0 means 64.
	AtOnce int
	// Timeout bounds one run; 0 means 10 s. Lease is how long a crash keeps a job
	// from others, longer than Timeout; 0 means Timeout and half of it.
	Timeout, Lease time.Duration
	// Again is the wait after a run that broke off, which doubles up to AgainMax;
	// 0 means 1 s and 1 min.
	Again, AgainMax time.Duration
	// Tries is how often a job is run whose error is unexpected, before it fails;
	// 0 means 20. While a back end is down a job is tried without end.
	Tries int
	// Name is asynq's queue; empty means jobs.
	Name string
	// Poll is how often asynq looks for tasks; 0 means 50 ms. Reconcile is how
	// often the store is asked what is due; 0 means 1 s.
	Poll, Reconcile time.Duration
}

// Jobs is a job.Submitter that runs what it is given.
type Jobs struct {
	deps   Deps
	opts   Options
	client *asynq.Client
	server *asynq.Server
	slots  chan struct{} // runs beside asynq's

	life    context.Context // of runs
	end     context.CancelFunc
	upkeep  context.CancelFunc
	running sync.WaitGroup
}

// New makes a Jobs; nothing runs before Start.
func New(deps Deps, o Options) (*Jobs, error) {
	if deps.Store == nil || deps.Redis == nil || deps.Runners == nil {
		return nil, errors.New("jobs: store, redis and runners are needed")
	}
	if deps.Now == nil {
		deps.Now = time.Now
	}
	if deps.Logger == nil {
		deps.Logger = slog.Default()
	}
	j := &Jobs{deps: deps, opts: complete(o), client: asynq.NewClient(deps.Redis)}
	if j.opts.Lease <= j.opts.Timeout {
		return nil, fmt.Errorf("jobs: a lease of %s ends before a run of %s", j.opts.Lease, j.opts.Timeout)
	}
	j.slots = make(chan struct{}, j.opts.AtOnce)
	j.life, j.end = context.WithCancel(context.Background())
	j.server = j.newServer()
	return j, nil
}

func complete(o Options) Options {
	o.AtOnce, o.Tries = cmp.Or(o.AtOnce, 64), cmp.Or(o.Tries, 20)
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	o.Lease = cmp.Or(o.Lease, o.Timeout+o.Timeout/2)
	o.Again, o.AgainMax = cmp.Or(o.Again, time.Second), cmp.Or(o.AgainMax, time.Minute)
	o.Name = cmp.Or(o.Name, "jobs")
	o.Poll, o.Reconcile = cmp.Or(o.Poll, 50*time.Millisecond), cmp.Or(o.Reconcile, time.Second)
	return o
}

// Submit saves a job and has it run soon. A job whose id exists is left alone.
func (j *Jobs) Submit(ctx context.Context, one job.Job) error {
	if j.deps.Runners[one.Kind] == nil {
		return fmt.Errorf("job %s: nobody runs %s", one.ID, one.Kind)
	}
	if err := j.deps.Store.Create(ctx, one); err != nil {
		return err
	}
	if _, err := j.wake(ctx, job.Ref{Account: one.Account, ID: one.ID}); err != nil {
		// It is saved and due: the reconciler finds it.
		j.deps.Logger.DebugContext(ctx, "job is left to the reconciler", "job_id", one.ID, "error", err)
	}
	return nil
}

// Start begins to run jobs. Redis need not be there yet.
func (j *Jobs) Start(context.Context) error {
	if err := j.server.Start(asynq.HandlerFunc(j.process)); err != nil {
		return fmt.Errorf("jobs: start: %w", err)
	}
	upkeep, cancel := context.WithCancel(context.Background())
	j.upkeep = cancel
	j.running.Go(func() { j.reconcileLoop(upkeep) })
	return nil
}

// Stop takes nothing more and lets runs under way finish until ctx ends; what is
// broken off then is run again by the next start.
func (j *Jobs) Stop(ctx context.Context) error {
	if j.upkeep != nil {
		j.upkeep()
		done := make(chan struct{})
		go func() {
			defer close(done)
			j.server.Shutdown()
			j.running.Wait()
		}()
		select {
		case <-done:
		case <-ctx.Done():
			j.end()
			<-done
		}
	}
	j.end()
	return j.client.Close()
}

// run does one leased job and records what it came to.
func (j *Jobs) run(one job.Job) {
	ctx, cancel := context.WithTimeout(j.life, j.opts.Timeout)
	defer cancel()
	result, err := j.do(ctx, one)
	o := j.judge(one, result, err)
	save, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer done()
	log := j.deps.Logger.With("job_id", one.ID, "account", one.Account, "kind", string(one.Kind))
	if err := j.finish(save, one, o); err != nil {
		// Its lease ends, it is run again, and that comes to the same.
		log.WarnContext(save, "job was not recorded, it is run again", "error", err)
		return
	}
	if err != nil && !o.Waits {
		log.InfoContext(save, "job broke off", "state", string(o.State()), "error", err)
	}
}

// finish records what a run came to.
func (j *Jobs) finish(ctx context.Context, one job.Job, o job.Outcome) error {
	var after func()
	if j.deps.Ending != nil && o.State().Ended() {
		var err error
		if after, err = j.deps.Ending(ctx, one, o); err != nil {
			return fmt.Errorf("ending: %w", err)
		}
	}
	if err := j.deps.Store.Finish(ctx, one, o, j.deps.Now()); err != nil {
		return err
	}
	if after != nil {
		after()
	}
	return nil
}

// do calls the runner; a panic is an unexpected error.
func (j *Jobs) do(ctx context.Context, one job.Job) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("runner panicked: %v", p)
		}
	}()
	runner := j.deps.Runners[one.Kind]
	if runner == nil {
		return nil, relay.Errorf(relay.KindUnavailable, "nobody here runs %s", one.Kind)
	}
	return runner.Run(ctx, one)
}
