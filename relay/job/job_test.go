package job

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"
)

func TestOutcomesLeadToStates(t *testing.T) {
	for _, tc := range []struct {
		name  string
		o     Outcome
		want  State
		ended bool
	}{
		{"a result completes", Outcome{Result: []byte(`1`)}, Completed, true},
		{"nothing at all completes", Outcome{}, Completed, true},
		{"a reason fails", Outcome{Error: "no"}, Failed, true},
		{"another try goes on", Outcome{Error: "redis is down", RetryAt: time.Unix(1, 0)}, Processing, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.o.State(); got != tc.want || got.Ended() != tc.ended {
				t.Errorf("%s, ended %v", got, got.Ended())
			}
		})
	}
	if Processing.Ended() || len(States()) != 4 {
		t.Error("states")
	}
}

func TestOnlyAFailureEndsAJob(t *testing.T) {
	if reason, ok := Reason(fmt.Errorf("run: %w", Fail("The SIM is terminated."))); !ok || reason != "The SIM is terminated." {
		t.Errorf("%q, %v", reason, ok)
	}
	for _, err := range []error{nil, io.EOF, errors.New("x"), Pause(time.Second)} {
		if _, ok := Reason(err); ok {
			t.Errorf("%v ends a job", err)
		}
	}
}
