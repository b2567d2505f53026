package delivery

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTheDefaultScheduleIsTheDocumentedOne(t *testing.T) {
	s, err := ParseSchedule("5s,30s,2m,10m,30m,1h,3h,6h,12h,24h")
	if err != nil || !slices.Equal(s, DefaultSchedule()) || s.Attempts() != 11 {
		t.Errorf("got %v (%d attempts), %v", s, s.Attempts(), err)
	}
}

func TestAScheduleIsRefusedWithTheEntryNamed(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "has no entry",
		" ":                           "has no entry",
		"5s,,2m":                      `entry 2 "" is not a duration`,
		"5s,5":                        `entry 2 "5" is not a duration`,
		"soon":                        `entry 1 "soon" is not a duration`,
		"5s,-1s":                      `entry 2 "-1s" is not between`,
		"0s":                          `entry 1 "0s" is not between`,
		"5s,721h":                     `entry 2 "721h" is not between`,
		strings.Repeat("1s,", 100):    "has 101 entries",
		"99999999999999999999999999h": "entry 1",
	} {
		if _, err := ParseSchedule(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

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

func FuzzParseSchedule(f *testing.F) {
	f.Add("5s,30s,2m,10m,30m,1h,3h,6h,12h,24h")
	f.Add(" 1h2m , 3ms")
	f.Add("1e9h,-0s")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSchedule(text)
		if err != nil {
			return
		}
		again, err := ParseSchedule(s.String())
		if err != nil || !slices.Equal(again, s) {
			t.Errorf("%q: %v became %v, %v", text, s, again, err)
		}
	})
}

func TestTheDefaultScheduleTakesTwoDays(t *testing.T) {
	if got, want := DefaultSchedule().Length(), 46*time.Hour+42*time.Minute+35*time.Second; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
