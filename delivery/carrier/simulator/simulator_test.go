package simulator

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/penstock/penstock/delivery/carrier"
)

var _ carrier.Carrier = (*Simulator)(nil)

func TestTheLastDigitsChooseWhatHappens(t *testing.T) {
	full := errors.New("disk full")
	for name, tc := range map[string]struct {
		to            string
		place, onDisk error
		verdict       carrier.Verdict
		reports       string
	}{
		"any number is delivered":          {"447700900123", nil, nil, carrier.Accepted, "DELIVRD"},
		"9001 is rejected":                 {"447700909001", nil, nil, carrier.Rejected, ""},
		"9002 is buffered, then delivered": {"447700909002", nil, nil, carrier.Accepted, "ENROUTE DELIVRD"},
		"9003 is never reported":           {"447700909003", nil, nil, carrier.Accepted, ""},
		"9004 fails downstream":            {"447700909004", nil, nil, carrier.Accepted, "UNDELIV"},
		"a report that has no place":       {"447700900123", full, nil, carrier.Later, "DELIVRD"},
		"a report that is not on disk":     {"447700900123", nil, full, carrier.Later, "DELIVRD"},
	} {
		t.Run(name, func(t *testing.T) {
			var reports []string
			s := New(func(_ context.Context, id, state string) (func(context.Context) error, error) {
				if id != "1-2-0" {
					t.Errorf("a report about %q", id)
				}
				reports = append(reports, state)
				return func(context.Context) error { return tc.onDisk }, tc.place
			})
			done := make(chan carrier.Outcome, 1)
			s.Submit(t.Context(), carrier.Submission{ID: "1-2-0", To: tc.to}, func(o carrier.Outcome) { done <- o })
			if out := <-done; out.Verdict != tc.verdict || !s.Ready() {
				t.Errorf("outcome %+v", out)
			}
			if got := strings.Join(reports, " "); got != tc.reports {
				t.Errorf("reports %q, want %q", got, tc.reports)
			}
		})
	}
}
