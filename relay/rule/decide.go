package rule

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/outbox"
)

// pendingDecision collects what one transaction decides.
type pendingDecision struct {
	decision Decision
	fired    []firing
	repeated int
	faults   []fault
}

// fault is an expression of a rule that failed.
type fault struct {
	ruleID string
	err    error
}

// record adds a verdict; of makes the occurrence if there is one.
func (d *pendingDecision) record(p *Program, st *PairState, v verdict, of func() Occurrence) {
	if v.State == "" {
		return
	}
	o := of()
	o.State, o.AlarmID, o.Repeats = v.State, st.AlarmID, st.Repeats
	switch {
	case v.State == Cleared:
		if p.Rule.On == OnSilent {
			d.decision.Watch = append(d.decision.Watch, st.DeviceID)
		}
		o.AlarmID = v.ended.AlarmID
		d.decision.Cleared = append(d.decision.Cleared, cleared(&v.ended, o.Time, o.Record))
	case v.Repeat:
		d.repeated++
	default:
		d.decision.Raised = append(d.decision.Raised, o.alarm(st))
	}
	d.fired = append(d.fired, firing{p, o})
}

// deliver makes the deliveries of all that fired. An action whose body cannot be made
// is a fault of its rule and stops nothing else.
func (d *pendingDecision) deliver(acct account.ID, settings Settings) {
	for _, f := range d.fired {
		ds, err := f.program.actions.deliveries([]Occurrence{f.Occurrence}, acct, settings)
		if err != nil {
			d.faults = append(d.faults, fault{f.program.Rule.ID, err})
		}
		d.decision.Deliveries = append(d.decision.Deliveries, ds...)
	}
}

// decideLocked evaluates pairs of a rule and a device while they are locked, and saves what
// is decided in one transaction; then deliveries are dispatched. begin and evaluate may
// be called more than once, each time with an empty pendingDecision; either may be nil.
func (s *Service) decideLocked(ctx context.Context, acct account.ID, pairs []Pair, begin func(*pendingDecision), evaluate func(*pendingDecision, *PairState)) error {
	var d *pendingDecision
	created, err := s.deps.Store.Decide(ctx, acct, pairs, s.until(), func(locked []PairState) (Decision, error) {
		d = &pendingDecision{}
		if begin != nil {
			begin(d)
		}
		for i := range locked {
			was := locked[i]
			if evaluate(d, &locked[i]); locked[i] != was {
				d.decision.States = append(d.decision.States, locked[i])
			}
		}
		d.deliver(acct, s.o.Settings)
		return d.decision, nil
	})
	if err != nil {
		return fmt.Errorf("decide: %w", err)
	}
	s.conclude(acct, d, created)
	return nil
}

// conclude counts what was decided and dispatches the deliveries.
func (s *Service) conclude(acct account.ID, d *pendingDecision, created []outbox.Delivery) {
	if d != nil {
		for _, f := range d.faults {
			s.failed.add(acct, f.ruleID, f.err, s.o.Now())
		}
		s.counted.add(d)
	}
	s.dispatch(created)
}

func (s *Service) dispatch(created []outbox.Delivery) {
	if len(created) > 0 {
		s.deps.Dispatcher.Dispatch(slices.Clone(created))
	}
}

// until is the end of a new delivery's lease.
func (s *Service) until() time.Time { return s.o.Now().Add(s.o.Lease) }
