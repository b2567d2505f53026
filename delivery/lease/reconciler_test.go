package lease

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"
)

func TestScheduleGetsTheTimeOfThePreviousPassWhileARecordIsDue(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	var due []string
	var err error
	scheduledAt := make(map[string]time.Time) // the last argument of Schedule, by record
	r := Reconciler[string]{
		Due: func(context.Context, time.Time, int) ([]string, error) { return due, err }, Limit: 10,
		Schedule: func(_ context.Context, ref string, previous time.Time) time.Time {
			if scheduledAt[ref] = previous; ref == "forgotten" {
				return time.Time{}
			}
			return now
		},
		Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler),
	}
	for _, pass := range []struct {
		name      string
		due       []string
		err       error
		scheduled bool // the record a was scheduled in the previous pass
	}{
		{"both due for the first time", []string{"a", "forgotten"}, nil, false},
		{"both still due", []string{"a", "forgotten"}, nil, true},
		{"store down", nil, errors.New("down"), true},
		{"a still due after the store is up", []string{"a"}, nil, true},
		{"a not due", []string{"b"}, nil, true},
		{"a due again", []string{"a"}, nil, false},
	} {
		due, err = pass.due, pass.err
		if n := r.Pass(t.Context()); n != len(due) {
			t.Errorf("%s: Pass returned %d, want %d", pass.name, n, len(due))
		}
		if scheduled := !scheduledAt["a"].IsZero(); scheduled != pass.scheduled || !scheduledAt["forgotten"].IsZero() {
			t.Errorf("%s: scheduled in the previous pass: %v, want %v; forgotten: %v, want the zero time", pass.name, scheduled, pass.scheduled, scheduledAt["forgotten"])
		}
	}
}
