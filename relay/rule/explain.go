package rule

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

// Explanation is the result of a rule for a frame.
type Explanation struct {
	RuleID, Name string
	Matched      bool   // the condition holds, or the rule has none
	State        State  // Raised, Cleared or Forwarded by the frame; else empty
	AlarmID      string // alarm raised or cleared by the frame
	Reason       string
	// Outdated means that a rule with a condition was changed after the frame: Matched and Reason are
	// results of the current rule.
	Outdated bool
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
	alarms, err := s.deps.Store.AlarmsOfRecord(ctx, acct, f.Device.ID, f.RecordID)
	if err != nil {
		return nil, fmt.Errorf("alarms of a frame: %w", err)
	}
	var explanations []Explanation
	for _, p := range programs {
		if !p.evaluates(frame.trigger, frame.fromDevice) {
			continue
		}
		e := Explanation{RuleID: p.Rule.ID, Name: p.Rule.Name, Outdated: p.Rule.On != OnSilent && p.Rule.UpdatedAt.After(frame.heardAt)}
		switch {
		case p.forwards():
			e.Matched, e.State, e.Reason = true, Forwarded, "the rule has no condition"
		case p.Rule.On == OnSilent:
			e.Reason = "the device sends again"
		default:
			st := PairState{Pair: Pair{p.Rule.ID, frame.device.ID}}
			v := p.step(acct, &st, frame)
			e.Matched, e.Reason = v.matched, v.Reason
		}
		if i := slices.IndexFunc(alarms, func(a Alarm) bool { return a.RuleID == e.RuleID }); i >= 0 {
			e.AlarmID, e.State = alarms[i].ID, Raised
			if alarms[i].ClearedBy == f.RecordID {
				e.State = Cleared
			} else if p.Rule.For > 0 && !e.Outdated {
				e.Reason = "the condition was met for " + formatDuration(p.Rule.For)
			}
		} else if p.Rule.On == OnSilent {
			e.Reason = "the device was not silent"
		} else if e.Matched && e.State == "" && p.Rule.For == 0 && !e.Outdated {
			e.Reason += ", but an alarm was already raised"
			if p.Rule.Repeat != (Repeat{}) {
				e.Reason += ", whose actions may have run again"
			}
		}
		explanations = append(explanations, e)
	}
	return explanations, nil
}

// String returns the result and its reason in one or two sentences.
func (e *Explanation) String() string {
	if e.Outdated && e.State == Forwarded {
		return fmt.Sprintf("The rule %q was changed after the frame. It would forward the frame now.", e.Name)
	}
	result := map[State]string{Raised: "raised an alarm", Cleared: "cleared its alarm", Forwarded: "forwarded the frame"}[e.State]
	text := fmt.Sprintf("The rule %q %s", e.Name, cmp.Or(result, "raised no alarm"))
	if e.Outdated {
		return text + ". It was changed after the frame; now " + e.Reason + "."
	}
	return text + ": " + e.Reason + "."
}

// About returns the message ID of the rule's deliveries for a frame: the record for a forwarded frame,
// else the ID of the alarm, or "" without an alarm.
func (e *Explanation) About(record string) string {
	if e.State == Forwarded {
		return record
	}
	return e.AlarmID
}
