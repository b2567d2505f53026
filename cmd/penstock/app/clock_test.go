package app

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"time"
)

// setClock is a clock whose time of day and elapsed time a test sets.
type setClock struct {
	began          time.Time
	shift, elapsed atomic.Int64
}

func (s *setClock) now() time.Time {
	return s.began.Add(time.Duration(s.elapsed.Load() + s.shift.Load()))
}

func (s *setClock) passed() time.Duration { return time.Duration(s.elapsed.Load()) }

func TestAClockThatJumpsIsNotReliedOn(t *testing.T) {
	const hour, day = time.Hour, 24 * time.Hour
	type step struct {
		passes, jumps time.Duration
		relied        bool
	}
	for name, steps := range map[string][]step{
		"a clock that goes on":                       {{hour, 0, true}, {40 * day, 0, true}},
		"half an hour":                               {{hour, hour / 2, true}, {0, -hour / 2, true}},
		"a drift":                                    {{day, hour / 2, true}, {day, hour / 2, true}, {day, hour / 2, true}},
		"40 days, and back a minute later":           {{hour, 40 * day, false}, {time.Minute, -40 * day, true}},
		"5 hours back":                               {{hour, -5 * hour, false}, {12 * hour, 0, false}},
		"40 days, for a day":                         {{hour, 40 * day, false}, {23 * hour, 0, false}, {hour, 0, true}, {hour, 0, true}},
		"two jumps: the day begins with the second":  {{hour, 40 * day, false}, {23 * hour, 5 * hour, false}, {hour, 0, false}, {23 * hour, 0, true}},
		"a clock that is set right after it started": {{time.Second, 56 * 365 * day, false}, {day, 0, true}},
	} {
		t.Run(name, func(t *testing.T) {
			set := &setClock{began: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}
			c := newClock(set.now, set.passed, slog.New(slog.DiscardHandler))
			for n, s := range steps {
				set.elapsed.Add(int64(s.passes))
				set.shift.Add(int64(s.jumps))
				if relied := !c.jumps(); relied != s.relied {
					t.Errorf("step %d: relied on: %v, want %v", n+1, relied, s.relied)
				}
			}
		})
	}
}
