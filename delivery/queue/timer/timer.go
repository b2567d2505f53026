// Package timer schedules work on records with asynq. It is the only package that
// uses asynq.
//
// The payload of a task is a Ref, its id is the id of the record, and its time is the time at which
// the handler is called next. The record determines the work of the handler, so a task
// that runs twice, late or never does no harm. asynq does not count failures and does not
// archive tasks. Its tasks may be lost at any time.
package timer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/hibiken/asynq"

	"github.com/penstock/penstock/relay"
)

// Redis stores the tasks. Each asynq client and server opens its own connection.
type Redis = asynq.RedisConnOpt

// Ref names a record. It is the payload of a task, and is small because asynq's heartbeat
// rewrites the payload repeatedly.
type Ref struct {
	Account relay.AccountID `json:"a"`
	ID      string          `json:"id"`
}

// RetryAfter is an error with which a handler requests another call after this time.
type RetryAfter time.Duration

func (RetryAfter) Error() string { return "retry later" }

// Options configures a Timer; all fields are required.
type Options struct {
	Redis Redis
	Queue string // the name of asynq's queue
	Task  string // the type of its tasks
	// Concurrency is the maximum number of concurrent calls of the handler.
	Concurrency int
	// Poll is the interval at which asynq looks for tasks.
	Poll time.Duration
	// MaxDuration is the maximum duration of a call of the handler.
	MaxDuration time.Duration
	Now         func() time.Time
	// Log receives asynq's messages. Level is the level of its warnings and errors, which are
	// not urgent, because the reconcilers find due records without asynq.
	Log   *slog.Logger
	Level slog.Level
}

// Timer calls a handler with the records that are due.
type Timer struct {
	opts   Options
	client *asynq.Client
	server *asynq.Server
}

// New returns a Timer, which calls nothing before Start.
func New(o Options) *Timer {
	return &Timer{opts: o, client: asynq.NewClient(o.Redis), server: asynq.NewServer(o.Redis, asynq.Config{
		Concurrency:              o.Concurrency,
		Queues:                   map[string]int{o.Queue: 1},
		RetryDelayFunc:           retryDelay,
		IsFailure:                func(error) bool { return false },
		TaskCheckInterval:        o.Poll,
		DelayedTaskCheckInterval: max(o.Poll, 500*time.Millisecond),
		// Handlers end by themselves; the timeout is only a safety net.
		ShutdownTimeout: o.MaxDuration + 10*time.Second,
		Logger: &asynqLog{
			log: o.Log, level: o.Level, now: o.Now, loggedAt: make(map[slog.Level]time.Time), suppressed: make(map[slog.Level]int),
		},
		LogLevel: asynq.WarnLevel,
	})}
}

// retryDelay returns the delay of a RetryAfter, and 1 s for errors of asynq itself,
// for example an expired lease.
func retryDelay(_ int, err error, _ *asynq.Task) time.Duration {
	if wait, ok := errors.AsType[RetryAfter](err); ok {
		return max(0, time.Duration(wait))
	}
	return time.Second
}

// Start begins to call the handler. Redis need not be available yet. A task lives
// until the handler returns nil.
func (t *Timer) Start(handle func(context.Context, Ref) error) error {
	process := func(ctx context.Context, task *asynq.Task) error {
		var ref Ref
		if err := json.Unmarshal(task.Payload(), &ref); err != nil {
			t.opts.Log.ErrorContext(ctx, "unknown asynq task", "error", err)
			return nil
		}
		return handle(ctx, ref)
	}
	return t.server.Start(asynq.HandlerFunc(process))
}

// Schedule creates the task of a record, due at dueAt; the zero time means now. If the record
// has a task, Schedule leaves the task unchanged and returns true.
func (t *Timer) Schedule(ctx context.Context, ref Ref, dueAt time.Time) (existed bool, err error) {
	body, err := json.Marshal(ref)
	if err != nil {
		return false, err
	}
	opts := []asynq.Option{
		asynq.Queue(t.opts.Queue), asynq.TaskID(ref.ID), asynq.MaxRetry(1 << 30),
		// asynq reads whole seconds; a timeout below 1 s would mean 30 minutes.
		asynq.Timeout((t.opts.MaxDuration + 30*time.Second).Truncate(time.Second)),
	}
	if dueAt.After(t.opts.Now()) {
		opts = append(opts, asynq.ProcessAt(dueAt))
	}
	_, err = t.client.EnqueueContext(ctx, asynq.NewTask(t.opts.Task, body), opts...)
	if errors.Is(err, asynq.ErrTaskIDConflict) {
		return true, nil
	}
	return false, err
}

// Shutdown stops calling the handler and waits for running calls.
func (t *Timer) Shutdown() { t.server.Shutdown() }

// Close closes the connection that Schedule uses.
func (t *Timer) Close() error { return t.client.Close() }

// asynqLog forwards asynq's log messages. While Redis is unavailable asynq
// repeats them several times a second, so at most one per level is forwarded
// within logEvery.
type asynqLog struct {
	log   *slog.Logger
	level slog.Level // of warnings and errors
	now   func() time.Time

	mu         sync.Mutex
	loggedAt   map[slog.Level]time.Time
	suppressed map[slog.Level]int
}

const logEvery = 10 * time.Second

func (l *asynqLog) forward(level slog.Level, args []any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if t, ok := l.loggedAt[level]; ok && now.Sub(t) < logEvery {
		l.suppressed[level]++
		return
	}
	l.log.Log(context.Background(), level, "asynq", "detail", fmt.Sprint(args...), "suppressed", l.suppressed[level])
	l.loggedAt[level], l.suppressed[level] = now, 0
}

// Debug drops messages for asynq's developers.
func (l *asynqLog) Debug(...any) {}

// Info drops asynq's start and stop messages.
func (l *asynqLog) Info(...any) {}

// Warn forwards a warning.
func (l *asynqLog) Warn(args ...any) { l.forward(l.level, args) }

// Error forwards an error like a warning: the reconcilers compensate for it.
func (l *asynqLog) Error(args ...any) { l.forward(l.level, args) }

// Fatal forwards the message. Unlike asynq's own logger, it does not exit.
func (l *asynqLog) Fatal(args ...any) { l.forward(slog.LevelError, args) }
