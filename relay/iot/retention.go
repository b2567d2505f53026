package iot

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// Expired selects the points of a sensor that are older than Before.
type Expired struct {
	DeviceID, SensorID string
	Before             time.Time
}

// Since returns the start of the sensor's retention; zero if it is unlimited.
func (s Sensor) Since(now time.Time) time.Time {
	if s.RetentionDays <= 0 {
		return time.Time{}
	}
	return now.UTC().AddDate(0, 0, -s.RetentionDays)
}

// How many devices are loaded, and how many sensors expired, in one step.
const (
	devicesAtOnce = 500
	sensorsAtOnce = 100
)

// Expire deletes the readings of an account's sensors, including those of deleted
// devices, that are older than their retention_days. It works in small steps, so it
// may run while frames arrive, and may be interrupted and run again at any time.
func (s *Service) Expire(ctx context.Context, acct relay.AccountID) error {
	devices, err := s.store.Devices(ctx, acct)
	if err != nil {
		return fmt.Errorf("iot: retention of account %s: %w", acct, err)
	}
	now := s.options.Now()
	for part := range slices.Chunk(devices, devicesAtOnce) {
		names := make([]string, len(part))
		for i, d := range part {
			names[i] = d.Identifier
		}
		known, err := s.store.Load(ctx, acct, names)
		if err != nil {
			return fmt.Errorf("iot: retention of account %s: %w", acct, err)
		}
		if err := s.deleteExpired(ctx, acct, expired(names, known, now)); err != nil {
			return err
		}
	}
	old, done, err := s.expireRetired(ctx, acct, devices)
	if err != nil {
		return fmt.Errorf("iot: retention of account %s: %w", acct, err)
	}
	if err := s.deleteExpired(ctx, acct, old); err != nil || len(done) == 0 {
		return err
	}
	return s.store.Unretire(ctx, acct, done)
}

// expired returns the expired points of devices, device by device.
func expired(names []string, known map[string]Known, now time.Time) (old []Expired) {
	for _, name := range names {
		for _, sensor := range known[name].Sensors {
			if since := sensor.Since(now); !since.IsZero() {
				old = append(old, Expired{DeviceID: sensor.DeviceID, SensorID: sensor.ID, Before: since})
			}
		}
	}
	return old
}

// Retired is a sensor of a deleted device whose readings have a retention: they are
// still deleted when it ends.
type Retired struct {
	SensorID      string    `json:"sensor_id"`
	RetentionDays int       `json:"retention_days"` // more than 0
	DeletedAt     time.Time `json:"deleted_at"`
}

// retire saves the sensors of a device that have a retention, before the device is
// deleted.
func (s *Service) retire(ctx context.Context, acct relay.AccountID, deviceID string) error {
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
func (s *Service) expireRetired(ctx context.Context, acct relay.AccountID, devices []Device) (old []Expired, done []string, err error) {
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
		device := deviceOf(r.SensorID)
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
func (s *Service) deleteExpired(ctx context.Context, acct relay.AccountID, old []Expired) error {
	for part := range slices.Chunk(old, sensorsAtOnce) {
		if err := s.readings.Forget(ctx, acct, part); err != nil {
			return fmt.Errorf("iot: retention of account %s: %w", acct, err)
		}
	}
	return nil
}

// Retire saves sensors of a device that is deleted next.
func (s *Store) Retire(ctx context.Context, acct relay.AccountID, sensors []Retired) error {
	const statement = `
		INSERT INTO retired_sensor (account, id, doc)
		SELECT account, id, doc
		FROM batch
		WHERE true
		ON CONFLICT (account, id) DO UPDATE
		SET doc = excluded.doc`
	sensors = db.FirstOfEach(sensors, func(a, b Retired) int { return cmp.Compare(a.SensorID, b.SensorID) })
	rows := db.BatchOf("account, id, doc", sensors, func(r *Retired) []any { return []any{acct, r.SensorID, db.JSON(r)} })
	return s.db.Run(ctx, "retired sensors", statement, rows)
}

// Retired lists sensors of deleted devices by id.
func (s *Store) Retired(ctx context.Context, acct relay.AccountID) ([]Retired, error) {
	return retiredTable.All(ctx, s.db, acct)
}

// Unretire deletes sensors of deleted devices.
func (s *Store) Unretire(ctx context.Context, acct relay.AccountID, sensorIDs []string) error {
	const statement = `
		DELETE FROM retired_sensor
		WHERE (account, id) IN (SELECT account, id FROM batch)`
	return s.db.Run(ctx, "retired sensors", statement, db.AccountColumn(acct, "id", sensorIDs))
}
