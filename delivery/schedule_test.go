package delivery

import (
	"testing"
	"time"
)

func TestDelaysFollowTheScheduleWithJitter(t *testing.T) {
	s := Schedule{10 * time.Second, time.Minute}
	for name, c := range map[string]struct {
		tries      int
		retryAfter time.Duration
		random     float64
		want       time.Duration
		ok         bool
	}{
		"shortest first delay":              {1, 0, 0, 8 * time.Second, true},
		"average first delay":               {1, 0, 0.5, 10 * time.Second, true},
		"second delay near its maximum":     {2, 0, 0.999, 71976 * time.Millisecond, true},
		"no delay left":                     {3, 0, 0.5, 0, false},
		"no delay left despite Retry-After": {3, time.Hour, 0.5, 0, false},
		"Retry-After above the delay":       {1, time.Minute, 0.5, time.Minute, true},
		"Retry-After below the delay":       {2, time.Second, 0.5, time.Minute, true},
		"zero tries give the first delay":   {0, 0, 0.5, 10 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := s.Next(c.tries, c.retryAfter, c.random)
			if got.Round(time.Millisecond) != c.want || ok != c.ok {
				t.Errorf("got %s %v, want %s %v", got, ok, c.want, c.ok)
			}
		})
	}
	if _, ok := (Schedule)(nil).Next(1, 0, 0); ok {
		t.Error("an empty schedule allowed a second attempt")
	}
}

func TestTheDefaultScheduleTakesAlmostTwoDays(t *testing.T) {
	if got, want := DefaultSchedule().Length(), 46*time.Hour+42*time.Minute+35*time.Second; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestParseRetryAfterReadsBothForms(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"0": 0, "120": 2 * time.Minute, " 120\t": 2 * time.Minute, "86400": 24 * time.Hour, "86401": 24 * time.Hour, "99999999999999999999": 24 * time.Hour,
		"Sun, 01 Mar 2026 12:05:00 GMT": 5 * time.Minute, "Sunday, 01-Mar-26 12:05:00 GMT": 5 * time.Minute, "Sun Mar  1 12:05:00 2026": 5 * time.Minute,
		"Sun, 01 Mar 2026 11:00:00 GMT": 0, "Sun, 01 Mar 2099 12:00:00 GMT": 24 * time.Hour,
		"": 0, "-1": 0, "+5": 0, "1.5": 0, "soon": 0, "1 2": 0, "Sun, 41 Mar 2026 12:05:00 GMT": 0, // in neither form
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
