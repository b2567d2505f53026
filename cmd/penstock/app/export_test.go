package app

import (
	"context"
	"time"
)

// DrainTime is exported for the tests of package app_test.
const DrainTime = drainTime

// SetClock gives an opened gateway a clock that stands still, and returns the function
// that lets time pass and makes the time of day jump.
func SetClock(d *Gateway) (move func(passes, jumps time.Duration)) {
	set := &setClock{began: time.Now()}
	d.clock.mu.Lock() // the journals look at it already
	d.clock.now, d.clock.elapsed, d.clock.agreed, d.clock.duration = set.now, set.passed, set.now(), 0
	d.clock.mu.Unlock()
	return func(passes, jumps time.Duration) {
		set.elapsed.Add(int64(passes))
		set.shift.Add(int64(jumps))
	}
}

// ExpireReadings runs the job that deletes readings past their retention.
func ExpireReadings(d *Gateway) error { return d.expireReadings(context.Background()) }

// SweepRecords runs the job that deletes records past their retention.
func SweepRecords(d *Gateway) error { return d.sweepRecords(context.Background()) }
