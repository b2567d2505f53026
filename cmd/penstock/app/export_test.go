package app

import (
	"context"
	"time"
)

// DrainTime is drainTime, for the tests of package app_test.
const DrainTime = drainTime

// SetClock replaces the clock of a gateway with a stopped clock. It returns a function that advances
// the elapsed time and makes the time of day jump.
func SetClock(g *Gateway) (advance func(elapsed, jump time.Duration)) {
	set := &setClock{began: time.Now()}
	g.clock.mu.Lock() // the journals already use the clock
	g.clock.now, g.clock.elapsed, g.clock.trusted, g.clock.trustedAfter = set.now, set.passed, set.now(), 0
	g.clock.mu.Unlock()
	return func(elapsed, jump time.Duration) {
		set.elapsed.Add(int64(elapsed))
		set.shift.Add(int64(jump))
	}
}

// ExpireReadings runs the job that deletes readings past their retention.
func ExpireReadings(g *Gateway) error { return g.expireReadings(context.Background()) }

// SweepRecords runs the job that deletes records past their retention.
func SweepRecords(g *Gateway) error { return g.sweepRecords(context.Background()) }
