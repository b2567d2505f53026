package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/hibiken/asynq"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/job"
)

// taskType is the type of all asynq tasks of this package.
const taskType = "job"

// payload is the content of an asynq task.
type payload struct {
	Account account.ID `json:"a"`
	ID      string     `json:"id"`
}

// retryIn is the error that makes asynq call the handler again after this time.
type retryIn time.Duration

func (retryIn) Error() string { return "waits" }

// newServer returns an asynq server that never counts failures, and so never
// archives a task.
func (j *Jobs) newServer() *asynq.Server {
	return asynq.NewServer(j.deps.Redis, asynq.Config{
		Concurrency: j.opts.Concurrency,
		Queues:      map[string]int{j.opts.Name: 1},
		RetryDelayFunc: func(_ int, err error, _ *asynq.Task) time.Duration {
			if wait, ok := errors.AsType[retryIn](err); ok {
				return max(0, time.Duration(wait))
			}
			return time.Second
		},
		IsFailure:                func(error) bool { return false },
		TaskCheckInterval:        j.opts.Poll,
		DelayedTaskCheckInterval: max(j.opts.Poll, 200*time.Millisecond),
		ShutdownTimeout:          j.opts.Lease + 5*time.Second,
		Logger:                   debugLogger{j.deps.Logger},
		LogLevel:                 asynq.WarnLevel,
	})
}

// debugLogger logs asynq's messages at debug level: while Redis is unavailable
// asynq repeats them, and the reconciler compensates for its errors.
type debugLogger struct{ log *slog.Logger }

func (q debugLogger) Debug(...any)      {}
func (q debugLogger) Info(...any)       {}
func (q debugLogger) Warn(args ...any)  { q.log.Debug("asynq", "detail", fmt.Sprint(args...)) }
func (q debugLogger) Error(args ...any) { q.Warn(args...) }
func (q debugLogger) Fatal(args ...any) { q.log.Error("asynq", "detail", fmt.Sprint(args...)) }

// enqueueTask creates the asynq task of a job; an existing task is not an error.
func (j *Jobs) enqueueTask(ctx context.Context, r job.Ref) (existed bool, err error) {
	body, err := json.Marshal(payload{r.Account, r.ID})
	if err != nil {
		return false, err
	}
	_, err = j.client.EnqueueContext(ctx, asynq.NewTask(taskType, body),
		asynq.Queue(j.opts.Name), asynq.TaskID(r.ID), asynq.MaxRetry(1<<30),
		// asynq reads times in whole seconds; below 1 s it would take 30 minutes.
		asynq.Timeout((j.opts.Lease + 30*time.Second).Truncate(time.Second)))
	if errors.Is(err, asynq.ErrTaskIDConflict) {
		return true, nil
	}
	return false, err
}

// process is asynq's handler. The task lives until the job has ended.
func (j *Jobs) process(ctx context.Context, t *asynq.Task) error {
	var p payload
	if err := json.Unmarshal(t.Payload(), &p); err != nil {
		j.deps.Logger.ErrorContext(ctx, "unknown asynq task", "error", err)
		return nil
	}
	ref := job.Ref{Account: p.Account, ID: p.ID}
	one, err := j.runIfDue(ctx, ref)
	switch {
	case relay.KindOf(err) == relay.KindNotFound || err == nil && one.State.Ended():
		return nil
	case err != nil:
		return err
	}
	return retryIn(one.Due.Sub(j.deps.Now()))
}

// runIfDue runs a job if it is due, and returns its current state.
func (j *Jobs) runIfDue(ctx context.Context, ref job.Ref) (job.Job, error) {
	now := j.deps.Now()
	one, taken, err := j.deps.Store.Lease(ctx, ref, now, now.Add(j.opts.Lease))
	if err != nil || !taken {
		return one, err
	}
	j.run(one)
	return j.deps.Store.Get(ctx, ref.Account, ref.ID)
}
