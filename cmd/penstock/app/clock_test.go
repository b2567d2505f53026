package app

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"time"
)

// setClock is a clock with a time of day and an elapsed time that a test sets.
type setClock struct {
	began          time.Time
	shift, elapsed atomic.Int64
}

func (s *setClock) now() time.Time {
	return s.began.Add(time.Duration(s.elapsed.Load() + s.shift.Load()))
}

func (s *setClock) passed() time.Duration { return time.Duration(s.elapsed.Load()) }

func TestClockIsNotTrustedForADayAfterAJump(t *testing.T) {
	const hour, day = time.Hour, 24 * time.Hour
	type step struct {
		elapses, jumps time.Duration
		trusted        bool
	}
	for name, steps := range map[string][]step{
		"no jump":                            {{hour, 0, true}, {40 * day, 0, true}},
		"half an hour forward and back":      {{hour, hour / 2, true}, {0, -hour / 2, true}},
		"half an hour each day":              {{day, hour / 2, true}, {day, hour / 2, true}, {day, hour / 2, true}},
		"40 days, and back after a minute":   {{hour, 40 * day, false}, {time.Minute, -40 * day, true}},
		"5 hours back":                       {{hour, -5 * hour, false}, {12 * hour, 0, false}},
		"40 days, for a day":                 {{hour, 40 * day, false}, {23 * hour, 0, false}, {hour, 0, true}, {hour, 0, true}},
		"a second jump restarts the day":     {{hour, 40 * day, false}, {23 * hour, 5 * hour, false}, {hour, 0, false}, {23 * hour, 0, true}},
		"56 years, a second after the start": {{time.Second, 56 * 365 * day, false}, {day, 0, true}},
	} {
		t.Run(name, func(t *testing.T) {
			source := &setClock{began: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}
			c := newClock(source.now, source.passed, slog.New(slog.DiscardHandler))
			for n, s := range steps {
				source.elapsed.Add(int64(s.elapses))
				source.shift.Add(int64(s.jumps))
				if trusted := !c.hasJumped(); trusted != s.trusted {
					t.Errorf("step %d: trusted = %v, want %v", n+1, trusted, s.trusted)
				}
			}
		})
	}
}
