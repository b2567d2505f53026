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
	// clockTolerance is the largest difference between the elapsed time and the change of the
	// time of day that does not count as a jump.
	clockTolerance = time.Hour
	// acceptJumpAfter is the time between a jump and the moment when the new time of day is trusted.
	acceptJumpAfter = 24 * time.Hour
	// clockEvery is the interval of the checks of the clock.
	clockEvery = time.Minute
)

// clock returns the time of day and detects its jumps: while the clock of the machine is wrong, the
// gateway must not delete records that have a retention of years.
type clock struct {
	now     func() time.Time
	elapsed func() time.Duration // the monotonic clock
	log     *slog.Logger

	mu            sync.Mutex
	trusted       time.Time     // the time of day when it was last trusted
	trustedAfter  time.Duration // elapsed time when the time of day was last trusted
	jump          time.Duration // size of the jump since trusted; 0 if the time of day is trusted
	detectedAfter time.Duration // elapsed time when the jump was detected
}

func newClock(now func() time.Time, elapsed func() time.Duration, log *slog.Logger) *clock {
	return &clock{now: now, elapsed: elapsed, log: log, trusted: now().Round(0), trustedAfter: elapsed()}
}

// systemClock returns the clock of this machine.
func systemClock(log *slog.Logger) *clock {
	began := time.Now()
	return newClock(time.Now, func() time.Duration { return time.Since(began) }, log)
}

// check returns an error while the time of day is not trusted.
func (c *clock) check(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, elapsed := c.now().Round(0), c.elapsed()
	jump := now.Sub(c.trusted) - (elapsed - c.trustedAfter)
	oldJump := c.jump
	switch {
	case jump.Abs() <= clockTolerance:
		c.jump = 0
	case oldJump == 0 || (jump-oldJump).Abs() > clockTolerance:
		c.jump, c.detectedAfter = jump, elapsed
		c.log.Error("the clock has jumped; expired records are not deleted", "jump", jump.Round(time.Second).String(), "resumes_after", acceptJumpAfter.String())
	case elapsed-c.detectedAfter >= acceptJumpAfter:
		c.jump = 0
	}
	if c.jump == 0 {
		if oldJump != 0 {
			c.log.Info("the clock is trusted again")
		}
		c.trusted, c.trustedAfter = now, elapsed
		return nil
	}
	return admin.Reason(fmt.Sprintf("the clock has jumped by %s; expired records are not deleted until the clock is set back, %s have passed, or the gateway restarts",
		c.jump.Round(time.Second), acceptJumpAfter))
}

// hasJumped reports whether the time of day has jumped.
func (c *clock) hasJumped() bool { return c.check(context.Background()) != nil }

// watch checks the clock every minute until ctx is done. With frequent checks, a clock that is
// corrected slowly does not count as having jumped.
func (c *clock) watch(ctx context.Context) {
	for relay.Sleep(ctx, clockEvery) {
		_ = c.check(ctx) // logs a jump
	}
}
