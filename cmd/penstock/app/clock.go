package app

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/penstock/penstock/ingest/admin"
	"github.com/penstock/penstock/relay"
)

const (
	// clockTolerance is the largest difference between the change of the time of day and the
	// time that has passed between two checks.
	clockTolerance = time.Hour
	// clockAccepted is the time for which the time of day must go on after it has jumped
	// until it counts as set right.
	clockAccepted = 24 * time.Hour
	// clockEvery is the longest interval between two checks of the clock.
	clockEvery = time.Minute
)

// clock is the time of day, and whether it can be relied on: a clock that is wrong for a
// minute must not delete what is to be kept for years.
type clock struct {
	now     func() time.Time
	elapsed func() time.Duration // since some moment, whatever the time of day
	log     *slog.Logger

	mu       sync.Mutex
	agreed   time.Time     // the time of day when both agreed last
	duration time.Duration // what had elapsed then
	jumped   time.Duration // how far the time of day has moved since; 0: it agrees
	noticed  time.Duration // what had elapsed when that was noticed
}

func newClock(now func() time.Time, elapsed func() time.Duration, log *slog.Logger) *clock {
	return &clock{now: now, elapsed: elapsed, log: log, agreed: now().Round(0), duration: elapsed()}
}

// systemClock is the clock of this machine.
func systemClock(log *slog.Logger) *clock {
	began := time.Now()
	return newClock(time.Now, func() time.Duration { return time.Since(began) }, log)
}

// check returns why nothing may be deleted for its age: the time of day has jumped.
func (c *clock) check(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, elapsed := c.now().Round(0), c.elapsed()
	jump := now.Sub(c.agreed) - (elapsed - c.duration)
	oldDuration := c.jumped
	switch {
	case jump.Abs() <= clockTolerance:
		c.jumped = 0
	case oldDuration == 0 || (jump-oldDuration).Abs() > clockTolerance:
		c.jumped, c.noticed = jump, elapsed
		c.log.Error("the clock has jumped; nothing is deleted for its age", "jump", jump.Round(time.Second).String(), "resumes_after", clockAccepted.String())
	case elapsed-c.noticed >= clockAccepted:
		c.jumped = 0
	}
	if c.jumped == 0 {
		if oldDuration != 0 {
			c.log.Info("the clock is relied on again")
		}
		c.agreed, c.duration = now, elapsed
		return nil
	}
	return admin.Reason(fmt.Sprintf("the clock has jumped by %s; nothing is deleted for its age until it is set back, or for %s, or until a restart",
		c.jumped.Round(time.Second), clockAccepted))
}

// jumps reports whether the time of day has jumped.
func (c *clock) jumps() bool { return c.check(context.Background()) != nil }

// watch checks the clock every minute until ctx is done: a clock that is slowly corrected
// then never counts as having jumped.
func (c *clock) watch(ctx context.Context) {
	for relay.Sleep(ctx, clockEvery) {
		_ = c.check(ctx) // which logs
	}
}
