package admin

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/ingest/uplink"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/gateway"
	"github.com/penstock/penstock/relay/iot"
)

// maxRehearsed is how many events a dry run looks into: the newest of those that
// are selected.
const maxRehearsed = 10_000

// maxRehearsal is how long it goes on: an answer has a minute.
const maxRehearsal = 40 * time.Second

// Rehearsed is the answer of a dry run.
type Rehearsed struct {
	Count int `json:"count"` // of the events selected
	// Examined is how many of them were looked into: frames, at most
	// 10,000, and for no longer than 40 seconds.
	Examined int             `json:"examined"`
	Events   EventTally      `json:"events"`
	Readings ReadingTally    `json:"readings"`
	Data     []ForetoldEvent `json:"data"` // the first that differ, in the order of arrival
	// More says that there are more than data shows.
	More bool       `json:"more"`
	Away []awayJSON `json:"away,omitempty"` // gateways whose events are missing
}

// EventTally counts what becomes of the events that were looked into.
type EventTally struct {
	Done        int `json:"done"`
	Quarantined int `json:"quarantined"`
	Differ      int `json:"differ"` // in state, reason or a reading
}

// ReadingTally counts readings by what a replay does to them.
type ReadingTally struct {
	Added     int `json:"added"`
	Changed   int `json:"changed"`
	Unchanged int `json:"unchanged"`
	Stays     int `json:"stays"`
}

// ForetoldEvent is an event as it is and as it would be.
type ForetoldEvent struct {
	ID         string        `json:"id"`
	ReceivedAt string        `json:"received_at"`
	Account    account.ID    `json:"account"`
	State      event.State   `json:"state"`
	Reason     string        `json:"reason"`
	NewState   event.State   `json:"new_state"`
	NewReason  string        `json:"new_reason"`
	Devices    []DeviceDelta `json:"devices"`
}

// DeviceDelta is what would change of one device.
type DeviceDelta struct {
	Identifier string         `json:"identifier"`
	DeviceID   string         `json:"device_id"` // empty for one that would be made
	Duplicate  bool           `json:"duplicate"` // another event brought the frame
	Note       string         `json:"note"`
	Readings   []ReadingDelta `json:"readings"`
}

// ReadingDelta is a reading before and after; a number, a text or null.
type ReadingDelta struct {
	Effect       iot.Effect `json:"effect"`
	Key          string     `json:"key"`
	SensorID     string     `json:"sensor_id"`
	SensorTypeID string     `json:"sensor_type_id"`
	Time         string     `json:"time"`
	Old          any        `json:"old"`
	New          any        `json:"new"`
	Latest       bool       `json:"latest"` // it is, or would be, the sensor's latest
}

// rehearse answers a dry run. Of messages it only counts: what becomes of one is
// told by the operation that explains.
func (s *Surface) rehearse(c *fiber.Ctx, intakes []*intake.Intake, f intake.Filter, limit int, others []gateway.Gateway) error {
	out := Rehearsed{Data: []ForetoldEvent{}}
	for _, in := range intakes {
		n, err := s.rehearseOne(c.UserContext(), in, f, limit, &out)
		if err != nil {
			return err
		}
		out.Count += n
	}
	answers, away := each[Rehearsed](c.UserContext(), s.Peers, others, passOn(c))
	for _, node := range slices.Sorted(maps.Keys(answers)) {
		out.join(answers[node], limit)
	}
	out.Away = away
	return c.JSON(out)
}

// join adds what another gateway found.
func (r *Rehearsed) join(other Rehearsed, limit int) {
	r.Count += other.Count
	r.Examined += other.Examined
	r.Events.Done += other.Events.Done
	r.Events.Quarantined += other.Events.Quarantined
	r.Events.Differ += other.Events.Differ
	r.Readings.Added += other.Readings.Added
	r.Readings.Changed += other.Readings.Changed
	r.Readings.Unchanged += other.Readings.Unchanged
	r.Readings.Stays += other.Readings.Stays
	room := min(limit-len(r.Data), len(other.Data))
	r.Data = append(r.Data, other.Data[:room]...)
	r.More = r.More || other.More || room < len(other.Data)
}

func (s *Surface) rehearseOne(ctx context.Context, in *intake.Intake, f intake.Filter, limit int, out *Rehearsed) (int, error) {
	if in.Kind() != event.Uplink || s.Bench == nil {
		return in.Walk(ctx, f, 0, nil)
	}
	late := s.Now().Add(maxRehearsal)
	rehearsal := s.Bench.Rehearse()
	return in.Walk(ctx, f, maxRehearsed, func(sel intake.Selection) error {
		if s.Now().After(late) {
			return nil // examined tells
		}
		foretold, err := rehearsal.Posts(ctx, sel.Items)
		if err != nil {
			return err
		}
		for i := range foretold {
			out.add(&sel.Events[i], &foretold[i], limit)
		}
		return nil
	})
}

// add counts an event and lists it if it differs and there is room.
func (r *Rehearsed) add(e *event.Event, f *uplink.Foretold, limit int) {
	r.Examined++
	if f.State == event.Done {
		r.Events.Done++
	} else {
		r.Events.Quarantined++
	}
	differs := e.State != f.State || e.Reason != f.Reason
	for i := range f.Frames {
		for _, d := range f.Frames[i].Readings {
			r.Readings.count(d.Effect)
		}
		differs = differs || iot.Changes(f.Frames[i].Readings)
	}
	if !differs {
		return
	}
	r.Events.Differ++
	if len(r.Data) == limit {
		r.More = true
		return
	}
	r.Data = append(r.Data, foretoldOf(e, f))
}

func (t *ReadingTally) count(e iot.Effect) {
	switch e {
	case iot.Added:
		t.Added++
	case iot.Changed:
		t.Changed++
	case iot.Unchanged:
		t.Unchanged++
	case iot.Stays:
		t.Stays++
	}
}

func foretoldOf(e *event.Event, f *uplink.Foretold) ForetoldEvent {
	out := ForetoldEvent{
		ID: e.ID, ReceivedAt: stamp(e.ReceivedAt), Account: e.Account, State: e.State, Reason: e.Reason,
		NewState: f.State, NewReason: f.Reason, Devices: make([]DeviceDelta, len(f.Frames)),
	}
	for i, frame := range f.Frames {
		d := DeviceDelta{
			Identifier: frame.Identifier, DeviceID: frame.DeviceID, Duplicate: frame.Duplicate, Note: frame.Note,
			Readings: make([]ReadingDelta, len(frame.Readings)),
		}
		for n, r := range frame.Readings {
			d.Readings[n] = ReadingDelta{
				Effect: r.Effect, Key: r.Key, SensorID: r.SensorID, SensorTypeID: r.SensorTypeID, Time: stamp(r.Time),
				Old: plain(r.Old), New: plain(r.New), Latest: r.Latest,
			}
		}
		out.Devices[i] = d
	}
	return out
}

// plain is a point's number or text, nil for none.
func plain(p *iot.Point) any {
	switch {
	case p == nil:
		return nil
	case p.IsText:
		return p.Text
	}
	return p.Value
}
