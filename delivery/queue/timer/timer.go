// Package timer schedules work on records with asynq. It is the only package that
// uses asynq.
//
// A task carries a record's name only, is named after the record, and says when it is
// examined next. The record decides what is done then: a task that runs twice, late or never
// does no harm. asynq never counts failures and never archives a task; its tasks may be lost
// at any time.
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

// Ref names a record; it is the content of a task, which is small, because asynq's
// heartbeat rewrites it repeatedly.
type Ref struct {
	Account relay.AccountID `json:"a"`
	ID      string          `json:"id"`
}

// Again is the error with which a handler is called again after this time.
type Again time.Duration

func (Again) Error() string { return "waits" }

// Options configures a Timer; all fields are needed.
type Options struct {
	Redis Redis
	Queue string // the name of asynq's queue
	Task  string // the type of its tasks
	// Servers is the number of asynq servers, each of which takes at most one task
	// per round trip; Concurrency is that of each.
	Servers, Concurrency int
	// Poll is the interval at which asynq looks for tasks.
	Poll time.Duration
	// Longest is the longest time that a call of the handler takes.
	Longest time.Duration
	Now     func() time.Time
	// Log gets asynq's messages, at the given level; errors are no more than that,
	// because records that are due are found without asynq.
	Log   *slog.Logger
	Level slog.Level
}

// Timer calls a handler with the records that are due.
type Timer struct {
	o       Options
	client  *asynq.Client
	servers []*asynq.Server
}

// New returns a Timer, which calls nothing before Start.
func New(o Options) *Timer {
	t := &Timer{o: o, client: asynq.NewClient(o.Redis)}
	for range o.Servers {
		t.servers = append(t.servers, asynq.NewServer(o.Redis, asynq.Config{
			Concurrency:              o.Concurrency,
			Queues:                   map[string]int{o.Queue: 1},
			RetryDelayFunc:           retryDelay,
			IsFailure:                func(error) bool { return false },
			TaskCheckInterval:        o.Poll,
			DelayedTaskCheckInterval: max(o.Poll, 500*time.Millisecond),
			// Handlers end by themselves; this is only a safety net.
			ShutdownTimeout: o.Longest + 10*time.Second,
			Logger: &asynqLog{
				log: o.Log, level: o.Level, now: o.Now, loggedAt: make(map[slog.Level]time.Time), suppressed: make(map[slog.Level]int),
			},
			LogLevel: asynq.WarnLevel,
		}))
	}
	return t
}

// retryDelay returns the delay of an Again, and 1 s for errors of asynq itself,
// such as an expired lease.
func retryDelay(_ int, err error, _ *asynq.Task) time.Duration {
	if wait, ok := errors.AsType[Again](err); ok {
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
			t.o.Log.ErrorContext(ctx, "unknown asynq task", "error", err)
			return nil
		}
		return handle(ctx, ref)
	}
	for _, s := range t.servers {
		if err := s.Start(asynq.HandlerFunc(process)); err != nil {
			return err
		}
	}
	return nil
}

// Schedule creates the task of a record, due at the given time; the zero time means
// now. A record that has a task keeps that.
func (t *Timer) Schedule(ctx context.Context, ref Ref, at time.Time) (existed bool, err error) {
	body, err := json.Marshal(ref)
	if err != nil {
		return false, err
	}
	opts := []asynq.Option{
		asynq.Queue(t.o.Queue), asynq.TaskID(ref.ID), asynq.MaxRetry(1 << 30),
		// asynq reads times in whole seconds; below 1 s it would take 30 minutes.
		asynq.Timeout((t.o.Longest + 30*time.Second).Truncate(time.Second)),
	}
	if at.After(t.o.Now()) {
		opts = append(opts, asynq.ProcessAt(at))
	}
	_, err = t.client.EnqueueContext(ctx, asynq.NewTask(t.o.Task, body), opts...)
	if errors.Is(err, asynq.ErrTaskIDConflict) {
		return true, nil
	}
	return false, err
}

// Shutdown calls the handler no more and waits for calls to end.
func (t *Timer) Shutdown() {
	for _, s := range t.servers {
		s.Shutdown()
	}
}

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

// Fatal forwards the message and does not exit, as asynq would.
func (l *asynqLog) Fatal(args ...any) { l.forward(slog.LevelError, args) }
