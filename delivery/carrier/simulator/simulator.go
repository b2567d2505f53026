// Package simulator is a carrier for tests and trials: it accepts messages and reports about
// them as a network does. The reports are written to the journal, as all receipts are, before
// the message is accepted, so that a crash loses no report.
//
// The last four digits of the number select the outcome (docs/simulators.md):
// 9001 is rejected, 9002 buffered and then delivered, 9003 never reported, 9004
// fails downstream. All others are delivered.
package simulator

import (
	"context"
	"strings"

	"github.com/penstock/penstock/delivery/carrier"
)

// Report appends a receipt for a submission to the journal. Receipts keep the order of the calls.
// The receipt is on disk when the returned function has returned nil.
// The states are states of SMPP receipts: ENROUTE, DELIVRD, UNDELIV.
type Report func(ctx context.Context, id, state string) (wait func(context.Context) error, err error)

// Simulator is a simulated carrier. The receipts of a repeated part have the same id.
type Simulator struct{ report Report }

// New returns a simulator.
func New(report Report) *Simulator { return &Simulator{report: report} }

// Ready always returns true.
func (*Simulator) Ready() bool { return true }

// Submit accepts a message, unless its number selects another outcome. See carrier.Carrier.
func (s *Simulator) Submit(ctx context.Context, m carrier.Submission, done func(carrier.Result)) {
	states, rejected := statesFor(m.To)
	if rejected {
		done(carrier.Result{Verdict: carrier.Rejected, Reason: "simulated: numbers that end in 9001 are rejected"})
		return
	}
	waits := make([]func(context.Context) error, 0, len(states))
	for _, state := range states {
		wait, err := s.report(ctx, m.ID, state)
		if err != nil {
			done(reportFailure(err))
			return
		}
		waits = append(waits, wait)
	}
	go func() {
		for _, wait := range waits {
			if err := wait(ctx); err != nil {
				done(reportFailure(err))
				return
			}
		}
		done(carrier.Result{Verdict: carrier.Accepted, ID: m.ID})
	}()
}

func reportFailure(err error) carrier.Result {
	return carrier.Result{Verdict: carrier.RetryLater, PauseQueue: true, Reason: "simulator: cannot write the report to the journal", Cause: "simulator: cannot write the report to the journal: " + err.Error()}
}

func statesFor(number string) (states []string, rejected bool) {
	switch {
	case strings.HasSuffix(number, "9001"):
		return nil, true
	case strings.HasSuffix(number, "9002"):
		return []string{"ENROUTE", "DELIVRD"}, false
	case strings.HasSuffix(number, "9003"):
		return nil, false
	case strings.HasSuffix(number, "9004"):
		return []string{"UNDELIV"}, false
	}
	return []string{"DELIVRD"}, false
}
