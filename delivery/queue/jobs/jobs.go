package jobs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/penstock/penstock/delivery/lease"
	"github.com/penstock/penstock/delivery/queue/timer"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/gateway"
	"github.com/penstock/penstock/relay/job"
)

// Deps are the dependencies of Jobs. Store and Redis are required.
type Deps struct {
	Store  *job.Store
	Redis  timer.Redis
	Gate   *gateway.Gate // while it is closed, no job is run
	Now    func() time.Time
	Logger *slog.Logger
}

// Work contains the functions that run jobs and handle their ends.
type Work struct {
	// Runners run the jobs, by kind.
	Runners map[job.Kind]job.Runner
	// OnEnd is called before the end of a job is recorded, and again if recording is repeated
	// after a crash. The function that it returns, unless nil, is called after the end is
	// recorded. While OnEnd fails, the job does not end. nil disables it.
	OnEnd func(ctx context.Context, j job.Job, o job.Outcome) (finish func(), err error)
}

const (
	asynqQueue    = "jobs"
	asynqPoll     = 500 * time.Millisecond // how often asynq looks for tasks
	maxRunning    = 64                     // jobs at the same time
	maxRetryDelay = time.Minute
)

// Options configures Jobs; the zero value works.
type Options struct {
	// Timeout bounds one run; 0 means 10 s. Lease is the time for which the jobs of a crashed
	// process stay leased, and must exceed Timeout; 0 means 1.5 times Timeout.
	Timeout, Lease time.Duration
	// RetryDelay is the delay after a failed run, which doubles up to a minute; 0
	// means 1 s.
	RetryDelay time.Duration
	// MaxTries is the number of runs after which an unexpected error fails a job; 0 means 20.
	// While a back end is unavailable a job is retried without limit.
	MaxTries int
	// Reconcile is the interval at which due jobs are listed; 0 means 1 s.
	Reconcile time.Duration
}

// Jobs implements job.Submitter and runs the jobs.
type Jobs struct {
	deps       Deps
	opts       Options
	work       Work // set by Start
	timer      *timer.Timer
	reconciler lease.Reconciler[job.Ref]
	slots      chan struct{} // limits runs outside asynq

	runCtx        context.Context // context of runs
	cancelRuns    context.CancelFunc
	stopReconcile context.CancelFunc
	running       sync.WaitGroup
}

// New returns a Jobs; it does nothing before Start.
func New(deps Deps, o Options) (*Jobs, error) {
	if deps.Store == nil || deps.Redis == nil {
		return nil, errors.New("jobs: Store and Redis are required")
	}
	if deps.Now == nil {
		deps.Now = time.Now
	}
	deps.Logger = cmp.Or(deps.Logger, slog.Default())
	o.Timeout, o.MaxTries = cmp.Or(o.Timeout, 10*time.Second), cmp.Or(o.MaxTries, 20)
	o.Lease = cmp.Or(o.Lease, o.Timeout+o.Timeout/2)
	o.RetryDelay, o.Reconcile = cmp.Or(o.RetryDelay, time.Second), cmp.Or(o.Reconcile, time.Second)
	j := &Jobs{deps: deps, opts: o}
	if j.opts.Lease <= j.opts.Timeout {
		return nil, fmt.Errorf("jobs: a lease of %s ends before a run of %s", j.opts.Lease, j.opts.Timeout)
	}
	j.slots = make(chan struct{}, maxRunning)
	j.runCtx, j.cancelRuns = context.WithCancel(context.Background())
	j.reconciler = lease.Reconciler[job.Ref]{
		Due: deps.Store.Due, Limit: maxDue, Gate: deps.Gate, Schedule: j.scheduleDue, Now: deps.Now, Log: deps.Logger.With("queue", asynqQueue),
	}
	j.timer = timer.New(timer.Options{
		Redis: deps.Redis, Queue: asynqQueue, Task: "job", Concurrency: maxRunning, Poll: asynqPoll,
		MaxDuration: j.opts.Lease, Now: deps.Now, Log: deps.Logger, Level: slog.LevelDebug,
	})
	return j, nil
}

// Submit saves a job and schedules it. A job whose id exists is left unchanged.
func (j *Jobs) Submit(ctx context.Context, jb job.Job) error {
	if err := j.deps.Store.Create(ctx, jb); err != nil {
		return err
	}
	if _, err := j.timer.Schedule(ctx, timer.Ref{Account: jb.Account, ID: jb.ID}, time.Time{}); err != nil {
		// The job is saved and due: the reconciler schedules it.
		j.deps.Logger.DebugContext(ctx, "job not scheduled; the reconciler will find it", "job_id", jb.ID, "error", err)
	}
	return nil
}

// Start begins to run jobs. work is not a parameter of New because the services that run jobs
// also submit jobs, so they are created after Jobs. Redis need not be available yet.
func (j *Jobs) Start(work Work) error {
	j.work = work
	if err := j.timer.Start(j.process); err != nil {
		return fmt.Errorf("jobs: start: %w", err)
	}
	loopCtx, cancel := context.WithCancel(context.Background())
	j.stopReconcile = cancel
	j.running.Go(func() {
		j.reconciler.Pass(loopCtx)
		lease.Every(loopCtx, j.opts.Reconcile, func(ctx context.Context) { j.reconciler.Pass(ctx) })
	})
	return nil
}

// Stop stops starting jobs and waits for running jobs until ctx ends. It then cancels the
// remaining runs, which are repeated after the next start.
func (j *Jobs) Stop(ctx context.Context) error {
	if j.stopReconcile != nil {
		j.stopReconcile()
		done := make(chan struct{})
		go func() {
			defer close(done)
			j.timer.Shutdown()
			j.running.Wait()
		}()
		select {
		case <-done:
		case <-ctx.Done():
			j.cancelRuns()
			<-done
		}
	}
	j.cancelRuns()
	return j.timer.Close()
}

func (j *Jobs) run(jb job.Job) {
	ctx, cancel := context.WithTimeout(j.runCtx, j.opts.Timeout)
	defer cancel()
	result, err := j.call(ctx, jb)
	o := j.outcomeOf(jb, result, err)
	saveCtx, cancelSave := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancelSave()
	log := j.deps.Logger.With("job_id", jb.ID, "account", jb.Account, "kind", string(jb.Kind))
	if err := j.finish(saveCtx, jb, o); err != nil {
		// The job runs again when its lease ends, with the same result.
		log.WarnContext(saveCtx, "job outcome not saved; the job will run again", "error", err)
		return
	}
	if err != nil && !o.Waits {
		log.InfoContext(saveCtx, "job run failed", "state", string(o.State()), "error", err)
	}
}

func (j *Jobs) finish(ctx context.Context, jb job.Job, o job.Outcome) error {
	var finish func()
	if j.work.OnEnd != nil && o.State().Ended() {
		var err error
		if finish, err = j.work.OnEnd(ctx, jb, o); err != nil {
			return fmt.Errorf("handle the end: %w", err)
		}
	}
	if err := j.deps.Store.Finish(ctx, jb, o, j.deps.Now()); err != nil {
		return err
	}
	if finish != nil {
		finish()
	}
	return nil
}

func (j *Jobs) call(ctx context.Context, jb job.Job) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("runner panicked: %v", p)
		}
	}()
	runner := j.work.Runners[jb.Kind]
	if runner == nil {
		return nil, relay.Errorf(relay.KindUnavailable, "no runner for jobs of kind %s", jb.Kind)
	}
	return runner(ctx, jb)
}

// outcomeOf converts the result of a run into an outcome. Only a Failure fails
// the job at once; an unavailable back end or a shutdown never does.
func (j *Jobs) outcomeOf(jb job.Job, result any, err error) job.Outcome {
	if err == nil {
		b, marshalErr := json.Marshal(result)
		if marshalErr == nil {
			return job.Outcome{Result: b}
		}
		err = marshalErr
	}
	if reason, ok := job.Reason(err); ok {
		return job.Outcome{Error: reason}
	}
	now := j.deps.Now()
	if wait, ok := errors.AsType[job.Pause](err); ok {
		return job.Outcome{RetryAt: now.Add(max(0, time.Duration(wait))), Waits: true}
	}
	switch {
	case j.runCtx.Err() != nil:
		return job.Outcome{Error: "interrupted", RetryAt: now}
	case relay.KindOf(err) == relay.KindUnavailable, errors.Is(err, context.DeadlineExceeded):
		return job.Outcome{Error: "a back end is unavailable", RetryAt: now.Add(j.backoff(jb.Tries))}
	case jb.Tries >= j.opts.MaxTries:
		return job.Outcome{Error: "internal error"}
	}
	return job.Outcome{Error: "internal error", RetryAt: now.Add(j.backoff(jb.Tries))}
}

func (j *Jobs) backoff(tries int) time.Duration {
	return relay.Backoff(j.opts.RetryDelay, maxRetryDelay, tries-1)
}

// process is called when a job is due. Its task lives until the job has ended.
func (j *Jobs) process(ctx context.Context, due timer.Ref) error {
	if j.deps.Gate.Closed() {
		return timer.RetryAfter(time.Second)
	}
	jb, err := j.runIfDue(ctx, job.Ref(due))
	switch {
	case relay.KindOf(err) == relay.KindNotFound || err == nil && jb.State.Ended():
		return nil
	case err != nil:
		return err
	}
	return timer.RetryAfter(jb.Due.Sub(j.deps.Now()))
}

func (j *Jobs) runIfDue(ctx context.Context, ref job.Ref) (job.Job, error) {
	now := j.deps.Now()
	jb, leased, err := j.deps.Store.Lease(ctx, ref, now, now.Add(j.opts.Lease))
	if err != nil || !leased {
		return jb, err
	}
	j.run(jb)
	return j.deps.Store.Get(ctx, ref.Account, ref.ID)
}

// maxDue is the largest number of due jobs listed per account in one pass.
const maxDue = 1000

// scheduleDue creates the task of a job when the job is listed as due a second time, because
// most jobs that are listed for the first time have a task that is about to run. If the job
// already has a task, scheduleDue runs the job without asynq, which may be busy or wait for a
// process that crashed.
func (j *Jobs) scheduleDue(ctx context.Context, ref job.Ref, listedAt time.Time) time.Time {
	if listedAt.IsZero() {
		return j.deps.Now()
	}
	if existed, err := j.timer.Schedule(ctx, timer.Ref(ref), time.Time{}); err != nil || !existed {
		return listedAt // the next pass retries, or the new task runs it
	}
	select {
	case j.slots <- struct{}{}:
		j.running.Go(func() {
			defer func() { <-j.slots }()
			if _, err := j.runIfDue(j.runCtx, ref); err != nil {
				j.deps.Logger.Debug("cannot run due job", "job_id", ref.ID, "error", err)
			}
		})
		return time.Time{}
	default: // all slots are taken
		return listedAt
	}
}
