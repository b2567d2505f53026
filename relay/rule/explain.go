package rule

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

// Explanation is the verdict of a rule on a frame.
type Explanation struct {
	RuleID, Name string
	// Matched reports that the frame meets the condition, or that there is none.
	Matched bool
	// State is the state of the rule's alarm after the frame, or "forwarded"; empty if
	// nothing.
	State   State
	AlarmID string // of an alarm that the frame raised or cleared
	Why     string
}

// Explain returns which rules evaluate a stored frame, as they are now and without regard to
// earlier frames, and the result. Frames that no rule examined have no State.
func (s *Service) Explain(ctx context.Context, acct relay.AccountID, f iot.Stored) ([]Explanation, error) {
	set, err := s.current(ctx, acct)
	if err != nil {
		return nil, err
	}
	programs := set.match(f.Device)
	frame := newRuleFrame(&f, s.o.Settings.Zone)
	if slices.ContainsFunc(programs, func(p *Program) bool { return p.previous }) {
		previous, err := s.readingsBefore(ctx, acct, f.Device.ID, frame.frameAt)
		if err != nil {
			return nil, err
		}
		follow([]*ruleFrame{frame}, previous, s.o.Settings.Zone)
	}
	alarms, err := s.deps.Store.OfRecord(ctx, acct, f.Device.ID, f.Record)
	if err != nil {
		return nil, fmt.Errorf("alarms of a frame: %w", err)
	}
	var explanations []Explanation
	for _, p := range programs {
		if !p.evaluates(frame.trigger, frame.sent) {
			continue
		}
		e := Explanation{RuleID: p.Rule.ID, Name: p.Rule.Name}
		switch {
		case p.forwards():
			e.Matched, e.State, e.Why = true, Forwarded, "the rule has no when"
		case p.Rule.On == OnSilent:
			e.Why = "a frame ends the silence of its device"
		default:
			st := PairState{Pair: Pair{p.Rule.ID, frame.device.ID}}
			v := p.step(acct, &st, frame)
			e.Matched, e.Why = v.matched, v.Why
		}
		if i := slices.IndexFunc(alarms, func(a Alarm) bool { return a.RuleID == e.RuleID }); i >= 0 {
			e.AlarmID, e.State = alarms[i].ID, Raised
			if alarms[i].ClearedBy == f.Record {
				e.State = Cleared
			}
		} else if e.Matched && e.State == "" {
			e.Why += "; the frame raised no alarm: one was raised already, or must wait"
		}
		explanations = append(explanations, e)
	}
	return explanations, nil
}

// String returns the outcome for the frame and its reason in one line.
func (e *Explanation) String() string {
	name := strconv.Quote(e.Name)
	switch e.State {
	case Raised, Cleared:
		return fmt.Sprintf("%s %s the alarm %s: %s", name, e.State, e.AlarmID, e.Why)
	case Forwarded:
		return name + " forwards it: " + e.Why
	}
	return name + " did not fire: " + e.Why
}

// About returns what the rule's deliveries for a frame are about: its alarm, or the
// frame; empty if it has none.
func (e *Explanation) About(record string) string {
	if e.State == Forwarded {
		return record
	}
	return e.AlarmID
}
