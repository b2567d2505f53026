package relaytest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// recorder is a testing.TB that records failures.
type recorder struct {
	testing.TB
	errors []string
	fatal  bool
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatal(...any) { r.fatal = true }

type record struct {
	Name      string
	createdAt time.Time
	tags      []string
}

func TestEqualShowsTheDifference(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	want := record{"a", noon, []string{"x"}}
	for name, tc := range map[string]struct {
		got  record
		diff string // part of the difference; empty if the values are equal
	}{
		"equal records":            {record{"a", noon.In(time.FixedZone("CET", 3600)), []string{"x"}}, ""},
		"another exported field":   {record{"b", noon, []string{"x"}}, `"b"`},
		"another unexported field": {record{"a", noon, []string{"x", "y"}}, `"y"`},
		"another time":             {record{"a", noon.Add(time.Second), []string{"x"}}, "12:00:01"},
		"a nil list":               {record{"a", noon, nil}, "tags"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &recorder{TB: t}
			Equal(r, "the record", tc.got, want)
			got := strings.Join(r.errors, "\n")
			if tc.diff == "" && got != "" {
				t.Errorf("difference = %s, want none", got)
			}
			if tc.diff != "" && (!strings.Contains(got, "the record differs (-want +got)") || !strings.Contains(got, tc.diff)) {
				t.Errorf("difference = %q, want %q", got, tc.diff)
			}
		})
	}
}

func TestErrorsEndTheTest(t *testing.T) {
	broken := errors.New("broken")
	for name, tc := range map[string]struct {
		run   func(testing.TB)
		fatal bool
	}{
		"no errors":                {func(t testing.TB) { NoError(t, nil, nil) }, false},
		"one error of two":         {func(t testing.TB) { NoError(t, nil, broken) }, true},
		"a value without an error": {func(t testing.TB) { Must(1, nil)(t) }, false},
		"a value with an error":    {func(t testing.TB) { Must(0, broken)(t) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := &recorder{TB: t}
			tc.run(r)
			if r.fatal != tc.fatal {
				t.Errorf("test ended = %t, want %t", r.fatal, tc.fatal)
			}
		})
	}
}

func TestEventuallyWaits(t *testing.T) {
	calls := 0
	Eventually(t, "the third call", func() (any, bool) { calls++; return calls, calls == 3 })
	if calls != 3 {
		t.Errorf("calls = %d, want 3", calls)
	}
}

func TestClockAdvances(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	c := NewClock(start)
	Equal(t, "the first time", c.Now(), start)
	Equal(t, "the time that Advance returns", c.Advance(time.Minute), start.Add(time.Minute))
	Equal(t, "the time afterwards", c.Now(), start.Add(time.Minute))
}
