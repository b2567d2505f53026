package iot

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// fit fits a device's sensors to its decoder's mapping: it adds missing sensors and changes
// the type of sensors whose key is mapped to another type. Sensors that are no longer mapped
// stay with the device and get no values.
func (s *Service) fit(ctx context.Context, acct relay.AccountID, cd *cachedDevice) error {
	// 1. Compare the sensors with the mapping.
	sensors := *cd.sensors.Load()
	missing := s.sensorsFor(cd.Device, cd.decoder, sensors)
	types := make(map[string]string) // of the sensors that get another one, by key
	for _, m := range cd.decoder.Sensors {
		if sensor := sensors[m.Key]; sensor != nil && sensor.SensorTypeID != m.SensorTypeID {
			types[m.Key] = m.SensorTypeID
		}
	}
	room, err := s.roomForSensors(ctx, acct, len(missing))
	if err != nil {
		return err
	}
	if !room {
		cd.limitReached.Store(true)
		missing = nil
	}

	// 2. Save the differences, and read what is stored now: other gateways save them too.
	if len(missing)+len(types) > 0 {
		if err := s.store.AddSensors(ctx, acct, cd.Device.ID, missing); err != nil {
			err = s.retryIfGone(acct, err)
			return fmt.Errorf("iot: device %s: add sensors: %w", cd.Device.ID, err)
		}
		if err := s.store.RetypeSensors(ctx, acct, cd.Device.ID, types); err != nil {
			return fmt.Errorf("iot: device %s: types of sensors: %w", cd.Device.ID, err)
		}
		stored, err := s.store.Sensors(ctx, acct, cd.Device.ID)
		if err != nil {
			return fmt.Errorf("iot: device %s: sensors: %w", cd.Device.ID, err)
		}
		sensors = maps.Clone(sensors)
		for i := range stored {
			sensors[stored[i].Key] = &stored[i]
		}
		cd.sensors.Store(&sensors)
	}

	// 3. Keep those that are mapped.
	mapped := make(map[string]*Sensor, len(cd.decoder.Sensors))
	for _, m := range cd.decoder.Sensors {
		if sensor := sensors[m.Key]; sensor != nil {
			mapped[m.Key] = sensor
		}
	}
	cd.mapped.Store(&mapped)
	return nil
}

func (s *Service) seriesLimitReason() string {
	return fmt.Sprintf("the account may have no more than %d series (sensors of devices)", s.options.MaxSeries)
}

func (s *Service) roomForSensors(ctx context.Context, acct relay.AccountID, count int) (bool, error) {
	if count == 0 {
		return true, nil
	}
	n, err := s.store.CountSensors(ctx, acct)
	if err != nil {
		return false, fmt.Errorf("iot: count sensors: %w", err)
	}
	return n+count <= s.options.MaxSeries, nil
}

const insertSensors = `
	INSERT INTO sensor (account, device, key, created, doc)
	SELECT $1, $2, key, created, doc
	FROM batch
	WHERE true
	ON CONFLICT DO NOTHING`

func sensorRows(sensors []Sensor) *db.Batch {
	return db.BatchOf("key, created, doc", sensors, func(sensor *Sensor) []any {
		return []any{sensor.Key, db.Nanos(sensor.CreatedAt), db.JSON(sensor)}
	})
}

// AddSensors saves sensors whose keys the device lacks; a sensor whose key is stored is left
// unchanged. It returns relay.KindNotFound if there is no such device. It leaves the version
// as it is: a gateway that misses a sensor adds it and reads what is stored.
func (s *Store) AddSensors(ctx context.Context, acct relay.AccountID, deviceID string, sensors []Sensor) error {
	if len(sensors) == 0 {
		return nil
	}
	label, rows := "sensors of "+deviceID, sensorRows(sensors)
	return s.db.Write(ctx, label, func(ctx context.Context, tx *db.Tx) error {
		if err := lockDevice(ctx, tx, acct, deviceID); err != nil {
			return err
		}
		return tx.Run(ctx, label, insertSensors, acct, deviceID, rows)
	})
}

// Sensors lists a device's sensors in order of creation.
func (s *Store) Sensors(ctx context.Context, acct relay.AccountID, deviceID string) ([]Sensor, error) {
	const query = `
		SELECT doc
		FROM sensor
		WHERE account = $1
		  AND device = $2
		ORDER BY created, key`
	return db.List(ctx, s.db, "sensors of "+deviceID, query, db.Doc[Sensor], acct, deviceID)
}

// CountSensors counts the sensors of all of an account's devices.
func (s *Store) CountSensors(ctx context.Context, acct relay.AccountID) (int, error) {
	return db.Value[int](ctx, s.db, "sensors", "SELECT count(*) FROM sensor WHERE account = $1", acct)
}

// ChangeSensor saves a device's sensor as modified by change, as ChangeDecoder does.
func (s *Store) ChangeSensor(ctx context.Context, acct relay.AccountID, deviceID, key string, change func(*Sensor) error) (Sensor, error) {
	label := "sensor " + key + " of " + deviceID
	return db.Transact(ctx, s.db, label, func(ctx context.Context, tx *db.Tx) (Sensor, error) {
		sensors, changed, err := editSensors(ctx, tx, acct, deviceID, []string{key}, change)
		if err == nil && len(sensors) == 0 {
			err = db.NotFound(label)
		}
		if err != nil {
			return Sensor{}, err
		}
		if changed {
			err = tx.Bump(ctx, versionOf(acct))
		}
		return sensors[0], err
	})
}

// RetypeSensors gives sensors of a device another type, by key, and adds the previous one to
// Former. Keys without a sensor are ignored. It leaves the version as it is: a gateway that
// has the sensor with its old type notices that by itself.
func (s *Store) RetypeSensors(ctx context.Context, acct relay.AccountID, deviceID string, types map[string]string) error {
	if len(types) == 0 {
		return nil
	}
	keys := slices.Collect(maps.Keys(types))
	return s.db.Write(ctx, "sensors of "+deviceID, func(ctx context.Context, tx *db.Tx) error {
		_, _, err := editSensors(ctx, tx, acct, deviceID, keys, func(sensor *Sensor) error {
			if typeID := types[sensor.Key]; sensor.SensorTypeID != typeID {
				former := append(sensor.Former, sensor.SensorTypeID)
				sensor.Former = slices.DeleteFunc(former, func(t string) bool { return t == typeID })
				sensor.SensorTypeID = typeID
			}
			return nil
		})
		return err
	})
}

func editSensors(ctx context.Context, tx *db.Tx, acct relay.AccountID, deviceID string, keys []string, edit func(*Sensor) error) (sensors []Sensor, changed bool, err error) {
	label := "sensors of " + deviceID
	const query = `
		SELECT doc
		FROM sensor
		WHERE account = $1
		  AND device = $2
		  AND key IN (SELECT key FROM batch)
		ORDER BY key {for update}`
	docs, err := db.Values[string](ctx, tx, label, query, acct, deviceID, db.Column("key", keys))
	if err != nil {
		return nil, false, err
	}
	rows := db.NewBatch("key, doc")
	sensors = make([]Sensor, len(docs))
	for i, oldDoc := range docs {
		var newDoc, key string
		sensors[i], newDoc, err = db.Edit(label, oldDoc, func(sensor *Sensor) error {
			key = sensor.Key
			return edit(sensor)
		})
		if err != nil {
			return nil, false, err
		}
		if newDoc != oldDoc {
			rows.Add(key, newDoc)
		}
	}
	const update = `
		UPDATE sensor
		SET doc = batch.doc
		FROM batch
		WHERE sensor.account = $1
		  AND sensor.device = $2
		  AND sensor.key = batch.key`
	return sensors, rows.Len() > 0, tx.Run(ctx, label, update, acct, deviceID, rows)
}
