package rule

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/iot"
)

// How much one look at the clock takes, and for how long it takes it: when a gateway
// dies meanwhile, another one takes the same then.
const (
	maxDue   = 500
	dueLease = 8 * time.Second
	// failuresEvery is how often failures of rules are saved.
	failuresEvery = 10 * time.Second
	// maxNamed is how many devices the reading store is asked about at once: for more,
	// InfluxDB reads all devices of the account.
	maxNamed = 100
	// recheck is how long after an alarm of silence the device is asked for once more: a
	// frame may have come at the same time.
	recheck = 10 * time.Second
	// recheckRaised is how often a device with such an alarm is asked for after that: a
	// frame that is refused does not end it.
	recheckRaised = 5 * time.Minute
)

// Run looks at the clock until ctx ends: for silent devices, conditions that have held
// for long enough, and batches.
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

// Tick does what is due now; Run calls it. While this gateway is behind with frames,
// nothing is decided by the clock but batches.
func (s *Service) Tick(ctx context.Context) error {
	errs := []error{s.sendDueBatches(ctx)}
	if s.deps.Behind() {
		return errors.Join(errs...)
	}
	errs = append(errs, s.enrol(ctx))
	for _, look := range []func(context.Context) (int, error){s.passDue, s.watchDue} {
		for n := maxDue; n == maxDue; {
			var err error
			n, err = look(ctx)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// enrol watches the devices of accounts with a new rule for silent devices.
func (s *Service) enrol(ctx context.Context) error {
	now := s.o.Now()
	leased := now.Add(dueLease)
	all, err := s.deps.Store.LeaseEnrolments(ctx, now, leased)
	if err != nil {
		return fmt.Errorf("devices to watch: %w", err)
	}
	for i := range all {
		for more := true; more; {
			if more, err = s.deps.Store.Enrol(ctx, &all[i], s.o.Now(), leased, 5000); err != nil {
				return fmt.Errorf("watch devices: %w", err)
			}
		}
	}
	return nil
}

// passDue looks at states whose time has come.
func (s *Service) passDue(ctx context.Context) (int, error) {
	now := s.o.Now()
	due, err := s.deps.Store.LeaseDue(ctx, now, now.Add(dueLease), maxDue)
	if err != nil {
		return 0, fmt.Errorf("due rules: %w", err)
	}
	byAccount := make(map[account.ID][]Pair)
	for _, one := range due {
		byAccount[one.Account] = append(byAccount[one.Account], one.Of.Pair)
	}
	for acct, pairs := range byAccount {
		if err := s.evaluateDue(ctx, acct, pairs, now); err != nil {
			return 0, err
		}
	}
	return len(due), nil
}

func (s *Service) evaluateDue(ctx context.Context, acct account.ID, pairs []Pair, now time.Time) error {
	set, err := s.current(ctx, acct)
	if err != nil {
		return err
	}
	ids := make([]string, len(pairs))
	for i := range pairs {
		ids[i] = pairs[i].DeviceID
	}
	devices, err := s.deps.Fleet.DevicesByID(ctx, acct, ids)
	if err != nil {
		return err
	}
	return s.decideLocked(ctx, acct, pairs, nil, func(d *pendingDecision, st *PairState) {
		p := set.programs[st.RuleID]
		if p == nil {
			st.Due, st.Since, st.Began = time.Time{}, time.Time{}, nil
			return
		}
		began := st.Began
		v := p.evaluateDue(acct, st, now)
		d.record(p, st, v, func() Occurrence {
			if began != nil {
				o := *began
				o.Rule, o.Time = &p.Rule, st.RaisedAt
				return o
			}
			return Occurrence{Rule: &p.Rule, Device: devices[st.DeviceID], Time: now}
		})
	})
}

// current returns the rules of an account as they are now.
func (s *Service) current(ctx context.Context, acct account.ID) (*ruleSet, error) {
	v, err := s.deps.Fleet.Version(ctx, acct)
	if err != nil {
		return nil, err
	}
	return s.set(ctx, acct, v)
}

// watchDue looks at devices that may be silent by now.
func (s *Service) watchDue(ctx context.Context) (int, error) {
	now := s.o.Now()
	leased := now.Add(dueLease)
	watches, err := s.deps.Store.LeaseWatches(ctx, now, leased, maxDue)
	if err != nil {
		return 0, fmt.Errorf("silent devices: %w", err)
	}
	byAccount := make(map[account.ID][]Watch)
	for _, w := range watches {
		byAccount[w.Account] = append(byAccount[w.Account], w)
	}
	for acct, all := range byAccount {
		w := &silenceCheck{s: s, acct: acct, now: now}
		moved, err := w.look(ctx, all)
		if err != nil {
			return 0, err
		}
		if err := s.deps.Store.MoveWatches(ctx, leased, moved); err != nil {
			return 0, err
		}
	}
	return len(watches), nil
}

// silenceCheck looks for silent devices of one account.
type silenceCheck struct {
	s       *Service
	acct    account.ID
	now     time.Time
	set     *ruleSet
	devices map[string]iot.Device
	heard   map[string]time.Time
	states  map[Pair]PairState
}

// look raises the alarms of silent devices, and returns when each has to be looked
// for again.
func (w *silenceCheck) look(ctx context.Context, watches []Watch) ([]Watch, error) {
	if err := w.load(ctx, watches); err != nil {
		return nil, err
	}
	var pairs []Pair
	var doubtful []string
	for i := range watches {
		due, changing := w.due(watches[i].DeviceID)
		watches[i].Due = due
		if len(changing) > 0 {
			pairs, doubtful = append(pairs, changing...), append(doubtful, watches[i].DeviceID)
		}
	}
	if len(pairs) == 0 {
		return watches, nil
	}
	// The cache may have missed a frame: the reading store has it.
	sure := make(map[string]time.Time, len(doubtful))
	for part := range slices.Chunk(doubtful, maxNamed) {
		heard, err := w.s.deps.Fleet.HeardLast(ctx, w.acct, part, true)
		if err != nil {
			return nil, err
		}
		maps.Copy(sure, heard)
	}
	return watches, w.s.decideLocked(ctx, w.acct, pairs, nil, func(d *pendingDecision, st *PairState) {
		p, device := w.set.programs[st.RuleID], w.devices[st.DeviceID]
		heard := sure[st.DeviceID]
		v := p.silence(w.acct, st, heard, p.counts(&device, heard), w.now)
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

func (w *silenceCheck) load(ctx context.Context, watches []Watch) (err error) {
	ids := make([]string, len(watches))
	for i := range watches {
		ids[i] = watches[i].DeviceID
	}
	if w.set, err = w.s.current(ctx, w.acct); err != nil {
		return err
	}
	if w.devices, err = w.s.deps.Fleet.DevicesByID(ctx, w.acct, ids); err != nil {
		return err
	}
	if w.heard, err = w.s.deps.Fleet.HeardLast(ctx, w.acct, ids, false); err != nil {
		return err
	}
	all, err := w.s.deps.Store.PairStates(ctx, w.acct, ids)
	w.states = make(map[Pair]PairState, len(all))
	for _, st := range all {
		w.states[st.Pair] = st
	}
	return err
}

// counts returns when the silence of a device began: when it was heard last, or else
// when both the device and the rule were there.
func (p *Program) counts(d *iot.Device, heard time.Time) time.Time {
	if !heard.IsZero() {
		return heard
	}
	if p.Rule.CreatedAt.After(d.CreatedAt) {
		return p.Rule.CreatedAt
	}
	return d.CreatedAt
}

// due returns when a device has to be looked for next, and its rules that have
// something to say now.
func (w *silenceCheck) due(deviceID string) (next time.Time, changing []Pair) {
	device, there := w.devices[deviceID]
	if !there {
		return time.Time{}, nil
	}
	for _, p := range w.set.match(&device) {
		if p.Rule.On != OnSilent {
			continue
		}
		pair := Pair{p.Rule.ID, deviceID}
		st := w.states[pair]
		heard := w.heard[deviceID]
		v := p.silence(w.acct, &st, heard, p.counts(&device, heard), w.now)
		at := st.silentFrom(p.counts(&device, heard)).Add(p.Rule.SilentFor)
		switch {
		case v.changed:
			changing = append(changing, pair)
			at = w.now.Add(recheck)
		case st.AlarmID != "" && w.now.Sub(st.RanAt) >= recheck:
			at = w.now.Add(recheckRaised) // a frame ends it, if it is not refused
		case st.AlarmID != "" || !at.After(w.now):
			at = w.now.Add(recheck)
		}
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next, changing
}
