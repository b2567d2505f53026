package iot

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock/penstock/relay/account"
)

// Retired is a sensor of a deleted device whose readings have a retention: they are
// still deleted when it ends.
type Retired struct {
	SensorID      string    `json:"sensor_id"`
	RetentionDays int       `json:"retention_days"` // more than 0
	DeletedAt     time.Time `json:"deleted_at"`
}

// retire saves the sensors of a device that have a retention, before the device is
// deleted.
func (s *Service) retire(ctx context.Context, acct account.ID, deviceID string) error {
	sensors, err := s.store.Sensors(ctx, acct, deviceID)
	if err != nil {
		return err
	}
	var retired []Retired
	for _, sensor := range sensors {
		if sensor.RetentionDays > 0 {
			retired = append(retired, Retired{SensorID: sensor.ID, RetentionDays: sensor.RetentionDays, DeletedAt: s.options.Now().UTC()})
		}
	}
	if len(retired) == 0 {
		return nil
	}
	return s.store.Retire(ctx, acct, retired)
}

// expireRetired returns the expired readings of deleted devices' sensors, and the
// sensors that have no readings left. A device whose deletion failed is expired
// with the existing devices.
func (s *Service) expireRetired(ctx context.Context, acct account.ID, devices []Device) (old []Expired, done []string, err error) {
	retired, err := s.store.Retired(ctx, acct)
	if err != nil || len(retired) == 0 {
		return nil, nil, err
	}
	exists := make(map[string]bool, len(devices))
	for _, d := range devices {
		exists[d.ID] = true
	}
	now := s.options.Now()
	for _, r := range retired {
		device := DeviceOf(r.SensorID)
		since := Sensor{RetentionDays: r.RetentionDays}.Since(now)
		if !exists[device] {
			old = append(old, Expired{DeviceID: device, SensorID: r.SensorID, Before: since})
		}
		if exists[device] || since.After(r.DeletedAt.Add(newestSample)) {
			done = append(done, r.SensorID)
		}
	}
	return old, done, nil
}

// deleteExpired deletes expired readings, in steps of sensorsAtOnce.
func (s *Service) deleteExpired(ctx context.Context, acct account.ID, old []Expired) error {
	for len(old) > 0 {
		n := min(len(old), sensorsAtOnce)
		if err := s.readings.Forget(ctx, acct, old[:n]); err != nil {
			return fmt.Errorf("iot: retention of account %s: %w", acct, err)
		}
		old = old[n:]
	}
	return nil
}
