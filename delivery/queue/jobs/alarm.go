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

// taskType is the type of our asynq tasks.
const taskType = "job"

// payload is all that a task carries.
type payload struct {
	Account account.ID `json:"a"`
	ID      string     `json:"id"`
}

// later is what the handler returns to be called again.
type later time.Duration

func (later) Error() string { return "waits" }

// newServer makes an asynq server that never counts, and so never archives.
func (j *Jobs) newServer() *asynq.Server {
	return asynq.NewServer(j.deps.Redis, asynq.Config{
		Concurrency: j.opts.AtOnce,
		Queues:      map[string]int{j.opts.Name: 1},
		RetryDelayFunc: func(_ int, err error, _ *asynq.Task) time.Duration {
			if wait, ok := errors.AsType[later](err); ok {
				return max(0, time.Duration(wait))
			}
			return time.Second
		},
		IsFailure:                func(error) bool { return false },
		TaskCheckInterval:        j.opts.Poll,
		DelayedTaskCheckInterval: max(j.opts.Poll, 200*time.Millisecond),
		ShutdownTimeout:          j.opts.Lease + 5*time.Second,
		Logger:                   quiet{j.deps.Logger},
		LogLevel:                 asynq.WarnLevel,
	})
}

// quiet keeps asynq's own words for who debugs: while Redis is away it repeats
// itself, and the reconciler makes up for whatever it could not do.
type quiet struct{ log *slog.Logger }

func (q quiet) Debug(...any)      {}
func (q quiet) Info(...any)       {}
func (q quiet) Warn(args ...any)  { q.log.Debug("asynq", "detail", fmt.Sprint(args...)) }
func (q quiet) Error(args ...any) { q.Warn(args...) }
func (q quiet) Fatal(args ...any) { q.log.Error("asynq", "detail", fmt.Sprint(args...)) }

// wake makes the task of a job; one that exists is fine.
func (j *Jobs) wake(ctx context.Context, r job.Ref) (existed bool, err error) {
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

// process is what asynq calls. The task lives until the job has ended.
func (j *Jobs) process(ctx context.Context, t *asynq.Task) error {
	var p payload
	if err := json.Unmarshal(t.Payload(), &p); err != nil {
		j.deps.Logger.ErrorContext(ctx, "task is not ours", "error", err)
		return nil
	}
	ref := job.Ref{Account: p.Account, ID: p.ID}
	one, err := j.try(ctx, ref)
	switch {
	case relay.KindOf(err) == relay.KindNotFound || err == nil && one.State.Ended():
		return nil
	case err != nil:
		return err
	}
	return later(one.Due.Sub(j.deps.Now()))
}

// try runs a job if it is due, and returns how it stands.
func (j *Jobs) try(ctx context.Context, ref job.Ref) (job.Job, error) {
	now := j.deps.Now()
	one, taken, err := j.deps.Store.Lease(ctx, ref, now, now.Add(j.opts.Lease))
	if err != nil || !taken {
		return one, err
	}
	j.run(one)
	return j.deps.Store.Get(ctx, ref.Account, ref.ID)
}
