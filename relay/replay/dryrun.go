// Package replay previews the effect of processing stored events again.
package replay

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/iot"
)

const (
	// maxExamined is the largest number of events that a dry run examines: the newest ones of the
	// selection.
	maxExamined = 10_000
	// maxSelection limits the time for selecting events, and maxDryRun the time for the complete
	// dry run, because the request times out after half a minute.
	maxSelection = 10 * time.Second
	maxDryRun    = 20 * time.Second
)

// PreviewedPost is the expected result of processing a post again.
type PreviewedPost struct {
	State  event.State // done or quarantined
	Reason string      // reason for quarantining the event
	Frames []iot.PreviewedFrame
}

// Posts previews the effect of processing posts again.
type Posts interface {
	// Preview calls fn with the posts that a filter selects, in the order of arrival, and returns
	// their number. It searches backwards until deadline. backTo is the oldest time that the search
	// has reached, or zero if it reached the first post. If there are more posts than limit,
	// Preview calls fn with the newest ones only. It stops when stop returns true.
	Preview(ctx context.Context, f event.Filter, deadline time.Time, limit int, stop func() bool, fn func(*event.Event, *PreviewedPost)) (count int, backTo time.Time, err error)
}

// DryRun summarizes the changes that a replay would make.
type DryRun struct {
	Count int `json:"count"` // number of selected events
	// Examined is the number of examined events: at most 10,000, for at most 20 seconds, in each
	// journal of each gateway.
	Examined      int              `json:"examined"`
	Events        EventTally       `json:"events"`
	Readings      ReadingTally     `json:"readings"`
	ChangedEvents []PreviewedEvent `json:"data"` // the first events that differ, in the order of arrival
	More          bool             `json:"more"` // ChangedEvents lacks events that differ
	// SearchedTo is the oldest time that the search has reached, or zero if it reached the first event.
	SearchedTo time.Time `json:"searched_to,omitzero"`
}

// EventTally counts the examined events by their expected state.
type EventTally struct {
	Done        int `json:"done"`
	Quarantined int `json:"quarantined"`
	Changed     int `json:"differ"` // events that differ in state, reason or a reading
}

// ReadingTally counts readings by iot.Effect.
type ReadingTally struct {
	Added     int `json:"added"`
	Changed   int `json:"changed"`
	Unchanged int `json:"unchanged"`
	Retained  int `json:"stays"`
}

// Add adds the counts of u.
func (t *ReadingTally) Add(u ReadingTally) {
	t.Added += u.Added
	t.Changed += u.Changed
	t.Unchanged += u.Unchanged
	t.Retained += u.Retained
}

// PreviewedEvent is an event with its current and its expected state.
type PreviewedEvent struct {
	ID         string          `json:"id"`
	ReceivedAt time.Time       `json:"received_at"`
	Account    relay.AccountID `json:"account"`
	State      event.State     `json:"state"`
	Reason     string          `json:"reason"`
	NewState   event.State     `json:"new_state"`
	NewReason  string          `json:"new_reason"`
	Devices    []DeviceDelta   `json:"devices"`
}

// DeviceDelta has the changes that one frame makes to its device.
type DeviceDelta struct {
	Identifier string         `json:"identifier"`
	DeviceID   string         `json:"device_id"` // empty for a device that would be created
	Duplicate  bool           `json:"duplicate"` // the frame is also in another event
	Notes      []string       `json:"notes"`
	Readings   []ReadingDelta `json:"readings"`
}

// ReadingDelta is a reading before and after the replay. Old and New are numbers, strings or nil.
type ReadingDelta struct {
	Effect       iot.Effect `json:"effect"`
	Key          string     `json:"key"`
	SensorID     string     `json:"sensor_id"`
	SensorTypeID string     `json:"sensor_type_id"`
	Time         time.Time  `json:"time"`
	Old          any        `json:"old"`
	New          any        `json:"new"`
	Latest       bool       `json:"latest"` // the reading is, or would be, the latest one of the sensor
}

// Preview returns the changes that a replay of the posts selected by a filter would make. It lists
// at most limit of the events that differ.
func Preview(ctx context.Context, posts Posts, f event.Filter, limit int, now func() time.Time) (r DryRun, err error) {
	deadline := now().Add(maxDryRun)
	stop := func() bool { return now().After(deadline) }
	r.Count, r.SearchedTo, err = posts.Preview(ctx, f, time.Now().Add(maxSelection), maxExamined, stop, func(e *event.Event, post *PreviewedPost) {
		r.add(e, post, limit)
	})
	return r, err
}

// add counts an event and, up to the limit, lists it if it differs.
func (r *DryRun) add(e *event.Event, post *PreviewedPost, limit int) {
	r.Examined++
	if post.State == event.Done {
		r.Events.Done++
	} else {
		r.Events.Quarantined++
	}
	differs := e.State != post.State || e.Reason != post.Reason
	for i := range post.Frames {
		for _, d := range post.Frames[i].Readings {
			r.Readings.count(d.Effect)
		}
		differs = differs || iot.HasChanges(post.Frames[i].Readings)
	}
	if !differs {
		return
	}
	r.Events.Changed++
	if len(r.ChangedEvents) == limit {
		r.More = true
		return
	}
	preview := PreviewedEvent{
		ID: e.ID, ReceivedAt: e.ReceivedAt.UTC(), Account: e.Account, State: e.State, Reason: e.Reason, NewState: post.State, NewReason: post.Reason,
		Devices: make([]DeviceDelta, len(post.Frames)),
	}
	for i := range post.Frames {
		preview.Devices[i] = deltaOf(&post.Frames[i])
	}
	r.ChangedEvents = append(r.ChangedEvents, preview)
}

func deltaOf(f *iot.PreviewedFrame) DeviceDelta {
	delta := DeviceDelta{
		Identifier: f.Identifier, DeviceID: f.DeviceID, Duplicate: f.Duplicate, Notes: append([]string{}, f.Notes...), Readings: make([]ReadingDelta, len(f.Readings)),
	}
	for i, r := range f.Readings {
		delta.Readings[i] = ReadingDelta{
			Effect: r.Effect, Key: r.Key, SensorID: r.SensorID, SensorTypeID: r.SensorTypeID, Time: r.Time.UTC(),
			Old: valueOf(r.Old), New: valueOf(r.New), Latest: r.Latest,
		}
	}
	return delta
}

// valueOf returns the number or the string of a point, or nil for a nil point.
func valueOf(p *iot.Point) any {
	switch {
	case p == nil:
		return nil
	case p.IsText:
		return p.Text
	}
	return p.Value
}

// Join adds the result of another gateway or journal and keeps at most limit events in ChangedEvents.
func (r *DryRun) Join(other DryRun, limit int) {
	r.Count += other.Count
	r.Examined += other.Examined
	r.Events.Done += other.Events.Done
	r.Events.Quarantined += other.Events.Quarantined
	r.Events.Changed += other.Events.Changed
	r.Readings.Add(other.Readings)
	added := min(limit-len(r.ChangedEvents), len(other.ChangedEvents))
	r.ChangedEvents = append(r.ChangedEvents, other.ChangedEvents[:added]...)
	r.More = r.More || other.More || added < len(other.ChangedEvents)
	if other.SearchedTo.After(r.SearchedTo) {
		r.SearchedTo = other.SearchedTo
	}
}

func (t *ReadingTally) count(e iot.Effect) {
	switch e {
	case iot.Added:
		t.Added++
	case iot.Changed:
		t.Changed++
	case iot.Unchanged:
		t.Unchanged++
	case iot.Retained:
		t.Retained++
	}
}
