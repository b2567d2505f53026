package rule

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

// Explanation is the result of a rule for a frame.
type Explanation struct {
	RuleID, Name string
	Matched      bool   // the condition holds, or the rule has none
	State        State  // Raised, Cleared or Forwarded by the frame; else empty
	AlarmID      string // alarm raised or cleared by the frame
	Why          string
}

// Explain evaluates the current rules for a stored frame, without their states from earlier frames. It
// returns an explanation for each rule that evaluates the frame.
func (s *Service) Explain(ctx context.Context, acct relay.AccountID, f iot.StoredFrame) ([]Explanation, error) {
	set, err := s.currentSet(ctx, acct)
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
		setPrevious([]*ruleFrame{frame}, previous, s.o.Settings.Zone)
	}
	alarms, err := s.deps.Store.AlarmsOfRecord(ctx, acct, f.Device.ID, f.Record)
	if err != nil {
		return nil, fmt.Errorf("alarms of a frame: %w", err)
	}
	var explanations []Explanation
	for _, p := range programs {
		if !p.evaluates(frame.trigger, frame.fromDevice) {
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
			e.Why += "; the frame raised no alarm: the alarm was raised already, or when must hold for longer"
		}
		explanations = append(explanations, e)
	}
	return explanations, nil
}

// String returns the result and its reason in one line.
func (e *Explanation) String() string {
	name := strconv.Quote(e.Name)
	switch e.State {
	case Raised, Cleared:
		return fmt.Sprintf("%s %s the alarm %s: %s", name, e.State, e.AlarmID, e.Why)
	case Forwarded:
		return name + " forwards the frame: " + e.Why
	}
	return name + " did not fire: " + e.Why
}

// About returns the message ID of the rule's deliveries for a frame: the record for a forwarded frame,
// else the ID of the alarm, or an empty text without an alarm.
func (e *Explanation) About(record string) string {
	if e.State == Forwarded {
		return record
	}
	return e.AlarmID
}
