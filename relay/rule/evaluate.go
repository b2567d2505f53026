package rule

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/iot"
)

// Evaluate evaluates the rules of an account for stored frames. It implements iot.EvaluateFunc. Its
// decisions are committed when it returns.
func (s *Service) Evaluate(ctx context.Context, acct relay.AccountID, v iot.Version, frames []iot.StoredFrame) error {
	set, err := s.loadSet(ctx, acct, v)
	if err != nil || len(set.programs) == 0 {
		return err
	}
	s.counters.mu.Lock()
	s.counters.Frames += int64(len(frames))
	s.counters.mu.Unlock()
	e := &evaluation{s: s, acct: acct, set: set, budget: s.newBudget(acct)}

	// 1. Group the frames that rules evaluate by device.
	byID := make(map[string]*deviceFrames, len(frames))
	for i := range frames {
		f := &frames[i]
		programs, trigger, fromDevice := set.programsFor(f.Device), triggerOf(f.Frame), iot.FromDevice(f.Frame.Kind)
		if !slices.ContainsFunc(programs, func(p *Program) bool { return p.evaluates(trigger, fromDevice) }) {
			continue
		}
		device := byID[f.Device.ID]
		if device == nil {
			device = &deviceFrames{device: f.Device, programs: programs}
			byID[f.Device.ID] = device
			e.devices = append(e.devices, device)
		}
		device.frames = append(device.frames, newRuleFrame(f, s.o.Settings.Zone))
	}

	// 2. Sort the frames of each device by time, and set the previous readings if a rule examines
	// them.
	var stateful []string // devices for which a rule has a state
	for _, d := range e.devices {
		slices.SortStableFunc(d.frames, func(a, b *ruleFrame) int { return cmp.Or(a.heardAt.Compare(b.heardAt), a.frameAt.Compare(b.frameAt)) })
		if slices.ContainsFunc(d.programs, func(p *Program) bool { return p.previous }) {
			previous, err := s.readingsBefore(ctx, acct, d.device.ID, d.frames[0].frameAt)
			if err != nil {
				return err
			}
			setPrevious(d.frames, previous, s.o.Settings.Zone)
		}
		if slices.ContainsFunc(d.programs, func(p *Program) bool { return !p.forwards() }) {
			stateful = append(stateful, d.device.ID)
		}
	}

	// 3. Read the states of all pairs in one query, without a lock. Most pairs have no state.
	if len(stateful) > 0 {
		if e.states, err = s.pairStates(ctx, acct, stateful); err != nil {
			return err
		}
	}
	return e.run(ctx)
}

// evaluation is the state of a call of Evaluate.
type evaluation struct {
	s       *Service
	acct    relay.AccountID
	set     *ruleSet
	devices []*deviceFrames
	states  map[Pair]PairState
	budget  *budget
}

// deviceFrames has the frames of a device in the order in which the network received them.
type deviceFrames struct {
	device   *iot.Device
	programs []*Program
	frames   []*ruleFrame
}

// evaluates reports whether the rule evaluates frames of a trigger. A rule on silence evaluates all
// frames sent by the device.
func (p *Program) evaluates(trigger Trigger, fromDevice bool) bool {
	return p.Rule.On == trigger || p.Rule.On == OnSilent && fromDevice
}

// maxPreviousReadings is the largest number of previous readings that are read for a device.
const maxPreviousReadings = 200

func (s *Service) readingsBefore(ctx context.Context, acct relay.AccountID, deviceID string, t time.Time) ([]iot.Point, error) {
	points, err := s.deps.Fleet.Points(ctx, acct, deviceID, time.Time{}, t.Add(-1), maxPreviousReadings)
	if err != nil {
		return nil, fmt.Errorf("readings before a frame of device %s: %w", deviceID, err)
	}
	return latestOf(points), nil
}

// setPrevious sets the previous readings of each frame.
func setPrevious(frames []*ruleFrame, previous []iot.Point, zone *time.Location) {
	for _, frame := range frames {
		frame.previous = previous
		frame.prepare(zone)
		previous = latestOf(slices.Concat(previous, frame.points))
	}
}

func latestOf(points []iot.Point) []iot.Point {
	latest := make([]iot.Point, 0, len(points))
	for _, p := range newest(points) {
		latest = append(latest, *p)
	}
	return latest
}

func (s *Service) pairStates(ctx context.Context, acct relay.AccountID, deviceIDs []string) (map[Pair]PairState, error) {
	states, err := s.deps.Store.PairStates(ctx, acct, deviceIDs)
	return db.IndexBy(states, func(st PairState) Pair { return st.Pair }), err
}

type ruleDevice struct {
	program *Program
	device  *deviceFrames
}

// deliveriesPerTransaction is the largest number of deliveries that one transaction creates, unless
// several frames of a device change the state of a rule.
const deliveriesPerTransaction = 500

// firingsPerTransaction returns the number of firings that have at most deliveriesPerTransaction
// deliveries together.
func (e *evaluation) firingsPerTransaction() int {
	fanOut := 1
	for _, p := range e.set.programs {
		fanOut = max(fanOut, p.Rule.fanOut())
	}
	return max(1, deliveriesPerTransaction/fanOut)
}

// run saves the changes of states and forwards the frames of rules without a condition.
func (e *evaluation) run(ctx context.Context) error {
	var changes, forwards []ruleDevice
	for _, d := range e.devices {
		for _, p := range d.programs {
			if p.forwards() {
				forwards = append(forwards, ruleDevice{p, d})
			} else if e.changesState(p, d) {
				changes = append(changes, ruleDevice{p, d})
			}
		}
	}
	if len(changes)+len(forwards) == 0 {
		return nil
	}
	if err := e.setTypes(ctx); err != nil {
		return err
	}
	for chunk := range slices.Chunk(changes, e.firingsPerTransaction()) {
		if err := e.saveChanges(ctx, chunk); err != nil {
			return err
		}
	}
	return e.forward(ctx, forwards)
}

// changesState reports whether frames change the state of a rule for their device. The state was read
// without a lock.
func (e *evaluation) changesState(p *Program, d *deviceFrames) bool {
	pair := Pair{p.Rule.ID, d.device.ID}
	st, exists := e.states[pair]
	if !exists {
		st.Pair = pair
	}
	if p.Rule.On == OnSilent && st.AlarmID == "" {
		return false
	}
	changed := false
	for _, frame := range d.frames {
		if !p.evaluates(frame.trigger, frame.fromDevice) {
			continue
		}
		v := p.step(e.acct, &st, frame)
		if v.err != nil {
			e.s.failures.add(e.acct, p.Rule.ID, v.err, e.s.o.Now())
		}
		changed = changed || v.changed
	}
	return changed
}

func (e *evaluation) setTypes(ctx context.Context) error {
	types, err := e.s.deps.Fleet.SensorTypes(ctx)
	if err != nil {
		return fmt.Errorf("sensor types: %w", err)
	}
	for _, d := range e.devices {
		for _, frame := range d.frames {
			frame.types = types
		}
	}
	return nil
}

// saveChanges locks the states, evaluates the frames again and saves the changes.
func (e *evaluation) saveChanges(ctx context.Context, ruleDevices []ruleDevice) error {
	devices := make(map[Pair]ruleDevice, len(ruleDevices))
	pairs := make([]Pair, len(ruleDevices))
	for i, rd := range ruleDevices {
		pairs[i] = Pair{rd.program.Rule.ID, rd.device.device.ID}
		devices[pairs[i]] = rd
	}
	return e.s.updateStates(ctx, e.budget, pairs, func(d *decisionDraft, st *PairState) {
		rd := devices[st.Pair]
		for _, frame := range rd.device.frames {
			if rd.program.evaluates(frame.trigger, frame.fromDevice) {
				d.addVerdict(rd.program, st, rd.program.step(e.acct, st, frame), func() Occurrence { return frame.occurrence(rd.program, "") })
			}
		}
	})
}

// firing is an occurrence with the rule that caused it.
type firing struct {
	program *Program
	Occurrence
	raisedAt time.Time // time of the alarm; zero for a forwarded frame
}

// forward creates the deliveries of frames or adds the frames to batches. It works in chunks to limit
// memory, because each occurrence has the values of its frame.
func (e *evaluation) forward(ctx context.Context, ruleDevices []ruleDevice) error {
	type forwarding struct {
		program *Program
		frame   *ruleFrame
	}
	var single, batched []forwarding
	for _, rd := range ruleDevices {
		for _, frame := range rd.device.frames {
			switch {
			case rd.program.Rule.On != frame.trigger:
			case rd.program.Rule.Batch == (Batch{}):
				single = append(single, forwarding{rd.program, frame})
			default:
				batched = append(batched, forwarding{rd.program, frame})
			}
		}
	}
	for chunk := range slices.Chunk(single, e.firingsPerTransaction()) {
		firings := make([]firing, len(chunk))
		for i, f := range chunk {
			firings[i] = firing{program: f.program, Occurrence: f.frame.occurrence(f.program, Forwarded)}
		}
		// Rules that forward frames have no states.
		if err := e.s.saveDecision(ctx, e.budget, nil, func(d *decisionDraft, _ []PairState) { d.firings = firings }); err != nil {
			return err
		}
	}
	for chunk := range slices.Chunk(batched, deliveriesPerTransaction) {
		items := make([]Item, len(chunk))
		for i, f := range chunk {
			occurrence := f.frame.occurrence(f.program, Forwarded)
			occurrence.Rule = nil // sendBatch sets it
			items[i] = Item{RuleID: f.program.Rule.ID, Occurrence: occurrence, Batch: f.program.Rule.Batch, CollectedAt: e.s.o.Now()}
		}
		if err := e.s.collect(ctx, e.acct, e.set, items); err != nil {
			return err
		}
	}
	return nil
}
