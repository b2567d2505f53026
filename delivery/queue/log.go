package queue

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// asynqLog passes asynq's messages on. While Redis is away asynq repeats itself
// several times a second, so one message per level and logEvery is passed on.
type asynqLog struct {
	log *slog.Logger
	now func() time.Time

	mu   sync.Mutex
	last map[slog.Level]time.Time
	held map[slog.Level]int
}

const logEvery = 10 * time.Second

func newAsynqLog(log *slog.Logger, now func() time.Time) *asynqLog {
	return &asynqLog{log: log, now: now, last: make(map[slog.Level]time.Time), held: make(map[slog.Level]int)}
}

func (l *asynqLog) pass(level slog.Level, args []any) {
	l.mu.Lock()
	now := l.now()
	if at, ok := l.last[level]; ok && now.Sub(at) < logEvery {
		l.held[level]++
		l.mu.Unlock()
		return
	}
	l.last[level] = now
	left := l.held[level]
	l.held[level] = 0
	l.mu.Unlock()
	l.log.Log(context.Background(), level, "asynq", "detail", fmt.Sprint(args...), "left_out", left)
}

// Debug drops what only asynq's authors need.
func (l *asynqLog) Debug(...any) {}

// Info drops asynq's starts and stops, which are ours as well.
func (l *asynqLog) Info(...any) {}

// Warn passes a warning on.
func (l *asynqLog) Warn(args ...any) { l.pass(slog.LevelWarn, args) }

// Error passes on what asynq could not do; the reconciler makes up for it.
func (l *asynqLog) Error(args ...any) { l.pass(slog.LevelWarn, args) }

// Fatal passes it on and does not end the process, as asynq would.
func (l *asynqLog) Fatal(args ...any) { l.pass(slog.LevelError, args) }
