package delivery

import (
	"testing"
	"time"
)

func TestTheWaitsFollowTheScheduleWithJitter(t *testing.T) {
	s := Schedule{10 * time.Second, time.Minute}
	for name, c := range map[string]struct {
		tries      int
		retryAfter time.Duration
		random     float64
		want       time.Duration
		more       bool
	}{
		"the first at its shortest":          {1, 0, 0, 8 * time.Second, true},
		"the first in the middle":            {1, 0, 0.5, 10 * time.Second, true},
		"the second nearly at its longest":   {2, 0, 0.999, 71976 * time.Millisecond, true},
		"none is left":                       {3, 0, 0.5, 0, false},
		"none is left, whatever was asked":   {3, time.Hour, 0.5, 0, false},
		"Retry-After lengthens":              {1, time.Minute, 0.5, time.Minute, true},
		"Retry-After does not shorten":       {2, time.Second, 0.5, time.Minute, true},
		"before any attempt counts as first": {0, 0, 0.5, 10 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, more := s.Next(c.tries, c.retryAfter, c.random)
			if got.Round(time.Millisecond) != c.want || more != c.more {
				t.Errorf("got %s %v, want %s %v", got, more, c.want, c.more)
			}
		})
	}
	if _, more := (Schedule)(nil).Next(1, 0, 0); more {
		t.Error("an empty schedule allows a second attempt")
	}
}

func TestTheDefaultScheduleTakesTwoDays(t *testing.T) {
	if got, want := DefaultSchedule().Length(), 46*time.Hour+42*time.Minute+35*time.Second; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestRetryAfterIsReadInBothForms(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"0": 0, "120": 2 * time.Minute, " 120\t": 2 * time.Minute, "86400": 24 * time.Hour, "86401": 24 * time.Hour, "99999999999999999999": 24 * time.Hour,
		"Sun, 01 Mar 2026 12:05:00 GMT": 5 * time.Minute, "Sunday, 01-Mar-26 12:05:00 GMT": 5 * time.Minute, "Sun Mar  1 12:05:00 2026": 5 * time.Minute,
		"Sun, 01 Mar 2026 11:00:00 GMT": 0, "Sun, 01 Mar 2099 12:00:00 GMT": 24 * time.Hour,
		"": 0, "-1": 0, "+5": 0, "1.5": 0, "soon": 0, "1 2": 0, "Sun, 41 Mar 2026 12:05:00 GMT": 0, // neither form
	} {
		if got := ParseRetryAfter(value, noon); got != want {
			t.Errorf("%q: got %s, want %s", value, got, want)
		}
	}
}

func FuzzParseRetryAfter(f *testing.F) {
	for _, value := range []string{"120", "Sun, 01 Mar 2026 12:05:00 GMT", "-1", "99999999999999999999"} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		if wait := ParseRetryAfter(value, noon); wait < 0 || wait > MaxRetryAfter {
			t.Errorf("%q: got %s", value, wait)
		}
	})
}
