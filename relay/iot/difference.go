package iot

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// Effect is the effect of storing a reading again.
type Effect string

// The effects. Retained is the effect on a stored reading with the frame's time that the frame no longer
// contains: it is not overwritten.
const (
	Added     Effect = "added"
	Changed   Effect = "changed"
	Unchanged Effect = "unchanged"
	Retained  Effect = "stays"
)

// Difference compares a reading of a preview with the stored reading.
type Difference struct {
	Effect Effect
	Key    string
	// SensorID is empty if the device does not exist yet.
	SensorID, SensorTypeID string
	Time                   time.Time
	Old, New               *Point // nil if there is no such reading
	// Latest reports whether no newer reading of the sensor is stored, so that this reading is or
	// becomes its latest value.
	Latest bool
}

// setDifferences sets the Readings of the previews of a batch.
func (s *Service) setDifferences(ctx context.Context, b *frameBatch, previews []PreviewedFrame) error {
	frames := make(map[Ref][]int) // by device
	for i, w := range b.frames {
		switch {
		case w.device == nil || w.outcome.Duplicate:
		case w.device.Device.ID == "":
			for j := range w.points { // a device that does not exist yet has no readings
				previews[i].Readings = append(previews[i].Readings, diffPoint(&w.points[j], nil, true))
			}
		default:
			device := Ref{w.Account, w.device.Device.ID}
			frames[device] = append(frames[device], i)
		}
	}
	for device, indexes := range frames {
		var items []*workItem
		for _, i := range indexes {
			items = append(items, b.frames[i])
		}
		h, err := s.loadHistory(ctx, device.Account, device.ID, items)
		if err != nil {
			return err
		}
		for _, i := range indexes {
			previews[i].Readings = h.compare(b.frames[i])
		}
	}
	return nil
}

// history has the stored readings of a device.
type history struct {
	stored map[pointID]Point
	byTime map[int64][]pointID
	latest map[string]time.Time // by sensor
}

// pointID identifies a reading of a device.
type pointID struct {
	sensor string
	ns     int64
}

// loadHistory loads the stored readings of a device in the time ranges of frames.
func (s *Service) loadHistory(ctx context.Context, acct relay.AccountID, device string, items []*workItem) (*history, error) {
	sensors, err := db.OrZero(s.store.Sensors(ctx, acct, device)) // the device may have been deleted
	if err != nil {
		return nil, fmt.Errorf("iot: device %s: %w", device, err)
	}
	h := &history{stored: make(map[pointID]Point), byTime: make(map[int64][]pointID), latest: make(map[string]time.Time)}
	latest, err := s.latest(ctx, acct, device, sensors)
	if err != nil {
		return nil, err
	}
	for _, p := range latest {
		h.latest[p.SensorID] = p.Time
	}
	q := Query{Account: acct, DeviceID: device, Types: typesOf(sensors), Limit: MaxReadings}
	if len(q.Types) == 0 {
		return h, nil
	}
	for _, r := range timeRanges(items) {
		// Read page by page, newest first. Pages overlap by one timestamp, unless all readings of a
		// page have the same timestamp.
		for q.From, q.To = r.start, r.end; !q.To.Before(q.From); {
			points, err := s.readings.Readings(ctx, q)
			if err != nil {
				return nil, relay.Errorf(relay.KindUnavailable, "iot: stored readings: %w", err)
			}
			for _, p := range points {
				id := pointID{p.SensorID, p.Time.UnixNano()}
				if _, ok := h.stored[id]; !ok {
					h.byTime[id.ns] = append(h.byTime[id.ns], id)
				}
				h.stored[id] = p
			}
			if len(points) < q.Limit {
				break
			}
			oldest := points[len(points)-1].Time
			if q.To = oldest; points[0].Time.Equal(oldest) {
				q.To = oldest.Add(-1)
			}
		}
	}
	return h, nil
}

type timeRange struct{ start, end time.Time }

// maxGap is the largest gap between two times of one range. Readings of frames further apart are read
// separately, so that the preview of a few frames does not read a week of readings.
const maxGap = 10 * time.Minute

func timeRanges(items []*workItem) []timeRange {
	var times []time.Time
	for _, w := range items {
		if !w.time.IsZero() {
			times = append(times, w.time)
		}
		for i := range w.points {
			times = append(times, w.points[i].Time)
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	var ranges []timeRange
	for _, t := range times {
		if n := len(ranges); n > 0 && t.Sub(ranges[n-1].end) <= maxGap {
			ranges[n-1].end = t
			continue
		}
		ranges = append(ranges, timeRange{t, t})
	}
	return ranges
}

// compare lists the readings of a frame in their order, followed by the stored readings with the
// frame's time that the frame no longer contains.
func (h *history) compare(w *workItem) []Difference {
	var differences []Difference
	contained := make(map[pointID]bool, len(w.points))
	for i := range w.points {
		p := &w.points[i]
		id := pointID{p.SensorID, p.Time.UnixNano()}
		contained[id] = true
		latest, exists := h.latest[p.SensorID]
		var old *Point
		if stored, ok := h.stored[id]; ok {
			old = &stored
		}
		differences = append(differences, diffPoint(p, old, !exists || !p.Time.Before(latest)))
	}
	for _, id := range h.byTime[w.time.UnixNano()] {
		if contained[id] {
			continue
		}
		p := h.stored[id]
		differences = append(differences, Difference{
			Effect: Retained, Key: p.Key, SensorID: p.SensorID, SensorTypeID: p.Type, Time: p.Time,
			Old: &p, Latest: p.Time.Equal(h.latest[p.SensorID]),
		})
	}
	return differences
}

func diffPoint(p, old *Point, isLatest bool) Difference {
	d := Difference{
		Effect: Changed, Key: p.Key, SensorID: p.SensorID, SensorTypeID: p.Type, Time: p.Time,
		Old: old, New: p, Latest: isLatest,
	}
	switch {
	case old == nil:
		d.Effect = Added
	case old.IsText == p.IsText && old.Type == p.Type && (p.IsText && old.Text == p.Text || !p.IsText && old.Value == p.Value):
		d.Effect = Unchanged
	}
	return d
}

// HasChanges reports whether a difference is not Unchanged.
func HasChanges(differences []Difference) bool {
	return slices.ContainsFunc(differences, func(d Difference) bool { return d.Effect != Unchanged })
}
