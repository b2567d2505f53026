package rule

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/outbox"
)

// Limits of a trial.
const (
	maxTrialFrames     = 100 // frames
	defaultTrialFrames = 10  // frames
	maxRequests        = 10  // deliveries of one frame
)

// invalidLast is the problem of a Last that is not between 1 and maxTrialFrames.
const invalidLast = "The last must be between 1 and 100."

// Trial is a rule, or the id of a stored rule, to run on the last frames of a device.
type Trial struct {
	Rule     Rule // used if RuleID is empty
	RuleID   string
	DeviceID string
	Last     int // number of frames, at most 100; 0 means 10
}

// TrialResult is the result of a rule's trial on one frame.
type TrialResult struct {
	Time    time.Time
	Matched bool
	State   State
	Reason  string
	// Readings are those of the frame, by key; none for a silence.
	Readings map[string]Value
	// Requests are the deliveries that would be created.
	Requests []outbox.Delivery
}

// TrialRequest is the body of a request for a trial: either a rule or the id of a stored rule.
type TrialRequest struct {
	Rule     *Change `json:"rule"`
	RuleID   string  `json:"rule_id"`
	DeviceID string  `json:"device_id"`
	Last     *int    `json:"last"`
}

// Trial checks the request. Its error is relay.KindInvalid. Problems of the rule have fields that
// begin with "rule.".
func (r TrialRequest) Trial() (Trial, error) {
	t := Trial{RuleID: r.RuleID, DeviceID: r.DeviceID, Last: defaultTrialFrames}
	p := relay.Problems{}
	if (r.Rule == nil) == (r.RuleID == "") {
		p.Add("rule", "Give either a rule or a rule id.")
	}
	p.Require("device_id", r.DeviceID)
	if r.Last != nil {
		if t.Last = *r.Last; t.Last < 1 || t.Last > maxTrialFrames {
			p.Add("last", invalidLast)
		}
	}
	if r.Rule != nil {
		var err error
		t.Rule, err = r.Rule.New()
		p.AddAll("rule.", relay.FieldsOf(err))
	}
	return t, p.Err()
}

// MapFields returns an error of Service.Try with the field names of the request.
func (r TrialRequest) MapFields(err error) error {
	if r.Rule == nil || relay.KindOf(err) != relay.KindInvalid {
		return err
	}
	p := relay.Problems{}
	for field, problems := range relay.FieldsOf(err) {
		if field != "device_id" {
			field = "rule." + field
		}
		p[field] = problems
	}
	return p.Err()
}

// Try runs a rule on the last frames of a device, oldest first, as if the rule had existed before
// them. It saves and sends nothing. It rebuilds the frames from the stored readings and, if frames of
// the device are logged, from the raw frames.
//
// It returns relay.KindNotFound if there is no such rule or device, and relay.KindInvalid like Create
// or if the number of frames is out of range.
func (s *Service) Try(ctx context.Context, acct relay.AccountID, t Trial) ([]TrialResult, error) {
	if t.Last < 0 || t.Last > maxTrialFrames {
		return nil, relay.Invalid("last", invalidLast)
	}
	r := t.Rule
	if t.RuleID != "" {
		var err error
		if r, err = s.deps.Store.Rule(ctx, acct, t.RuleID); err != nil {
			return nil, err
		}
	}
	p, err := s.check(&r)
	if err != nil {
		return nil, err
	}
	device, err := s.deps.Fleet.Device(ctx, acct, t.DeviceID)
	if err != nil {
		return nil, err
	}

	// 1. Rebuild the last frames, with the previous readings of each.
	rawFrames, err := s.deps.Fleet.Frames(ctx, acct, device.ID)
	if err != nil {
		return nil, fmt.Errorf("frames of device %s: %w", device.ID, err)
	}
	points, err := s.deps.Fleet.Points(ctx, acct, device.ID, time.Time{}, time.Time{}, 1000)
	if err != nil {
		return nil, fmt.Errorf("readings of device %s: %w", device.ID, err)
	}
	types, err := s.deps.Fleet.SensorTypes(ctx)
	if err != nil {
		return nil, fmt.Errorf("sensor types: %w", err)
	}
	frames := rebuildFrames(&device, p.Rule.On, rawFrames, points)
	for _, frame := range frames {
		frame.types = types
	}
	slices.SortStableFunc(frames, func(a, b *ruleFrame) int { return a.frameAt.Compare(b.frameAt) })
	setPrevious(frames, nil, s.o.Settings.Zone)
	frames = frames[max(0, len(frames)-cmp.Or(t.Last, defaultTrialFrames)):]

	// 2. Evaluate the frames, and for a rule on silence also the gaps between them.
	trial := &trial{s: s, acct: acct, program: p, device: &device, st: PairState{Pair: Pair{p.Rule.ID, device.ID}}}
	if p.Rule.On != OnSilent {
		trial.evaluateFrames(frames)
		return trial.results, nil
	}
	for i, frame := range frames {
		trial.add(frame.frameAt, p.step(acct, &trial.st, frame), func() Occurrence { return frame.occurrence(p, "") })
		checkAt := s.o.Now()
		if i+1 < len(frames) {
			checkAt = frames[i+1].heardAt
		}
		if v := p.evaluateSilence(acct, &trial.st, frame.heardAt, frame.heardAt, checkAt); v.changed {
			raisedAt := trial.st.RaisedAt
			trial.add(raisedAt, v, func() Occurrence { return Occurrence{Device: device, Time: raisedAt} })
		}
	}
	return trial.results, nil
}

// rebuildFrames returns frames rebuilt from points and raw frames, one for each time.
func rebuildFrames(d *iot.Device, on Trigger, rawFrames []iot.RawFrame, points []iot.Point) (frames []*ruleFrame) {
	byTime := make(map[int64]*ruleFrame)
	frameAt := func(t time.Time) *ruleFrame {
		frame := byTime[t.UnixNano()]
		if frame == nil {
			frame = &ruleFrame{device: d, frameAt: t, heardAt: t, trigger: OnReading, fromDevice: true}
			byTime[t.UnixNano()] = frame
			frames = append(frames, frame)
		}
		return frame
	}
	if on != OnEvent {
		for _, p := range points {
			frame := frameAt(p.Time)
			frame.points = append(frame.points, p)
		}
	}
	for i := range rawFrames {
		f := &rawFrames[i]
		isUplink := f.Kind == string(decoders.Uplink)
		if f.Time.IsZero() || f.Refused != "" || isUplink == (on == OnEvent) {
			continue
		}
		frame := frameAt(f.Time)
		frame.record = f.ID
		if isUplink {
			frame.radio = &iot.RadioData{DeviceID: f.DeviceID, Time: f.Time, FCnt: f.FCnt, FPort: f.FPort, RSSI: f.RSSI, SNR: f.SNR, Frame: true}
			if f.Gateways > 0 {
				frame.radio.Gateways = new(int64(f.Gateways))
			}
		} else {
			frame.trigger, frame.event, frame.fromDevice = OnEvent, map[string]any{"type": f.Kind}, iot.FromDevice(decoders.FrameKind(f.Kind))
			if a, ok := f.Arrival(0); ok {
				frame.event = eventOf(&a.Frame)
			}
		}
	}
	return frames
}

type trial struct {
	s       *Service
	acct    relay.AccountID
	program *Program
	device  *iot.Device
	st      PairState
	results []TrialResult
}

// evaluateFrames evaluates frames in order, and the state when it is due between two frames.
func (t *trial) evaluateFrames(frames []*ruleFrame) {
	batch := []firing{}
	for i, frame := range frames {
		switch {
		case t.program.forwards():
			batch = append(batch, firing{program: t.program, Occurrence: frame.occurrence(t.program, Forwarded)})
			// A batch ends with the last frame, when it is full, and before a frame received
			// Batch.Every or more after the batch's first frame.
			b, n := t.program.Rule.Batch, len(batch)
			if b == (Batch{}) || i+1 == len(frames) || b.Count > 0 && n >= b.Count ||
				b.Every > 0 && frames[i+1].heardAt.Sub(frames[i+1-n].heardAt) >= b.Every {
				t.addForwarded(batch)
				batch = batch[:0]
			}
			continue
		case !t.st.Due.IsZero() && t.st.Due.Before(frame.heardAt):
			t.evaluateDue()
		}
		v := t.program.step(t.acct, &t.st, frame)
		t.add(frame.frameAt, v, func() Occurrence { return frame.occurrence(t.program, "") })
	}
	if !t.st.Due.IsZero() && t.st.Due.Before(t.s.o.Now()) {
		t.evaluateDue()
	}
}

// addForwarded adds the results of the frames of one request. The last result has the request.
func (t *trial) addForwarded(batch []firing) {
	occurrences := make([]Occurrence, len(batch))
	for i, f := range batch {
		occurrences[i] = f.Occurrence
		t.results = append(t.results, TrialResult{Time: f.Time, Matched: true, State: Forwarded, Reason: "the rule has no condition", Readings: f.Readings})
	}
	lastResult := &t.results[len(t.results)-1]
	lastResult.Requests, lastResult.Reason = t.requests(occurrences, lastResult.Reason)
}

func (t *trial) evaluateDue() {
	startOccurrence, dueAt := t.st.StartOccurrence, t.st.Due
	v := t.program.evaluateDue(t.acct, &t.st, dueAt)
	if v.State != "" {
		t.add(dueAt, v, func() Occurrence { return t.program.dueOccurrence(startOccurrence, &t.st, *t.device, dueAt) })
	}
}

// add adds the result of a verdict.
func (t *trial) add(resultTime time.Time, v verdict, newOccurrence func() Occurrence) {
	r := TrialResult{Time: resultTime, Matched: v.matched, State: v.State, Reason: v.Reason, Readings: newOccurrence().Readings}
	if v.State != "" {
		d := &decisionDraft{}
		d.addVerdict(t.program, &t.st, v, newOccurrence)
		r.Requests, r.Reason = t.requests([]Occurrence{d.firings[0].Occurrence}, v.Reason)
	}
	t.results = append(t.results, r)
}

// requests returns the deliveries of occurrences, and reason with the failures of expressions added.
func (t *trial) requests(occurrences []Occurrence, reason string) ([]outbox.Delivery, string) {
	for i := range occurrences {
		occurrences[i].Rule = &t.program.Rule
	}
	deliveries, err := t.program.actions.deliveries(occurrences, t.acct, t.s.o.Settings, t.program.Rule.fanOut())
	if err != nil {
		reason += "; " + err.Error()
	}
	if n := len(deliveries); n > maxRequests {
		deliveries, reason = deliveries[:maxRequests], fmt.Sprintf("%s; %d more requests are not shown", reason, n-maxRequests)
	}
	return deliveries, reason
}
