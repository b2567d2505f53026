package simulator

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/penstock/penstock/delivery/carrier"
	"github.com/penstock/penstock/relay/relaytest"
)

var _ carrier.Carrier = (*Simulator)(nil)

func TestTheLastDigitsOfTheNumberSelectTheOutcome(t *testing.T) {
	errFull := errors.New("disk full")
	for name, tc := range map[string]struct {
		number              string
		enqueueErr, diskErr error
		verdict             carrier.Verdict
		reports             string
	}{
		"any number is delivered":          {"447700900123", nil, nil, carrier.Accepted, "DELIVRD"},
		"9001 is rejected":                 {"447700909001", nil, nil, carrier.Rejected, ""},
		"9002 is buffered, then delivered": {"447700909002", nil, nil, carrier.Accepted, "ENROUTE DELIVRD"},
		"9003 is never reported":           {"447700909003", nil, nil, carrier.Accepted, ""},
		"9004 fails downstream":            {"447700909004", nil, nil, carrier.Accepted, "UNDELIV"},
		"a report that is not enqueued":    {"447700900123", errFull, nil, carrier.RetryLater, "DELIVRD"},
		"a report that is not on disk":     {"447700900123", nil, errFull, carrier.RetryLater, "DELIVRD"},
	} {
		t.Run(name, func(t *testing.T) {
			var reports []string
			s := New(func(_ context.Context, id, state string) (func(context.Context) error, error) {
				if id != "1-2-0" {
					t.Errorf("report for the submission %q, want 1-2-0", id)
				}
				reports = append(reports, state)
				return func(context.Context) error { return tc.diskErr }, tc.enqueueErr
			})
			done := make(chan carrier.Result, 1)
			s.Submit(t.Context(), carrier.Submission{ID: "1-2-0", To: tc.number}, func(o carrier.Result) { done <- o })
			relaytest.Equal(t, "the verdict", (<-done).Verdict, tc.verdict)
			relaytest.Equal(t, "the simulator is ready", s.Ready(), true)
			relaytest.Equal(t, "the reports", strings.Join(reports, " "), tc.reports)
		})
	}
}
