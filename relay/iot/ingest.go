package iot

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay/account"
)

// Ingest takes a batch of frames through every step and returns what became of
// each. It stores nothing twice: frames seen before are dropped, and points of
// a record that is processed again overwrite themselves.
//
// An error means that a back end did not answer and that the whole batch has to
// come again; relay.KindUnavailable in most cases.
func (s *Service) Ingest(ctx context.Context, arrivals []Arrival) ([]Outcome, error) {
	b := newBatch(arrivals)
	for _, step := range [...]func(context.Context, *batch) error{
		s.refresh, s.claim, s.identify, s.decode, s.save,
	} {
		if err := step(ctx, b); err != nil {
			return nil, err
		}
	}
	return b.outcomes(), nil
}

// batch is the frames of one call, grouped by account.
type batch struct {
	all    []*work
	groups map[account.ID][]*work
}

// work is one frame on its way through the steps.
type work struct {
	Arrival
	out    Outcome
	device *profile
	at     time.Time
	points []Point
	uplink *Uplink
}

func newBatch(arrivals []Arrival) *batch {
	b := &batch{all: make([]*work, len(arrivals)), groups: make(map[account.ID][]*work, 1)}
	items := make([]work, len(arrivals))
	for i, a := range arrivals {
		w := &items[i]
		w.Arrival = a
		b.all[i] = w
		b.groups[a.Account] = append(b.groups[a.Account], w)
	}
	return b
}

func (b *batch) outcomes() []Outcome {
	out := make([]Outcome, len(b.all))
	for i, w := range b.all {
		out[i] = w.out
	}
	return out
}

// open reports whether the frame still has steps before it.
func (w *work) open() bool { return w.out.Refused == "" && !w.out.Duplicate }

func (w *work) refuse(format string, args ...any) {
	w.out.Refused = fmt.Sprintf(format, args...)
}

// lost records a point that the store will never take.
func (w *work) lost(p Point, reason string) {
	w.out.Lost = append(w.out.Lost, p.Key+": "+reason)
	w.out.Points = slices.DeleteFunc(w.out.Points, func(q Point) bool {
		return q.SensorID == p.SensorID && q.Time.Equal(p.Time)
	})
}

func (w *work) note(format string, args ...any) {
	if w.out.Note != "" {
		w.out.Note += "; "
	}
	w.out.Note += fmt.Sprintf(format, args...)
}

// claim drops the frames that an earlier record brought.
func (s *Service) claim(ctx context.Context, b *batch) error {
	for acct, group := range b.groups {
		var frames []Seen
		var of []*work
		for _, w := range group {
			if w.Frame.DedupID == "" || w.Frame.Identifier == "" {
				continue
			}
			frames = append(frames, Seen{Device: w.Frame.Identifier, Dedup: string(w.Frame.Kind) + w.Frame.DedupID, Record: w.Record})
			of = append(of, w)
		}
		if len(frames) == 0 {
			continue
		}
		first, err := s.store.Claim(ctx, acct, frames, s.options.DedupWindow)
		if err != nil {
			return fmt.Errorf("iot: check for duplicates: %w", err)
		}
		for i, w := range of {
			w.out.Duplicate = first[i] != w.Record
		}
	}
	return nil
}

// decode turns every uplink into calibrated points.
func (s *Service) decode(ctx context.Context, b *batch) error {
	for _, w := range b.all {
		if !w.open() || w.device == nil {
			continue
		}
		var note string
		if w.at, note = SampleTime(&w.Frame, w.ReceivedAt); note != "" {
			w.note("%s", note)
		}
		w.out.DeviceID = w.device.Device.ID
		w.uplink = uplinkOf(w)
		if w.Frame.Kind == decoders.Uplink {
			if err := s.read(ctx, w); err != nil {
				return err
			}
		}
	}
	return nil
}

// read decodes one uplink and maps its keys to sensors.
func (s *Service) read(ctx context.Context, w *work) error {
	d := w.device
	switch {
	case w.Frame.Encrypted:
		w.refuse("the payload is encrypted")
	case d.decoder == nil:
		w.refuse("device %s has no decoder", d.Device.Identifier)
	case d.decoder.broken != nil:
		w.refuse("decoder %s: %v", d.decoder.ID, d.decoder.broken)
	}
	if !w.open() {
		return nil
	}
	w.Frame.Params = d.params
	result, err := d.decoder.codec.Decode(&w.Frame)
	if err != nil {
		w.remark(len(result.Readings) > 0, err.Error())
	}
	for _, e := range result.Errors {
		w.remark(len(result.Readings) > 0, e)
	}
	for _, warning := range result.Warnings {
		w.note("%s", warning)
	}
	if !w.open() {
		return nil
	}
	if err := s.addMissingSensors(ctx, w.Account, d); err != nil {
		return err
	}
	w.mapReadings(result.Readings)
	return nil
}

// remark keeps what went wrong: as a note when something could be read all the
// same, else as the reason why nothing is stored.
func (w *work) remark(partly bool, text string) {
	if partly {
		w.note("%s", text)
		return
	}
	w.refuse("%s", text)
}

// mapReadings makes points of the readings whose keys have a sensor.
func (w *work) mapReadings(readings []decoders.Reading) {
	var strangers []string
	sensors := *w.device.sensors.Load()
	for i := range readings {
		r := &readings[i]
		sensor, ok := sensors[r.Key]
		if !ok {
			strangers = append(strangers, r.Key)
			continue
		}
		w.points = append(w.points, w.point(sensor, r))
	}
	if len(w.points) > 0 {
		return
	}
	if len(strangers) == 0 {
		w.refuse("the decoder found no values")
		return
	}
	slices.Sort(strangers)
	w.refuse("no sensor is mapped to any key of the frame: %s", clip(strings.Join(slices.Compact(strangers), ", "), 300))
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// point calibrates one reading: value × slope + offset.
func (w *work) point(sensor *Sensor, r *decoders.Reading) Point {
	p := Point{
		Account: w.Account, Type: sensor.SensorTypeID, DeviceID: sensor.DeviceID, Identifier: w.device.Device.Identifier,
		SensorID: sensor.ID, Key: sensor.Key, Time: w.at, Text: r.Text, IsText: r.IsText,
	}
	if !r.IsText {
		p.Value = r.Value*sensor.Slope + sensor.Offset
	}
	if !r.Time.IsZero() && Plausible(r.Time, w.ReceivedAt) {
		p.Time = r.Time.UTC()
	}
	return p
}

// save writes points to the reading store and the latest values beside it.
func (s *Service) save(ctx context.Context, b *batch) error {
	var write Batch
	var of []*work // of[i] owns write.Points[i]
	latest := make(map[account.ID][]Point, len(b.groups))
	for _, w := range b.all {
		if !w.open() {
			continue
		}
		for _, p := range w.points {
			write.Points = append(write.Points, p)
			of = append(of, w)
		}
		if w.uplink != nil {
			write.Uplinks = append(write.Uplinks, *w.uplink)
		}
		latest[w.Account] = append(latest[w.Account], w.points...)
		w.out.Points = w.points
	}
	var refused []Refused
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		refused, err = s.readings.Write(ctx, write)
		return err
	})
	for acct, points := range latest {
		g.Go(func() error { return s.store.SetLatest(ctx, acct, points) })
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("iot: store readings: %w", err)
	}
	for _, r := range refused {
		if r.Point >= 0 {
			of[r.Point].lost(write.Points[r.Point], r.Reason)
		}
	}
	return nil
}

// uplinkOf keeps the radio side of a frame, if it says anything of it.
func uplinkOf(w *work) *Uplink {
	f := &w.Frame
	if f.Kind != decoders.Uplink && f.Kind != decoders.Status {
		return nil
	}
	u := Uplink{
		Account: w.Account, DeviceID: w.device.Device.ID, Identifier: w.device.Device.Identifier,
		Time: w.at, Battery: f.Battery,
	}
	if f.HasFCnt {
		u.FCnt = &f.FCnt
	}
	if f.HasFPort {
		u.FPort = new(int64(f.FPort))
	}
	if n := len(f.Gateways); n > 0 {
		u.Gateways = new(int64(n))
	}
	if best, ok := f.BestGateway(); ok {
		u.RSSI, u.SNR = best.RSSI, best.SNR
	}
	if u.FCnt == nil && u.Battery == nil && u.Gateways == nil {
		return nil
	}
	return &u
}
