package iot

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
)

// Effect is what storing a reading again does to the history.
type Effect string

// The effects. A reading Stays that is stored at a frame's time and that the
// frame gives no more: nothing overwrites it.
const (
	Added     Effect = "added"
	Changed   Effect = "changed"
	Unchanged Effect = "unchanged"
	Stays     Effect = "stays"
)

// Effects lists them.
func Effects() []Effect { return []Effect{Added, Changed, Unchanged, Stays} }

// Difference is one reading as it would be, against what is stored.
type Difference struct {
	Effect Effect
	Key    string
	// SensorID is empty where the device would have to be made first.
	SensorID, SensorTypeID string
	Time                   time.Time
	Old, New               *Point // nil where there is none
	// Latest says that no newer reading of the sensor is known: the latest
	// value would be the new one.
	Latest bool
}

// differences compares what frames would store with what is stored.
func (s *Service) differences(ctx context.Context, b *batch, out []Foretold) error {
	type owner struct {
		acct   account.ID
		device string
	}
	frames := make(map[owner][]int)
	for i, w := range b.all {
		switch {
		case w.device == nil || w.out.Duplicate:
		case w.device.Device.ID == "":
			out[i].Readings = fresh(w)
		default:
			o := owner{w.Account, w.device.Device.ID}
			frames[o] = append(frames[o], i)
		}
	}
	for o, at := range frames {
		var of []*work
		for _, i := range at {
			of = append(of, b.all[i])
		}
		h, err := s.history(ctx, o.acct, o.device, of)
		if err != nil {
			return err
		}
		for _, i := range at {
			out[i].Readings = h.compare(b.all[i])
		}
	}
	return nil
}

// fresh are the readings of a device that is not there yet.
func fresh(w *work) []Difference {
	var out []Difference
	for i := range w.points {
		out = append(out, different(&w.points[i], nil, true))
	}
	return out
}

// history is what is stored of a device around some frames.
type history struct {
	stored map[moment]Point
	at     map[int64][]moment
	latest map[string]time.Time // by sensor
}

// moment names a reading of a device.
type moment struct {
	sensor string
	ns     int64
}

// history reads what is stored of a device from the first to the last time that
// some of its frames speak of.
func (s *Service) history(ctx context.Context, acct account.ID, device string, of []*work) (*history, error) {
	o, err := s.store.Overview(ctx, acct, device)
	if relay.KindOf(err) == relay.KindNotFound {
		return &history{}, nil // deleted meanwhile
	}
	if err != nil {
		return nil, fmt.Errorf("iot: device %s: %w", device, err)
	}
	h := &history{stored: make(map[moment]Point), at: make(map[int64][]moment), latest: make(map[string]time.Time)}
	latest, err := s.latest(ctx, acct, device, o.Sensors)
	if err != nil {
		return nil, err
	}
	for _, p := range latest {
		h.latest[p.SensorID] = p.Time
	}
	q := Query{Account: acct, DeviceID: device, Types: typesOf(o.Sensors), Limit: MaxReadings}
	if len(q.Types) == 0 {
		return h, nil
	}
	for _, one := range spans(of) {
		q.From, q.To = one.from, one.to
		if err := s.remembered(ctx, q, h); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// span is a time that is read in one go.
type span struct{ from, to time.Time }

// apart is how far apart two frames are between which nothing is read: a few
// frames of a week are not worth all that was stored in it.
const apart = 10 * time.Minute

// spans are the times that frames speak of.
func spans(of []*work) []span {
	var times []time.Time
	for _, w := range of {
		if !w.at.IsZero() {
			times = append(times, w.at)
		}
		for i := range w.points {
			times = append(times, w.points[i].Time)
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	var out []span
	for _, t := range times {
		if n := len(out); n > 0 && t.Sub(out[n-1].to) <= apart {
			out[n-1].to = t
			continue
		}
		out = append(out, span{t, t})
	}
	return out
}

// remembered fills a history page by page, newest first. Pages overlap by their
// last moment, unless a page is of one moment alone.
func (s *Service) remembered(ctx context.Context, q Query, h *history) error {
	for {
		points, err := s.readings.Readings(ctx, q)
		if err != nil {
			return relay.Errorf(relay.KindUnavailable, "iot: stored readings: %w", err)
		}
		for _, p := range points {
			m := moment{p.SensorID, p.Time.UnixNano()}
			if _, ok := h.stored[m]; !ok {
				h.at[m.ns] = append(h.at[m.ns], m)
			}
			h.stored[m] = p
		}
		if len(points) < q.Limit {
			return nil
		}
		last := points[len(points)-1].Time
		if q.To = last; points[0].Time.Equal(last) {
			q.To = last.Add(-1)
		}
		if q.To.Before(q.From) {
			return nil
		}
	}
}

// compare lists the readings that a frame would give in its own order, and then
// those that are stored at its time and that it gives no more.
func (h *history) compare(w *work) []Difference {
	var out []Difference
	given := make(map[moment]bool, len(w.points))
	for i := range w.points {
		p := &w.points[i]
		m := moment{p.SensorID, p.Time.UnixNano()}
		given[m] = true
		latest, known := h.latest[p.SensorID]
		var old *Point
		if stored, ok := h.stored[m]; ok {
			old = &stored
		}
		out = append(out, different(p, old, !known || !p.Time.Before(latest)))
	}
	for _, m := range h.at[w.at.UnixNano()] {
		if given[m] {
			continue
		}
		p := h.stored[m]
		out = append(out, Difference{
			Effect: Stays, Key: p.Key, SensorID: p.SensorID, SensorTypeID: p.Type, Time: p.Time,
			Old: &p, Latest: p.Time.Equal(h.latest[p.SensorID]),
		})
	}
	return out
}

func different(p, old *Point, latest bool) Difference {
	d := Difference{
		Effect: Changed, Key: p.Key, SensorID: p.SensorID, SensorTypeID: p.Type, Time: p.Time,
		Old: old, New: p, Latest: latest,
	}
	switch {
	case old == nil:
		d.Effect = Added
	case old.IsText == p.IsText && old.Type == p.Type && (p.IsText && old.Text == p.Text || !p.IsText && old.Value == p.Value):
		d.Effect = Unchanged
	}
	return d
}

// Changes reports whether any of them is more than unchanged.
func Changes(all []Difference) bool {
	return slices.ContainsFunc(all, func(d Difference) bool { return d.Effect != Unchanged })
}
