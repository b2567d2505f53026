package delivery

import (
	"testing"
	"time"
)

func TestRetryAfterIsReadInBothForms(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"0": 0, "120": 2 * time.Minute, " 120\t": 2 * time.Minute, "86400": 24 * time.Hour, "86401": 24 * time.Hour, "99999999999999999999": 24 * time.Hour,
		"Sun, 01 Mar 2026 12:05:00 GMT": 5 * time.Minute, "Sunday, 01-Mar-26 12:05:00 GMT": 5 * time.Minute, "Sun Mar  1 12:05:00 2026": 5 * time.Minute,
		"Sun, 01 Mar 2026 11:00:00 GMT": 0, "Sun, 01 Mar 2099 12:00:00 GMT": 24 * time.Hour,
	} {
		if got, ok := ParseRetryAfter(value, noon); !ok || got != want {
			t.Errorf("%q: got %s %v, want %s", value, got, ok, want)
		}
	}
	for _, value := range []string{"", "-1", "+5", "1.5", "soon", "1 2", "Sun, 41 Mar 2026 12:05:00 GMT"} {
		if got, ok := ParseRetryAfter(value, noon); ok || got != 0 {
			t.Errorf("%q: got %s %v", value, got, ok)
		}
	}
}

func FuzzParseRetryAfter(f *testing.F) {
	for _, value := range []string{"120", "Sun, 01 Mar 2026 12:05:00 GMT", "-1", "99999999999999999999"} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		wait, ok := ParseRetryAfter(value, noon)
		if wait < 0 || wait > MaxRetryAfter || !ok && wait != 0 {
			t.Errorf("%q: %s %v", value, wait, ok)
		}
	})
}
