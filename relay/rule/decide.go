package rule

import (
	"context"
	"fmt"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/outbox"
)

// pendingDecision collects what one transaction decides.
type pendingDecision struct {
	decision Decision
	fired    []firing
	repeated int
	omitted  int // actions beyond the budget
	faults   []fault
}

// fault is an expression of a rule that failed, or an action beyond the budget.
type fault struct {
	ruleID string
	err    error
}

// record adds a verdict; of makes the occurrence if there is one.
func (d *pendingDecision) record(p *Program, st *PairState, v verdict, programsFor func() Occurrence) {
	if v.State == "" {
		return
	}
	o, raisedAt := programsFor(), st.RaisedAt
	o.State, o.AlarmID, o.Repeats = v.State, st.AlarmID, st.Repeats
	switch {
	case v.State == Cleared:
		if p.Rule.On == OnSilent {
			d.decision.Watch = append(d.decision.Watch, st.DeviceID)
		}
		o.AlarmID, raisedAt = v.ended.AlarmID, v.ended.RaisedAt
		d.decision.Cleared = append(d.decision.Cleared, cleared(&v.ended, o.Time, o.Record))
	case v.Repeat:
		d.repeated++
	default:
		d.decision.Raised = append(d.decision.Raised, o.alarm(st))
	}
	d.fired = append(d.fired, firing{p, o, raisedAt})
}

// deliver makes the deliveries of all that fired, unless they are muted.
func (d *pendingDecision) deliver(b *budget) {
	for _, f := range d.fired {
		if !b.s.muted(b.acct, &f) {
			d.decision.Deliveries = append(d.decision.Deliveries, d.create(b, f.program, []Occurrence{f.Occurrence})...)
		}
	}
}

// create makes the deliveries of a rule that the budget allows. An action that is beyond
// it, or whose body cannot be made, is a fault of its rule and stops nothing else.
func (d *pendingDecision) create(b *budget, p *Program, occurrences []Occurrence) []outbox.Delivery {
	total := p.Rule.fanOut()
	granted, reason := b.grant(&occurrences[0], total)
	if reason != nil {
		d.omitted += total - granted
		d.faults = append(d.faults, fault{p.Rule.ID, reason})
	}
	created, err := p.actions.deliveries(occurrences, b.acct, b.s.o.Settings, granted)
	if err != nil {
		d.faults = append(d.faults, fault{p.Rule.ID, err})
	}
	return created
}

// decideLocked evaluates pairs of a rule and a device while they are locked, and saves what
// is decided in one transaction; then deliveries are dispatched. begin and evaluate may
// be called more than once, each time with an empty pendingDecision; either may be nil.
func (s *Service) decideLocked(ctx context.Context, b *budget, pairs []Pair, begin func(*pendingDecision), evaluate func(*pendingDecision, *PairState)) error {
	var d *pendingDecision
	created, err := s.deps.Transactions.Decide(ctx, b.acct, pairs, s.deps.Deliveries.LeaseUntil(), func(locked []PairState) (Decision, error) {
		b.rollback()
		d = &pendingDecision{}
		if begin != nil {
			begin(d)
		}
		for i := range locked {
			oldState := locked[i]
			if evaluate(d, &locked[i]); locked[i] != oldState {
				d.decision.States = append(d.decision.States, locked[i])
			}
		}
		d.deliver(b)
		return d.decision, nil
	})
	if err != nil {
		b.rollback()
		return fmt.Errorf("decide: %w", err)
	}
	b.commit(len(created))
	s.conclude(b.acct, d, created)
	return nil
}

// conclude counts what was decided and dispatches the deliveries.
func (s *Service) conclude(acct relay.AccountID, d *pendingDecision, created []outbox.Delivery) {
	if d != nil {
		for _, f := range d.faults {
			s.failed.add(acct, f.ruleID, f.err, s.o.Now())
		}
		s.counted.add(d)
	}
	s.deps.Deliveries.Dispatch(created)
}
