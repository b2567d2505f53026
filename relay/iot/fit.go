package iot

import (
	"context"
	"fmt"
	"maps"

	"github.com/penstock/penstock/relay"
)

// fitSensors fits a device's sensors to its decoder's mapping: it adds missing
// sensors and changes the type of sensors whose key is mapped to another type.
// Sensors that are no longer mapped stay with the device and get no values.
//
// A cached device is fitted once: every change that requires fitting again changes
// the account's version and thus replaces the cached device.
func (s *Service) fitSensors(ctx context.Context, w *work, cd *cachedDevice) error {
	if cd.mapped.Load() == nil {
		if err := s.fit(ctx, w, cd); err != nil {
			return err
		}
	}
	if cd.limitReached.Load() {
		w.limitReason = s.seriesLimitReason()
	}
	return nil
}

func (s *Service) fit(ctx context.Context, w *work, cd *cachedDevice) error {
	have := *cd.sensors.Load()
	missing, retyped := s.sensorsFor(cd.Device, cd.decoder, have), retypings(cd.decoder, have)
	room, err := s.roomForSensors(ctx, w.Account, len(missing))
	if err != nil {
		return err
	}
	if !room {
		cd.limitReached.Store(true)
		missing = nil
	}
	if len(missing)+len(retyped) > 0 {
		if err := s.saveSensors(ctx, w.Account, cd, missing, retyped); err != nil {
			return err
		}
	}
	mapped := make(map[string]*Sensor, len(cd.decoder.Sensors))
	for _, m := range cd.decoder.Sensors {
		if sensor := (*cd.sensors.Load())[m.Key]; sensor != nil {
			mapped[m.Key] = sensor
		}
	}
	cd.mapped.Store(&mapped)
	return nil
}

// retypings returns the keys whose sensors have another type than the mapping.
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

func (s *Service) seriesLimitReason() string {
	return fmt.Sprintf("the account may have no more than %d series (sensors of devices)", s.options.MaxSeries)
}

// roomForSensors reports whether an account may have so many sensors more.
func (s *Service) roomForSensors(ctx context.Context, acct relay.AccountID, more int) (bool, error) {
	if more == 0 {
		return true, nil
	}
	n, err := s.store.CountSensors(ctx, acct)
	if err != nil {
		return false, fmt.Errorf("iot: count sensors: %w", err)
	}
	return n+more <= s.options.MaxSeries, nil
}

// saveSensors adds sensors, changes the types of others, and updates the cached
// device.
func (s *Service) saveSensors(ctx context.Context, acct relay.AccountID, cd *cachedDevice, missing []Sensor, retyped map[string]string) error {
	if len(missing) > 0 {
		err := s.store.AddSensors(ctx, acct, cd.Device.ID, missing)
		if err != nil {
			err = s.retryIfGone(acct, err)
			return fmt.Errorf("iot: device %s: add sensors: %w", cd.Device.ID, err)
		}
	}
	if len(retyped) > 0 {
		if err := s.store.RetypeSensors(ctx, acct, cd.Device.ID, retyped); err != nil {
			return fmt.Errorf("iot: device %s: types of sensors: %w", cd.Device.ID, err)
		}
	}
	sensors, err := s.store.Sensors(ctx, acct, cd.Device.ID)
	if err != nil {
		return fmt.Errorf("iot: device %s: sensors: %w", cd.Device.ID, err)
	}
	fitted := maps.Clone(*cd.sensors.Load())
	for i := range sensors {
		fitted[sensors[i].Key] = &sensors[i]
	}
	cd.sensors.Store(&fitted)
	return nil
}
