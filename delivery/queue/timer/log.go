package timer

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

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

func newAsynqLog(log *slog.Logger, level slog.Level, now func() time.Time) *asynqLog {
	return &asynqLog{log: log, level: level, now: now, loggedAt: make(map[slog.Level]time.Time), suppressed: make(map[slog.Level]int)}
}

func (l *asynqLog) forward(level slog.Level, args []any) {
	l.mu.Lock()
	now := l.now()
	if t, ok := l.loggedAt[level]; ok && now.Sub(t) < logEvery {
		l.suppressed[level]++
		l.mu.Unlock()
		return
	}
	l.loggedAt[level] = now
	remaining := l.suppressed[level]
	l.suppressed[level] = 0
	l.mu.Unlock()
	l.log.Log(context.Background(), level, "asynq", "detail", fmt.Sprint(args...), "suppressed", remaining)
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
