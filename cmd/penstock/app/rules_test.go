package app

import (
	"testing"
	"time"

	"github.com/penstock/penstock/ingest/intake"
)

func TestBacklog(t *testing.T) {
	now := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	var s intake.Status
	b := &backlog{status: func() intake.Status { return s }, now: func() time.Time { return now }, isBehind: true}
	for _, step := range []struct {
		name    string
		seconds int
		status  intake.Status
		behind  bool
	}{
		{"at the start", 0, intake.Status{Lag: 6000}, true},
		{"just caught up", 1, intake.Status{Lag: 4000}, true},
		{"for some seconds", 5, intake.Status{Lag: 4000}, false},
		{"load", 1, intake.Status{Lag: 19_000}, false},
		{"too much load", 1, intake.Status{Lag: 21_000}, true},
		{"less, not caught up", 60, intake.Status{Lag: 6000}, true},
		{"nothing left", 1, intake.Status{}, true},
		{"for some seconds again", 6, intake.Status{}, false},
		{"a back end is down", 1, intake.Status{Waiting: "down"}, true},
		{"it is back", 1, intake.Status{}, true},
		{"and caught up", 6, intake.Status{}, false},
	} {
		now, s = now.Add(time.Duration(step.seconds)*time.Second), step.status
		if got := b.Behind(); got != step.behind {
			t.Errorf("%s: behind %v", step.name, got)
		}
	}
}
