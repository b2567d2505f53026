package rule

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/outbox"
)

// decisionDraft is an incomplete decision with the firings that it results from.
type decisionDraft struct {
	decision Decision
	firings  []firing
	repeated int // firings of alarms that were already raised
	omitted  int // actions beyond the budget
	faults   []fault
}

// fault is a failed expression of a rule, or an action beyond the budget.
type fault struct {
	ruleID string
	err    error
}

// addVerdict adds a verdict. It calls newOccurrence if the rule fires.
func (d *decisionDraft) addVerdict(p *Program, st *PairState, v verdict, newOccurrence func() Occurrence) {
	if v.State == "" {
		return
	}
	o, raisedAt := newOccurrence(), st.RaisedAt
	o.State, o.AlarmID, o.Repeats = v.State, st.AlarmID, st.Repeats
	switch {
	case v.State == Cleared:
		if p.Rule.On == OnSilent {
			d.decision.SilenceChecks = append(d.decision.SilenceChecks, st.DeviceID)
		}
		o.AlarmID, raisedAt = v.oldState.AlarmID, v.oldState.RaisedAt
		d.decision.Cleared = append(d.decision.Cleared, Alarm{
			ID: o.AlarmID, RuleID: st.RuleID, DeviceID: st.DeviceID, State: Cleared, ClearedAt: laterTime(o.Time, raisedAt), ClearedBy: o.Record,
		})
	case v.Repeat:
		d.repeated++
	default:
		d.decision.Raised = append(d.decision.Raised, Alarm{
			ID: st.AlarmID, RuleID: st.RuleID, DeviceID: st.DeviceID, State: Raised, RaisedAt: raisedAt, Readings: o.Readings, RaisedBy: o.Record,
		})
	}
	d.firings = append(d.firings, firing{p, o, raisedAt})
}

// addDeliveries creates the deliveries of the firings, except those suppressed by a mute. A mute
// suppresses the actions of alarms that are raised or repeated during the mute. The actions of a
// cleared alarm are suppressed only if the alarm was both raised and cleared during a mute. Otherwise
// the receiver has been notified that the alarm was raised.
func (d *decisionDraft) addDeliveries(b *budget) {
	b.s.mu.Lock()
	var mutes []Mute
	if set := b.s.sets[b.acct]; set != nil {
		mutes = set.mutes
	}
	b.s.mu.Unlock()
	for _, f := range d.firings {
		muted := func(t time.Time) bool {
			return slices.ContainsFunc(mutes, func(m Mute) bool {
				return (m.RuleID == "" || m.RuleID == f.Rule.ID) && (m.DeviceID == "" || m.DeviceID == f.Device.ID) &&
					!t.Before(m.Since) && t.Before(m.Until)
			})
		}
		suppressed := f.State != Forwarded && muted(f.Time) && (f.State == Raised || muted(f.raisedAt))
		if !suppressed {
			d.decision.Deliveries = append(d.decision.Deliveries, d.createDeliveries(b, f.program, []Occurrence{f.Occurrence})...)
		}
	}
}

// createDeliveries creates the deliveries of a rule that the budget allows. An action beyond the
// budget, or a failed expression, is a fault of the rule and does not prevent other deliveries.
func (d *decisionDraft) createDeliveries(b *budget, p *Program, occurrences []Occurrence) []outbox.Delivery {
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

// updateStates locks the states of pairs, evaluates them and saves the changes. evaluatePair may be
// called more than once for a pair, each time with the stored state.
func (s *Service) updateStates(ctx context.Context, b *budget, pairs []Pair, evaluatePair func(*decisionDraft, *PairState)) error {
	return s.saveDecision(ctx, b, pairs, func(d *decisionDraft, locked []PairState) {
		for i := range locked {
			oldState := locked[i]
			if evaluatePair(d, &locked[i]); locked[i] != oldState {
				d.decision.States = append(d.decision.States, locked[i])
			}
		}
	})
}

// saveDecision locks the states of pairs, calls fillDraft and saves the decision in one transaction. It
// then dispatches the deliveries. fillDraft may be called more than once, each time with an empty
// draft.
func (s *Service) saveDecision(ctx context.Context, b *budget, pairs []Pair, fillDraft func(*decisionDraft, []PairState)) error {
	var d *decisionDraft
	created, err := s.deps.Transactions.SaveDecision(ctx, b.acct, pairs, s.deps.Deliveries.LeaseUntil(), func(locked []PairState) (Decision, error) {
		b.rollback()
		d = &decisionDraft{}
		fillDraft(d, locked)
		d.addDeliveries(b)
		return d.decision, nil
	})
	if err != nil {
		b.rollback()
		return fmt.Errorf("save decision: %w", err)
	}
	b.commit(len(created))
	s.conclude(b.acct, d, created)
	return nil
}

// conclude counts a saved decision and dispatches its deliveries. d is nil if there was no decision.
func (s *Service) conclude(acct relay.AccountID, d *decisionDraft, created []outbox.Delivery) {
	if d != nil {
		for _, f := range d.faults {
			s.failures.add(acct, f.ruleID, f.err, s.o.Now())
		}
		s.counters.add(d)
	}
	s.deps.Deliveries.Dispatch(created)
}

// grace is the time between the end of Rule.For and an alarm that is raised without a frame. A late
// frame for which the condition does not hold may arrive in this time.
const grace = 2 * time.Second

// verdict is the result of a rule for a frame, or for a time without a frame.
type verdict struct {
	State    State // Raised or Cleared; empty if the rule does not fire
	Repeat   bool  // the actions of a raised alarm run again
	Reason   string
	matched  bool      // the condition holds
	changed  bool      // the state has changed
	oldState PairState // state before the alarm was cleared
	err      error     // failure of an expression
}

// step evaluates a rule with a condition, or a rule on silence, for a frame, and changes the state of
// the rule for the device. Live frames, replays, trials and explanations use it.
func (p *Program) step(acct relay.AccountID, st *PairState, frame *ruleFrame) verdict {
	switch {
	case !st.precedes(frame):
		return verdict{Reason: "the rule has already evaluated this frame or a later one"}
	case p.Rule.On == OnSilent:
		if st.AlarmID == "" {
			return verdict{Reason: "the device is not silent"}
		}
		v := verdict{State: Cleared, changed: true, Reason: "the device sends again", oldState: *st}
		st.mark(frame)
		st.clear()
		return v
	case st.AlarmID != "":
		return p.stepRaised(st, frame)
	}
	holds, reason, err := evaluate("when", p.when, &frame.conditionSubject)
	v := verdict{Reason: reason, err: err, matched: holds == yes}
	switch {
	case holds == unknown || holds == no && st.Since.IsZero():
		return v
	case holds == no:
		st.mark(frame)
		st.Since, st.StartOccurrence, st.Due = time.Time{}, nil, time.Time{}
		v.changed, v.Reason = true, "the condition is no longer met"
		return v
	case p.Rule.For > 0 && st.Since.IsZero():
		st.mark(frame)
		startOccurrence := frame.occurrence(p, Raised)
		startOccurrence.Rule = nil // the rule's ID is stored in the state
		st.Since, st.StartOccurrence, st.Due = frame.heardAt, &startOccurrence, frame.heardAt.Add(p.Rule.For+grace)
		v.changed, v.Reason = true, "the condition is met and must stay met for "+formatDuration(p.Rule.For)
		return v
	case frame.heardAt.Sub(st.Since) < p.Rule.For && p.Rule.For > 0:
		v.Reason = fmt.Sprintf("the condition has been met for %s and must stay met for %s", cmp.Or(formatDuration(frame.heardAt.Sub(st.Since).Round(time.Second)), "0s"), formatDuration(p.Rule.For))
		return v
	}
	st.mark(frame)
	st.raise(acct, frame.frameAt, frame.heardAt, frame.record)
	v.State, v.changed = Raised, true
	return v
}

func (p *Program) stepRaised(st *PairState, frame *ruleFrame) verdict {
	holds, reason, err := evaluate("when", p.when, &frame.conditionSubject)
	v := verdict{Reason: reason, err: err, matched: holds == yes}
	cleared := holds == no
	if p.clear != nil {
		holds, v.Reason, v.err = evaluate("clear", p.clear, &frame.conditionSubject)
		cleared = holds == yes
	}
	repeat := p.Rule.Repeat
	switch {
	case cleared:
		v.State, v.changed, v.oldState = Cleared, true, *st
		st.mark(frame)
		st.clear()
	case v.matched && (repeat.Always || repeat.Every > 0 && frame.heardAt.Sub(st.ActionsRanAt) >= repeat.Every):
		v.State, v.Repeat, v.changed = Raised, true, true
		st.mark(frame)
		st.ActionsRanAt, st.Repeats = frame.heardAt, st.Repeats+1
		v.Reason += ", so the actions run again"
	default:
		v.Reason += "; the alarm is already raised"
	}
	return v
}

// evaluateDue evaluates a due state without a frame. It raises the alarm if the condition has held for
// Rule.For, and runs the actions of a silence alarm again after Rule.Repeat.Every.
func (p *Program) evaluateDue(acct relay.AccountID, st *PairState, now time.Time) verdict {
	switch {
	case !st.Since.IsZero() && st.AlarmID == "":
		if now.Sub(st.Since) < p.Rule.For {
			st.Due = st.Since.Add(p.Rule.For + grace)
			return verdict{changed: true}
		}
		t := st.Since.Add(p.Rule.For)
		st.raise(acct, t, t, st.Record)
		return verdict{State: Raised, changed: true, matched: true, Reason: "the condition was met for " + formatDuration(p.Rule.For)}
	case p.Rule.On == OnSilent && st.AlarmID != "" && p.Rule.Repeat.Every > 0:
		if nextAt := st.ActionsRanAt.Add(p.Rule.Repeat.Every); now.Before(nextAt) {
			st.Due = nextAt
			return verdict{changed: true}
		}
		st.ActionsRanAt, st.Repeats, st.Due = now, st.Repeats+1, now.Add(p.Rule.Repeat.Every)
		return verdict{State: Raised, Repeat: true, changed: true, matched: true, Reason: "the device is still silent, so the actions run again"}
	}
	st.Due = time.Time{}
	return verdict{changed: true}
}

// evaluateSilence evaluates a rule on silence at the time now. heardAt is the time of the device's last
// frame, or zero if the device has sent none. silentSince is the beginning of the silence, unless the
// frame of the state is later.
func (p *Program) evaluateSilence(acct relay.AccountID, st *PairState, heardAt, silentSince, now time.Time) verdict {
	if st.AlarmID != "" {
		if !heardAt.After(st.ChangedAt) {
			return verdict{matched: true, Reason: "the alarm is already raised"}
		}
		v := verdict{State: Cleared, changed: true, Reason: "the device sends again", oldState: *st}
		st.ChangedAt, st.FrameAt, st.Record = heardAt, heardAt, ""
		st.clear()
		return v
	}
	start := laterTime(st.ChangedAt, silentSince) // st.ChangedAt is later than heardAt if the cache has lost the last frame
	silentAt := start.Add(p.Rule.SilentFor)
	if now.Before(silentAt) {
		return verdict{Reason: "the device has been silent for less than " + formatDuration(p.Rule.SilentFor)}
	}
	st.ChangedAt, st.FrameAt, st.Record = start, start, ""
	st.raise(acct, silentAt, now, "")
	if p.Rule.Repeat.Every > 0 {
		st.Due = now.Add(p.Rule.Repeat.Every)
	}
	return verdict{State: Raised, changed: true, matched: true, Reason: "the device sent nothing for " + formatDuration(p.Rule.SilentFor)}
}

func laterTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// precedes reports whether the frame that last changed the state precedes the given frame. Frames with
// the same times, from networks that report whole seconds, are ordered by their journal
// records.
func (st *PairState) precedes(frame *ruleFrame) bool {
	c := cmp.Or(st.ChangedAt.Compare(frame.heardAt), st.FrameAt.Compare(frame.frameAt))
	if c == 0 && st.Record != "" {
		c = cmp.Or(cmp.Compare(len(st.Record), len(frame.record)), cmp.Compare(st.Record, frame.record))
	}
	return c < 0
}

// mark records a frame as the last one that changed the state.
func (st *PairState) mark(frame *ruleFrame) {
	st.ChangedAt, st.FrameAt, st.Record = frame.heardAt, frame.frameAt, frame.record
}

// raise sets the state to a raised alarm. The ID of the alarm is a hash of its cause, so that
// processing a frame again results in the same alarm.
func (st *PairState) raise(acct relay.AccountID, t, ranAt time.Time, record string) {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %q %q %q %d", acct, st.RuleID, st.DeviceID, record, t.UnixNano()))
	st.AlarmID = strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:15]))
	st.RaisedAt, st.ActionsRanAt, st.Repeats = t, ranAt, 0
	st.Since, st.Due = time.Time{}, time.Time{}
}

// clear resets the state except for the frame that last changed it.
func (st *PairState) clear() {
	*st = PairState{Pair: st.Pair, ChangedAt: st.ChangedAt, FrameAt: st.FrameAt, Record: st.Record}
}
