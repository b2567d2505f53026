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

// ExpiredPoints selects the points of a sensor that are older than Before.
type ExpiredPoints struct {
	DeviceID, SensorID string
	Before             time.Time
}

// RetentionStart returns the start of the sensor's retention, or zero if the retention is unlimited.
func (s Sensor) RetentionStart(now time.Time) time.Time {
	if s.RetentionDays <= 0 {
		return time.Time{}
	}
	return now.UTC().AddDate(0, 0, -s.RetentionDays)
}

// Numbers of devices that Expire loads, and of sensors that it expires, in one step.
const (
	devicesPerStep = 500
	sensorsPerStep = 100
)

// Expire deletes the readings of an account's sensors that are older than the sensor's retention_days,
// including sensors of deleted devices. It works in small steps, so that frames can be stored
// meanwhile. It can run again after an interruption.
func (s *Service) Expire(ctx context.Context, acct relay.AccountID) error {
	fail := func(err error) error { return fmt.Errorf("iot: retention of account %s: %w", acct, err) }
	// 1. Delete the expired readings of devices.
	devices, err := s.store.Devices(ctx, acct)
	if err != nil {
		return fail(err)
	}
	now, exists := s.options.Now(), make(map[string]bool, len(devices))
	for chunk := range slices.Chunk(devices, devicesPerStep) {
		identifiers := make([]string, len(chunk))
		for i, d := range chunk {
			identifiers[i], exists[d.ID] = d.Identifier, true
		}
		known, err := s.store.Load(ctx, acct, identifiers)
		if err != nil {
			return fail(err)
		}
		var expired []ExpiredPoints
		for _, identifier := range identifiers {
			for _, sensor := range known[identifier].Sensors {
				if since := sensor.RetentionStart(now); !since.IsZero() {
					expired = append(expired, ExpiredPoints{DeviceID: sensor.DeviceID, SensorID: sensor.ID, Before: since})
				}
			}
		}
		if err := s.deleteExpired(ctx, acct, expired); err != nil {
			return err
		}
	}

	// 2. Delete the expired readings of retired sensors. A sensor stays retired until all of its
	// readings have expired. If its device exists, because the deletion failed, the sensor is not
	// retired.
	retired, err := s.store.RetiredSensors(ctx, acct)
	if err != nil {
		return fail(err)
	}
	var expired []ExpiredPoints
	var finishedIDs []string
	for _, r := range retired {
		device := deviceOf(r.SensorID)
		since := Sensor{RetentionDays: r.RetentionDays}.RetentionStart(now)
		if !exists[device] {
			expired = append(expired, ExpiredPoints{DeviceID: device, SensorID: r.SensorID, Before: since})
		}
		if exists[device] || since.After(r.DeletedAt.Add(newestSample)) {
			finishedIDs = append(finishedIDs, r.SensorID)
		}
	}
	if err := s.deleteExpired(ctx, acct, expired); err != nil || len(finishedIDs) == 0 {
		return err
	}
	return s.store.Unretire(ctx, acct, finishedIDs)
}

// RetiredSensor is a sensor of a deleted device. Its readings are deleted when its retention ends.
type RetiredSensor struct {
	SensorID      string    `json:"sensor_id"`
	RetentionDays int       `json:"retention_days"` // more than 0
	DeletedAt     time.Time `json:"deleted_at"`
}

// deleteExpired deletes expired readings in steps of sensorsPerStep.
func (s *Service) deleteExpired(ctx context.Context, acct relay.AccountID, expired []ExpiredPoints) error {
	for chunk := range slices.Chunk(expired, sensorsPerStep) {
		if err := s.readings.Forget(ctx, acct, chunk); err != nil {
			return fmt.Errorf("iot: retention of account %s: %w", acct, err)
		}
	}
	return nil
}

// Retire saves sensors of a device that is about to be deleted.
func (s *Store) Retire(ctx context.Context, acct relay.AccountID, sensors []RetiredSensor) error {
	const statement = `
		INSERT INTO retired_sensor (account, id, doc)
		SELECT account, id, doc
		FROM batch
		WHERE true
		ON CONFLICT (account, id) DO UPDATE
		SET doc = excluded.doc`
	sensors = db.FirstOfEach(sensors, func(a, b RetiredSensor) int { return cmp.Compare(a.SensorID, b.SensorID) })
	rows := db.BatchOf("account, id, doc", sensors, func(r *RetiredSensor) []any { return []any{acct, r.SensorID, db.JSON(r)} })
	return s.db.Run(ctx, "retired sensors", statement, rows)
}

// RetiredSensors lists sensors of deleted devices by id.
func (s *Store) RetiredSensors(ctx context.Context, acct relay.AccountID) ([]RetiredSensor, error) {
	return retiredTable.All(ctx, s.db, acct)
}

// Unretire deletes sensors of deleted devices.
func (s *Store) Unretire(ctx context.Context, acct relay.AccountID, sensorIDs []string) error {
	const statement = `
		DELETE FROM retired_sensor
		WHERE (account, id) IN (SELECT account, id FROM batch)`
	return s.db.Run(ctx, "retired sensors", statement, db.AccountColumn(acct, "id", sensorIDs))
}
