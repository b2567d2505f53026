// Package simulator is the carrier for those who have none yet: it takes every
// message and reports like a network. What it reports goes the way of every
// receipt, through the journal, before the message counts as taken, so that no
// report is lost with the process.
//
// The last four digits of the number choose what happens (docs/simulators.md):
// 9001 is rejected, 9002 buffered and then delivered, 9003 never reported, 9004
// fails downstream. All others are delivered.
package simulator

import (
	"context"
	"strings"

	"github.com/penstock/penstock/delivery/carrier"
)

// Report gives a report about a submission its place in the journal, in the
// order of the calls. It is on disk when the function it returns has returned
// nil. The states are those of SMPP's receipts: ENROUTE, DELIVRD, UNDELIV.
type Report func(ctx context.Context, id, state string) (wait func(context.Context) error, err error)

// Simulator is a carrier. It knows a message that it gets twice.
type Simulator struct{ report Report }

// New returns a simulator.
func New(report Report) *Simulator { return &Simulator{report: report} }

// Ready is always true.
func (*Simulator) Ready() bool { return true }

// Submit takes a message, unless its number says otherwise. See carrier.Carrier.
func (s *Simulator) Submit(ctx context.Context, m carrier.Submission, done func(carrier.Outcome)) {
	states, rejected := fate(m.To)
	if rejected {
		done(carrier.Outcome{Verdict: carrier.Rejected, Reason: "simulated: numbers that end in 9001 are rejected"})
		return
	}
	waits := make([]func(context.Context) error, 0, len(states))
	for _, state := range states {
		wait, err := s.report(ctx, m.ID, state)
		if err != nil {
			done(later(err))
			return
		}
		waits = append(waits, wait)
	}
	go func() {
		for _, wait := range waits {
			if err := wait(ctx); err != nil {
				done(later(err))
				return
			}
		}
		done(carrier.Outcome{Verdict: carrier.Accepted, ID: m.ID})
	}()
}

func later(err error) carrier.Outcome {
	return carrier.Outcome{Verdict: carrier.Later, Throttled: true, Reason: "simulator: the report was not written down: " + err.Error()}
}

// fate is what becomes of a message for a number.
func fate(to string) (states []string, rejected bool) {
	switch {
	case strings.HasSuffix(to, "9001"):
		return nil, true
	case strings.HasSuffix(to, "9002"):
		return []string{"ENROUTE", "DELIVRD"}, false
	case strings.HasSuffix(to, "9003"):
		return nil, false
	case strings.HasSuffix(to, "9004"):
		return []string{"UNDELIV"}, false
	}
	return []string{"DELIVRD"}, false
}
