package app

import (
	"testing"
	"time"

	"github.com/penstock/penstock/ingest/intake"
)

func TestBacklogIsBehindUntilItStaysSmall(t *testing.T) {
	now := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	var s intake.Status
	b := &backlog{status: func() intake.Status { return s }, now: func() time.Time { return now }, isBehind: true}
	for _, step := range []struct {
		name       string
		seconds    int
		status     intake.Status
		wantBehind bool
	}{
		{"at the start", 0, intake.Status{Lag: 6000}, true},
		{"just below the lower limit", 1, intake.Status{Lag: 4000}, true},
		{"below the lower limit for five seconds", 5, intake.Status{Lag: 4000}, false},
		{"below the upper limit", 1, intake.Status{Lag: 19_000}, false},
		{"above the upper limit", 1, intake.Status{Lag: 21_000}, true},
		{"between the limits", 60, intake.Status{Lag: 6000}, true},
		{"an empty journal", 1, intake.Status{}, true},
		{"an empty journal for six seconds", 6, intake.Status{}, false},
		{"a back end is down", 1, intake.Status{Outage: "down"}, true},
		{"the back end is back", 1, intake.Status{}, true},
		{"six seconds later", 6, intake.Status{}, false},
	} {
		now, s = now.Add(time.Duration(step.seconds)*time.Second), step.status
		if got := b.Behind(); got != step.wantBehind {
			t.Errorf("%s: behind = %v, want %v", step.name, got, step.wantBehind)
		}
	}
}
