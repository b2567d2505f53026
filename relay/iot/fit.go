package iot

import (
	"context"
	"fmt"
	"maps"

	"github.com/penstock/penstock/relay/account"
)

// fitSensors makes a device's sensors those that its decoder maps: it adds what
// is missing and follows a key that was given another type. What was mapped
// once and is no more stays with the device, and is not fed.
//
// A profile is fitted once: whatever would call for it again changes the
// account's version, and makes a new profile.
func (s *Service) fitSensors(ctx context.Context, w *work, p *profile) error {
	if p.feeds.Load() == nil {
		if err := s.fit(ctx, w, p); err != nil {
			return err
		}
	}
	if p.crowded.Load() {
		w.crowded = s.noSeries()
	}
	return nil
}

func (s *Service) fit(ctx context.Context, w *work, p *profile) error {
	have := *p.sensors.Load()
	missing, retyped := s.sensorsFor(p.Device, p.decoder, have), retypings(p.decoder, have)
	if len(missing) > 0 {
		n, err := s.store.CountSensors(ctx, w.Account)
		if err != nil {
			return fmt.Errorf("iot: count sensors: %w", err)
		}
		if n+len(missing) > s.options.MaxSeries {
			p.crowded.Store(true)
			missing = nil
		}
	}
	if len(missing)+len(retyped) > 0 {
		if err := s.change(ctx, w.Account, p, missing, retyped); err != nil {
			return err
		}
	}
	feeds := make(map[string]*Sensor, len(p.decoder.Sensors))
	for _, m := range p.decoder.Sensors {
		if sensor := (*p.sensors.Load())[m.Key]; sensor != nil {
			feeds[m.Key] = sensor
		}
	}
	p.feeds.Store(&feeds)
	return nil
}

// retypings are the keys whose sensors have another type than they are mapped
// to.
func retypings(c *compiled, have map[string]*Sensor) map[string]string {
	var out map[string]string
	for _, m := range c.Sensors {
		if sensor := have[m.Key]; sensor != nil && sensor.SensorTypeID != m.SensorTypeID {
			if out == nil {
				out = make(map[string]string)
			}
			out[m.Key] = m.SensorTypeID
		}
	}
	return out
}

func (s *Service) noSeries() string {
	return fmt.Sprintf("the account may have no more than %d series (sensors of devices)", s.options.MaxSeries)
}

// seriesLeft notes that a new device's sensors would be more than there may be.
func (s *Service) seriesLeft(ctx context.Context, acct account.ID, p Problems, more int) error {
	if more == 0 {
		return nil
	}
	n, err := s.store.CountSensors(ctx, acct)
	if err != nil {
		return fmt.Errorf("iot: count sensors: %w", err)
	}
	if n+more > s.options.MaxSeries {
		p.Add("decoder_id", "The decoder makes too many sensors: "+s.noSeries()+".")
	}
	return nil
}

// change adds sensors and gives others their types, and remembers what stands.
func (s *Service) change(ctx context.Context, acct account.ID, p *profile, missing []Sensor, retyped map[string]string) error {
	if len(missing) > 0 {
		if err := s.store.AddSensors(ctx, acct, p.Device.ID, missing); err != nil {
			return fmt.Errorf("iot: device %s: add sensors: %w", p.Device.ID, err)
		}
	}
	if len(retyped) > 0 {
		if err := s.store.RetypeSensors(ctx, acct, p.Device.ID, retyped); err != nil {
			return fmt.Errorf("iot: device %s: types of sensors: %w", p.Device.ID, err)
		}
	}
	sensors, err := s.store.Sensors(ctx, acct, p.Device.ID)
	if err != nil {
		return fmt.Errorf("iot: device %s: sensors: %w", p.Device.ID, err)
	}
	fitted := maps.Clone(*p.sensors.Load())
	for i := range sensors {
		fitted[sensors[i].Key] = &sensors[i]
	}
	p.sensors.Store(&fitted)
	return nil
}
