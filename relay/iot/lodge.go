package iot

import (
	"context"
	"fmt"
	"maps"

	"github.com/penstock/penstock/relay/account"
)

// lodging gives frames the devices that Ingest would give them, and makes none.
type lodging struct {
	s      *Service
	fitted map[*profile]*profile
	guests map[string]*profile // devices that are not there yet, by identifier
}

func (s *Service) newLodging() *lodging {
	return &lodging{s: s, fitted: make(map[*profile]*profile), guests: make(map[string]*profile)}
}

// group lodges the frames of one account.
func (l *lodging) group(ctx context.Context, acct account.ID, group []*work) error {
	v := &visit{acct: acct, known: l.s.memory.of(acct)}
	if err := l.s.load(ctx, v, group); err != nil {
		return err
	}
	for _, w := range group {
		if !w.open() {
			continue
		}
		p, err := l.profile(ctx, v, w)
		if err != nil {
			return err
		}
		if p == nil {
			continue // refused
		}
		if w.device, err = l.fit(ctx, acct, p); err != nil {
			return err
		}
	}
	return nil
}

// profile is the frame's device, as it is or as Ingest would make it.
func (l *lodging) profile(ctx context.Context, v *visit, w *work) (*profile, error) {
	id := w.Frame.Identifier
	p := v.known.profile(id)
	if p != nil && (w.DecoderID == "" || p.Device.DecoderID != "") {
		return p, nil
	}
	if p == nil && !imports(w.Frame.Kind) {
		w.refuse("device %s is not known", id)
		return nil, nil
	}
	name := w.DecoderID + "\x00" + id
	if guest := l.guests[name]; guest != nil {
		return guest, nil
	}
	c, err := l.s.wanted(ctx, v, w)
	if err != nil || !w.open() {
		return nil, err
	}
	guest := newProfile(Device{Identifier: id, DecoderID: w.DecoderID}, nil, c)
	if p != nil {
		guest = newProfile(p.Device, nil, c)
		guest.Device.DecoderID = w.DecoderID
		guest.sensors.Store(p.sensors.Load())
	}
	l.guests[name] = guest
	return guest, nil
}

// fit returns a profile with the sensors that the device would have, as
// Service.fit makes them.
func (l *lodging) fit(ctx context.Context, acct account.ID, p *profile) (*profile, error) {
	if p.decoder == nil {
		return p, nil
	}
	if done := l.fitted[p]; done != nil {
		return done, nil
	}
	have := *p.sensors.Load()
	missing := l.s.sensorsFor(p.Device, p.decoder, have)
	out := &profile{Device: p.Device, decoder: p.decoder, params: p.params}
	out.sensors.Store(&have)
	alone := p.Device.ID == "" && p.decoder.ID == "" // a source, not of the account
	if len(missing) > 0 && !alone {
		n, err := l.s.store.CountSensors(ctx, acct)
		if err != nil {
			return nil, fmt.Errorf("iot: count sensors: %w", err)
		}
		if n+len(missing) > l.s.options.MaxSeries {
			out.crowded.Store(true)
			missing = nil
		}
	}
	out.feed(missing)
	l.fitted[p] = out
	return out, nil
}

// feed makes the sensors that the decoder maps those that frames feed.
func (p *profile) feed(missing []Sensor) {
	all := maps.Clone(*p.sensors.Load())
	if all == nil {
		all = make(map[string]*Sensor, len(missing))
	}
	for i := range missing {
		if p.Device.ID == "" {
			missing[i].ID = "" // the device has no id yet
		}
		all[missing[i].Key] = &missing[i]
	}
	feeds := make(map[string]*Sensor, len(p.decoder.Sensors))
	for _, m := range p.decoder.Sensors {
		if have := all[m.Key]; have != nil {
			typed := *have
			typed.SensorTypeID = m.SensorTypeID
			feeds[m.Key] = &typed
		}
	}
	p.feeds.Store(&feeds)
}
