package job

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"
)

func TestStateOfAnOutcome(t *testing.T) {
	for _, tc := range []struct {
		name    string
		outcome Outcome
		want    State
		ended   bool
	}{
		{"result", Outcome{Result: []byte(`1`)}, Completed, true},
		{"no result", Outcome{}, Completed, true},
		{"error", Outcome{Error: "no"}, Failed, true},
		{"error with a retry", Outcome{Error: "redis is down", RetryAt: time.Unix(1, 0)}, Processing, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.outcome.State(); got != tc.want || got.Ended() != tc.ended {
				t.Errorf("state = %s, ended %v; want %s, %v", got, got.Ended(), tc.want, tc.ended)
			}
		})
	}
	if Processing.Ended() || len(States()) != 4 {
		t.Errorf("Processing.Ended() = %v with %d states, want false and 4", Processing.Ended(), len(States()))
	}
}

func TestReasonIsThatOfAFailure(t *testing.T) {
	if reason, ok := Reason(fmt.Errorf("run: %w", Fail("The SIM is terminated."))); !ok || reason != "The SIM is terminated." {
		t.Errorf("reason = %q, %v; want that of the failure", reason, ok)
	}
	for _, err := range []error{nil, io.EOF, errors.New("x"), Pause(time.Second)} {
		if _, ok := Reason(err); ok {
			t.Errorf("Reason(%v) reports a failure", err)
		}
	}
}
