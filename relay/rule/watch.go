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

// Limits of the evaluation that time starts, not a frame.
const (
	// maxDue is the largest number of due states or watches that are leased at once.
	maxDue = 500
	// dueLease is the time for which due states and watches are leased. If this gateway stops
	// meanwhile, another gateway leases them after that time.
	dueLease = 8 * time.Second
	// failuresEvery is the interval at which failures of rules are saved.
	failuresEvery = 10 * time.Second
	// maxQueriedDevices is the largest number of devices in a query of the reading store. With more
	// devices, InfluxDB would read all devices of the account.
	maxQueriedDevices = 100
	// recheckAfter is the time from a silence alarm until the next check of the device, because a
	// frame may have arrived at the same time.
	recheckAfter = 10 * time.Second
	// recheckRaisedEvery is the interval of further checks. They notice a device that sends only
	// refused frames: rules do not evaluate refused frames, but the device is not silent.
	recheckRaisedEvery = 5 * time.Minute
)

// Run calls Tick periodically until ctx ends, and saves the failures of rules.
func (s *Service) Run(ctx context.Context) {
	ticker := time.NewTicker(s.o.Tick)
	defer ticker.Stop()
	savedAt := s.o.Now()
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
		if now := s.o.Now(); now.Sub(savedAt) >= failuresEvery {
			s.SaveFailures(ctx)
			savedAt = now
		}
	}
}

// Tick sends due batches, raises alarms of conditions that have held for Rule.For, and checks due
// watches. While the gateway is behind (Deps.Behind), it only sends batches.
func (s *Service) Tick(ctx context.Context) error {
	errs := []error{s.sendDueBatches(ctx)}
	if s.deps.Behind() {
		return errors.Join(errs...)
	}
	errs = append(errs, s.enrol(ctx))
	for _, step := range []func(context.Context) (int, error){s.evaluateDueStates, s.checkDueWatches} {
		for n := maxDue; n == maxDue; {
			var err error
			n, err = step(ctx)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// enrol adds watches for the devices of accounts with a new rule on silence.
func (s *Service) enrol(ctx context.Context) error {
	now := s.o.Now()
	leasedUntil := now.Add(dueLease)
	enrolments, err := s.deps.Store.LeaseEnrolments(ctx, now, leasedUntil)
	if err != nil {
		return fmt.Errorf("lease accounts with new silence rules: %w", err)
	}
	for i := range enrolments {
		for hasMore := true; hasMore; {
			if hasMore, err = s.deps.Store.Enrol(ctx, &enrolments[i], s.o.Now(), leasedUntil, 5000); err != nil {
				return fmt.Errorf("add watches: %w", err)
			}
		}
	}
	return nil
}

// evaluateDueStates evaluates up to maxDue due states and returns their number.
func (s *Service) evaluateDueStates(ctx context.Context) (int, error) {
	now := s.o.Now()
	due, err := s.deps.Store.LeaseDue(ctx, now, now.Add(dueLease), maxDue)
	if err != nil {
		return 0, fmt.Errorf("lease due states: %w", err)
	}
	pairs, ids := make(map[relay.AccountID][]Pair), make(map[relay.AccountID][]string)
	for _, state := range due {
		pairs[state.Account] = append(pairs[state.Account], state.Record.Pair)
		ids[state.Account] = append(ids[state.Account], state.Record.DeviceID)
	}
	for acct := range pairs {
		set, err := s.currentSet(ctx, acct)
		if err != nil {
			return 0, err
		}
		devices, err := s.deps.Fleet.DevicesByID(ctx, acct, ids[acct])
		if err != nil {
			return 0, err
		}
		err = s.updateStates(ctx, s.newBudget(acct), pairs[acct], func(d *decisionDraft, st *PairState) {
			p := set.programs[st.RuleID]
			if set.undecryptable[st.RuleID] {
				return // an unchanged state is due again when the lease ends
			}
			if p == nil {
				st.Due, st.Since, st.StartOccurrence = time.Time{}, time.Time{}, nil
				return
			}
			startOccurrence := st.StartOccurrence
			v := p.evaluateDue(acct, st, now)
			d.addVerdict(p, st, v, func() Occurrence {
				return p.dueOccurrence(startOccurrence, st, devices[st.DeviceID], now)
			})
		})
		if err != nil {
			return 0, err
		}
	}
	return len(due), nil
}

// dueOccurrence returns the occurrence of a due state. startOccurrence is the occurrence of the frame
// at which the condition began to hold, or nil.
func (p *Program) dueOccurrence(startOccurrence *Occurrence, st *PairState, d iot.Device, t time.Time) Occurrence {
	if startOccurrence == nil {
		return Occurrence{Rule: &p.Rule, Device: d, Time: t}
	}
	o := *startOccurrence
	o.Rule, o.Time = &p.Rule, st.RaisedAt
	return o
}

// currentSet returns the current rules of an account.
func (s *Service) currentSet(ctx context.Context, acct relay.AccountID) (*ruleSet, error) {
	v, err := s.deps.Fleet.Version(ctx, acct)
	if err != nil {
		return nil, err
	}
	return s.loadSet(ctx, acct, v)
}

// checkDueWatches checks up to maxDue devices for silence and returns their number.
func (s *Service) checkDueWatches(ctx context.Context) (int, error) {
	now := s.o.Now()
	leasedUntil := now.Add(dueLease)
	watches, err := s.deps.Store.LeaseWatches(ctx, now, leasedUntil, maxDue)
	if err != nil {
		return 0, fmt.Errorf("lease watches: %w", err)
	}
	byAccount := make(map[relay.AccountID][]Watch)
	for _, w := range watches {
		byAccount[w.Account] = append(byAccount[w.Account], w)
	}
	for acct, watches := range byAccount {
		c := &silenceCheck{s: s, acct: acct, now: now}
		if err := c.check(ctx, watches); err != nil {
			return 0, err
		}
		if err := s.deps.Store.RescheduleWatches(ctx, leasedUntil, watches); err != nil {
			return 0, err
		}
	}
	return len(watches), nil
}

// silenceCheck checks devices of an account for silence.
type silenceCheck struct {
	s       *Service
	acct    relay.AccountID
	now     time.Time
	set     *ruleSet
	devices map[string]iot.Device
	heardAt map[string]time.Time
	states  map[Pair]PairState
}

// check raises the alarms of silent devices, clears the alarms of other devices and sets Due of the
// watches to the next check of the device.
func (c *silenceCheck) check(ctx context.Context, watches []Watch) (err error) {
	ids := make([]string, len(watches))
	for i := range watches {
		ids[i] = watches[i].DeviceID
	}
	if c.set, err = c.s.currentSet(ctx, c.acct); err != nil {
		return err
	}
	if c.devices, err = c.s.deps.Fleet.DevicesByID(ctx, c.acct, ids); err != nil {
		return err
	}
	if c.heardAt, err = c.s.deps.Fleet.HeardLast(ctx, c.acct, ids, false); err != nil {
		return err
	}
	if c.states, err = c.s.pairStates(ctx, c.acct, ids); err != nil {
		return err
	}
	var pairs []Pair
	var deviceIDs []string
	for i := range watches {
		var devicePairs []Pair
		if watches[i].Due, devicePairs = c.nextCheck(watches[i].DeviceID); len(devicePairs) > 0 {
			pairs, deviceIDs = append(pairs, devicePairs...), append(deviceIDs, watches[i].DeviceID)
		}
	}
	if len(pairs) == 0 {
		return nil
	}
	// Verify the times: the cache may lack a frame that the reading store has.
	verifiedTimes := make(map[string]time.Time, len(deviceIDs))
	for chunk := range slices.Chunk(deviceIDs, maxQueriedDevices) {
		heardAt, err := c.s.deps.Fleet.HeardLast(ctx, c.acct, chunk, true)
		if err != nil {
			return err
		}
		maps.Copy(verifiedTimes, heardAt)
	}
	return c.s.updateStates(ctx, c.s.newBudget(c.acct), pairs, func(d *decisionDraft, st *PairState) {
		p, device := c.set.programs[st.RuleID], c.devices[st.DeviceID]
		heardAt := verifiedTimes[st.DeviceID]
		v := p.evaluateSilence(c.acct, st, heardAt, p.silenceStart(&device, heardAt), c.now)
		d.addVerdict(p, st, v, func() Occurrence {
			device.LastSeen = heardAt
			o := Occurrence{Rule: &p.Rule, Device: device, Time: st.RaisedAt}
			if v.State == Cleared {
				o.Time = heardAt
			}
			return o
		})
	})
}

// silenceStart returns the time of the last frame of a device. Without a frame, it returns the time
// from which both the device and the rule existed.
func (p *Program) silenceStart(d *iot.Device, heardAt time.Time) time.Time {
	if !heardAt.IsZero() {
		return heardAt
	}
	return laterTime(p.Rule.CreatedAt, d.CreatedAt)
}

// nextCheck returns the time of the next check of a device, or zero for no check, and the pairs of the
// device whose states change now.
func (c *silenceCheck) nextCheck(deviceID string) (nextAt time.Time, pairs []Pair) {
	device, found := c.devices[deviceID]
	if !found {
		return time.Time{}, nil
	}
	if len(c.set.undecryptable) > 0 { // undecryptable rules may be rules on silence
		nextAt = c.now.Add(recheckAfter)
	}
	for _, p := range c.set.match(&device) {
		if p.Rule.On != OnSilent {
			continue
		}
		pair := Pair{p.Rule.ID, deviceID}
		st := c.states[pair]
		heardAt := c.heardAt[deviceID]
		v := p.evaluateSilence(c.acct, &st, heardAt, p.silenceStart(&device, heardAt), c.now)
		t := laterTime(st.ChangedAt, p.silenceStart(&device, heardAt)).Add(p.Rule.SilentFor)
		switch {
		case v.changed:
			pairs = append(pairs, pair)
			t = c.now.Add(recheckAfter)
		case st.AlarmID != "" && c.now.Sub(st.ActionsRanAt) >= recheckAfter:
			t = c.now.Add(recheckRaisedEvery)
		case st.AlarmID != "" || !t.After(c.now):
			t = c.now.Add(recheckAfter)
		}
		if nextAt.IsZero() || t.Before(nextAt) {
			nextAt = t
		}
	}
	return nextAt, pairs
}
