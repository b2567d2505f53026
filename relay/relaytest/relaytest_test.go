package relaytest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// recorder is a test that records what it is failed with.
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
	Name string
	at   time.Time
	tags []string
}

func TestEqualShowsTheDifference(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	want := record{"a", noon, []string{"x"}}
	for name, tc := range map[string]struct {
		got    record
		differ string // part of the difference; empty: none
	}{
		"the same":                      {record{"a", noon.In(time.FixedZone("CET", 3600)), []string{"x"}}, ""},
		"another exported field":        {record{"b", noon, []string{"x"}}, `"b"`},
		"another unexported field":      {record{"a", noon, []string{"x", "y"}}, `"y"`},
		"another time":                  {record{"a", noon.Add(time.Second), []string{"x"}}, "12:00:01"},
		"an empty list instead of none": {record{"a", noon, nil}, "tags"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &recorder{TB: t}
			Equal(r, "the record", tc.got, want)
			got := strings.Join(r.errors, "\n")
			if tc.differ == "" && got != "" {
				t.Errorf("unexpected difference: %s", got)
			}
			if tc.differ != "" && (!strings.Contains(got, "the record differs (-want +got)") || !strings.Contains(got, tc.differ)) {
				t.Errorf("the difference %q lacks %q", got, tc.differ)
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
		"no errors":           {func(t testing.TB) { NoError(t, nil, nil) }, false},
		"one of several":      {func(t testing.TB) { NoError(t, nil, broken) }, true},
		"a value":             {func(t testing.TB) { Must(1, nil)(t) }, false},
		"an error, not value": {func(t testing.TB) { Must(0, broken)(t) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := &recorder{TB: t}
			tc.run(r)
			if r.fatal != tc.fatal {
				t.Errorf("the test was ended: %t, want %t", r.fatal, tc.fatal)
			}
		})
	}
}

func TestEventuallyWaits(t *testing.T) {
	calls := 0
	Eventually(t, "the third call", func() (any, bool) { calls++; return calls, calls == 3 })
	if calls != 3 {
		t.Errorf("%d calls, want 3", calls)
	}
}

func TestClockStandsStill(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	c := NewClock(start)
	Equal(t, "the first time", c.Now(), start)
	Equal(t, "the time that Advance returns", c.Advance(time.Minute), start.Add(time.Minute))
	Equal(t, "the time afterwards", c.Now(), start.Add(time.Minute))
}
