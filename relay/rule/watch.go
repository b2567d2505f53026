package rule

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

// Limits of the evaluation without frames.
const (
	// maxDue is the largest number of due states, or watches, that are leased at once.
	maxDue = 500
	// dueLease is the time for which they are leased: if this gateway ends meanwhile, another
	// one leases them after that.
	dueLease = 8 * time.Second
	// failuresEvery is the interval at which failures of rules are saved.
	failuresEvery = 10 * time.Second
	// maxNamed is the largest number of devices in one query of the reading store: for more,
	// InfluxDB reads all devices of the account.
	maxNamed = 100
	// recheck is the time after an alarm of silence until the device is checked again: a
	// frame may have arrived at the same time.
	recheck = 10 * time.Second
	// recheckRaised is the interval of the checks after that: rules do not see a frame that
	// is refused, but the check does.
	recheckRaised = 5 * time.Minute
)

// Run calls Tick periodically until ctx ends, and saves failures of rules.
func (s *Service) Run(ctx context.Context) {
	ticker := time.NewTicker(s.o.Tick)
	defer ticker.Stop()
	saved := s.o.Now()
	for {
		select {
		case <-ctx.Done():
			s.SaveFailures(context.WithoutCancel(ctx))
			return
		case <-ticker.C:
		}
		if err := s.Tick(ctx); err != nil && ctx.Err() == nil {
			s.o.Logger.WarnContext(ctx, "cannot evaluate due rules", "error", err)
		}
		if now := s.o.Now(); now.Sub(saved) >= failuresEvery {
			s.SaveFailures(ctx)
			saved = now
		}
	}
}

// Tick sends batches that are due, and evaluates silent devices and conditions that have
// held for long enough. While frames wait to be processed for long (Deps.Behind), it only
// sends batches.
func (s *Service) Tick(ctx context.Context) error {
	errs := []error{s.sendDueBatches(ctx)}
	if s.deps.Behind() {
		return errors.Join(errs...)
	}
	errs = append(errs, s.enrol(ctx))
	for _, evaluate := range []func(context.Context) (int, error){s.evaluateDueStates, s.checkDueWatches} {
		for n := maxDue; n == maxDue; {
			var err error
			n, err = evaluate(ctx)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (s *Service) enrol(ctx context.Context) error {
	now := s.o.Now()
	leased := now.Add(dueLease)
	enrolments, err := s.deps.Store.LeaseEnrolments(ctx, now, leased)
	if err != nil {
		return fmt.Errorf("devices to watch: %w", err)
	}
	for i := range enrolments {
		for hasMore := true; hasMore; {
			if hasMore, err = s.deps.Store.Enrol(ctx, &enrolments[i], s.o.Now(), leased, 5000); err != nil {
				return fmt.Errorf("watch devices: %w", err)
			}
		}
	}
	return nil
}

// evaluateDueStates evaluates up to maxDue states that are due, and returns how many.
func (s *Service) evaluateDueStates(ctx context.Context) (int, error) {
	now := s.o.Now()
	due, err := s.deps.Store.LeaseDue(ctx, now, now.Add(dueLease), maxDue)
	if err != nil {
		return 0, fmt.Errorf("due rules: %w", err)
	}
	pairs, ids := make(map[relay.AccountID][]Pair), make(map[relay.AccountID][]string)
	for _, state := range due {
		pairs[state.Account] = append(pairs[state.Account], state.Of.Pair)
		ids[state.Account] = append(ids[state.Account], state.Of.DeviceID)
	}
	for acct := range pairs {
		set, err := s.current(ctx, acct)
		if err != nil {
			return 0, err
		}
		devices, err := s.deps.Fleet.DevicesByID(ctx, acct, ids[acct])
		if err != nil {
			return 0, err
		}
		err = s.decideLocked(ctx, s.newBudget(acct), pairs[acct], func(d *pendingDecision, st *PairState) {
			p := set.programs[st.RuleID]
			if set.unopened[st.RuleID] {
				return // it is due again when the lease ends
			}
			if p == nil {
				st.Due, st.Since, st.Began = time.Time{}, time.Time{}, nil
				return
			}
			began := st.Began
			v := p.evaluateDue(acct, st, now)
			d.record(p, st, v, func() Occurrence {
				return p.dueOccurrence(began, st, devices[st.DeviceID], now)
			})
		})
		if err != nil {
			return 0, err
		}
	}
	return len(due), nil
}

// dueOccurrence returns the occurrence of a state that was evaluated without a frame:
// that of the frame at which its condition began to hold, if there was one.
func (p *Program) dueOccurrence(began *Occurrence, st *PairState, d iot.Device, t time.Time) Occurrence {
	if began == nil {
		return Occurrence{Rule: &p.Rule, Device: d, Time: t}
	}
	o := *began
	o.Rule, o.Time = &p.Rule, st.RaisedAt
	return o
}

func (s *Service) current(ctx context.Context, acct relay.AccountID) (*ruleSet, error) {
	v, err := s.deps.Fleet.Version(ctx, acct)
	if err != nil {
		return nil, err
	}
	return s.set(ctx, acct, v)
}

func (s *Service) checkDueWatches(ctx context.Context) (int, error) {
	now := s.o.Now()
	leased := now.Add(dueLease)
	watches, err := s.deps.Store.LeaseWatches(ctx, now, leased, maxDue)
	if err != nil {
		return 0, fmt.Errorf("silent devices: %w", err)
	}
	byAccount := make(map[relay.AccountID][]Watch)
	for _, w := range watches {
		byAccount[w.Account] = append(byAccount[w.Account], w)
	}
	for acct, watches := range byAccount {
		w := &silenceCheck{s: s, acct: acct, now: now}
		moved, err := w.check(ctx, watches)
		if err != nil {
			return 0, err
		}
		if err := s.deps.Store.MoveWatches(ctx, leased, moved); err != nil {
			return 0, err
		}
	}
	return len(watches), nil
}

type silenceCheck struct {
	s       *Service
	acct    relay.AccountID
	now     time.Time
	set     *ruleSet
	devices map[string]iot.Device
	heard   map[string]time.Time
	states  map[Pair]PairState
}

// check raises the alarms of silent devices, clears those of others, and returns the
// watches with the time of each device's next check.
func (w *silenceCheck) check(ctx context.Context, watches []Watch) (moved []Watch, err error) {
	ids := make([]string, len(watches))
	for i := range watches {
		ids[i] = watches[i].DeviceID
	}
	if w.set, err = w.s.current(ctx, w.acct); err != nil {
		return nil, err
	}
	if w.devices, err = w.s.deps.Fleet.DevicesByID(ctx, w.acct, ids); err != nil {
		return nil, err
	}
	if w.heard, err = w.s.deps.Fleet.HeardLast(ctx, w.acct, ids, false); err != nil {
		return nil, err
	}
	if w.states, err = w.s.pairStates(ctx, w.acct, ids); err != nil {
		return nil, err
	}
	var pairs []Pair
	var doubtful []string
	for i := range watches {
		var changing []Pair
		if watches[i].Due, changing = w.nextCheck(watches[i].DeviceID); len(changing) > 0 {
			pairs, doubtful = append(pairs, changing...), append(doubtful, watches[i].DeviceID)
		}
	}
	if len(pairs) == 0 {
		return watches, nil
	}
	// The cache may lack a frame that the reading store has.
	sure := make(map[string]time.Time, len(doubtful))
	for part := range slices.Chunk(doubtful, maxNamed) {
		heard, err := w.s.deps.Fleet.HeardLast(ctx, w.acct, part, true)
		if err != nil {
			return nil, err
		}
		maps.Copy(sure, heard)
	}
	return watches, w.s.decideLocked(ctx, w.s.newBudget(w.acct), pairs, func(d *pendingDecision, st *PairState) {
		p, device := w.set.programs[st.RuleID], w.devices[st.DeviceID]
		heard := sure[st.DeviceID]
		v := p.silence(w.acct, st, heard, p.silenceBegan(&device, heard), w.now)
		d.record(p, st, v, func() Occurrence {
			device.LastSeen = heard
			o := Occurrence{Rule: &p.Rule, Device: device, Time: st.RaisedAt}
			if v.State == Cleared {
				o.Time = heard
			}
			return o
		})
	})
}

// silenceBegan returns when the silence of a device began: when it was heard last, or, if
// it never was, when the later of device and rule was created.
func (p *Program) silenceBegan(d *iot.Device, heard time.Time) time.Time {
	if !heard.IsZero() {
		return heard
	}
	if p.Rule.CreatedAt.After(d.CreatedAt) {
		return p.Rule.CreatedAt
	}
	return d.CreatedAt
}

// nextCheck returns when a device has to be checked next, zero for never, and its pairs
// whose states change now.
func (w *silenceCheck) nextCheck(deviceID string) (nextAt time.Time, changing []Pair) {
	device, found := w.devices[deviceID]
	if !found {
		return time.Time{}, nil
	}
	if len(w.set.unopened) > 0 { // which may look for silent devices
		nextAt = w.now.Add(recheck)
	}
	for _, p := range w.set.match(&device) {
		if p.Rule.On != OnSilent {
			continue
		}
		pair := Pair{p.Rule.ID, deviceID}
		st := w.states[pair]
		heard := w.heard[deviceID]
		v := p.silence(w.acct, &st, heard, p.silenceBegan(&device, heard), w.now)
		t := st.silentFrom(p.silenceBegan(&device, heard)).Add(p.Rule.SilentFor)
		switch {
		case v.changed:
			changing = append(changing, pair)
			t = w.now.Add(recheck)
		case st.AlarmID != "" && w.now.Sub(st.RanAt) >= recheck:
			t = w.now.Add(recheckRaised) // a frame that rules see clears the alarm at once
		case st.AlarmID != "" || !t.After(w.now):
			t = w.now.Add(recheck)
		}
		if nextAt.IsZero() || t.Before(nextAt) {
			nextAt = t
		}
	}
	return nextAt, changing
}
