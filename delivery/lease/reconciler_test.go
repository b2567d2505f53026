package lease

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"
)

func TestAReconcilerRemembersWhatItScheduledWhileThatIsDue(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	var due []string
	var fail error
	last := make(map[string]time.Time) // as Schedule was told
	r := Reconciler[string]{
		Due: func(context.Context, time.Time, int) ([]string, error) { return due, fail }, Limit: 10,
		Schedule: func(_ context.Context, ref string, at time.Time) time.Time {
			if last[ref] = at; ref == "forgotten" {
				return time.Time{}
			}
			return now
		},
		Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler),
	}
	for _, pass := range []struct {
		name  string
		due   []string
		fail  error
		again bool // a was scheduled before
	}{
		{"for the first time", []string{"a", "forgotten"}, nil, false},
		{"still due", []string{"a", "forgotten"}, nil, true},
		{"due, with a store that is down", nil, errors.New("down"), true},
		{"still due after that", []string{"a"}, nil, true},
		{"not due", []string{"b"}, nil, true},
		{"due again", []string{"a"}, nil, false},
	} {
		due, fail = pass.due, pass.fail
		if n := r.Pass(t.Context()); n != len(due) {
			t.Errorf("%s: %d due", pass.name, n)
		}
		if again := !last["a"].IsZero(); again != pass.again || !last["forgotten"].IsZero() {
			t.Errorf("%s: scheduled before: %v, want %v; forgotten: %v", pass.name, again, pass.again, last["forgotten"])
		}
	}
}
