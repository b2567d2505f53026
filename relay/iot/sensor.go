package iot

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// matchSensors adds missing sensors that the decoder of a device maps, and changes the type of sensors
// whose key is mapped to another type. Sensors that are no longer mapped stay with the device and get
// no values.
func (s *Service) matchSensors(ctx context.Context, acct relay.AccountID, cd *cachedDevice) error {
	// 1. Compare the sensors with the mapping.
	sensors := *cd.sensors.Load()
	missing := s.sensorsFor(cd.Device, cd.decoder, sensors)
	newTypes := make(map[string]string) // by key
	for _, m := range cd.decoder.Sensors {
		if sensor := sensors[m.Key]; sensor != nil && sensor.SensorTypeID != m.SensorTypeID {
			newTypes[m.Key] = m.SensorTypeID
		}
	}
	hasRoom, err := s.hasRoomForSensors(ctx, acct, len(missing))
	if err != nil {
		return err
	}
	if !hasRoom {
		cd.limitReached.Store(true)
		missing = nil
	}

	// 2. Save the differences and read the sensors again: other gateways may have added some.
	if len(missing)+len(newTypes) > 0 {
		if err := s.store.AddSensors(ctx, acct, cd.Device.ID, missing); err != nil {
			return fmt.Errorf("iot: device %s: add sensors: %w", cd.Device.ID, s.retryIfGone(acct, err))
		}
		if err := s.store.RetypeSensors(ctx, acct, cd.Device.ID, newTypes); err != nil {
			return fmt.Errorf("iot: device %s: types of sensors: %w", cd.Device.ID, err)
		}
		stored, err := s.store.Sensors(ctx, acct, cd.Device.ID)
		if err != nil {
			return fmt.Errorf("iot: device %s: sensors: %w", cd.Device.ID, s.retryIfGone(acct, err))
		}
		sensors = maps.Clone(sensors)
		for i := range stored {
			sensors[stored[i].Key] = &stored[i]
		}
		cd.sensors.Store(&sensors)
	}

	// 3. Select the mapped sensors.
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

func (s *Service) hasRoomForSensors(ctx context.Context, acct relay.AccountID, count int) (bool, error) {
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

// AddSensors adds sensors to a device. It ignores a sensor if the device has one with the same key. It
// returns relay.KindNotFound if there is no such device. The version does not change: another gateway
// without a sensor in its cache adds it and reads the stored one.
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

// Sensors lists a device's sensors in order of creation. It returns relay.KindNotFound if
// there is no such device.
func (s *Store) Sensors(ctx context.Context, acct relay.AccountID, deviceID string) ([]Sensor, error) {
	const query = `
		SELECT COALESCE(sensor.doc, '')
		FROM device
		LEFT JOIN sensor ON sensor.account = device.account AND sensor.device = device.id
		WHERE device.account = $1
		  AND device.id = $2
		ORDER BY sensor.created, sensor.key`
	label := "device " + deviceID
	sensors, err := db.List(ctx, s.db, label, query, db.Doc[Sensor], acct, deviceID)
	if err == nil && len(sensors) == 0 {
		return nil, db.NotFound(label)
	}
	return slices.DeleteFunc(sensors, func(sensor Sensor) bool { return sensor.ID == "" }), err
}

// CountSensors counts the sensors of all devices of an account.
func (s *Store) CountSensors(ctx context.Context, acct relay.AccountID) (int, error) {
	return db.Value[int](ctx, s.db, "sensors", "SELECT count(*) FROM sensor WHERE account = $1", acct)
}

// ChangeSensor calls change with a device's sensor and saves the result, like ChangeDecoder.
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

// RetypeSensors changes the types of sensors of a device to newTypes, by key, and adds the previous
// types to Former. Keys without a sensor are ignored. The version does not change: another gateway
// with the old type in its cache also retypes the sensor.
func (s *Store) RetypeSensors(ctx context.Context, acct relay.AccountID, deviceID string, newTypes map[string]string) error {
	if len(newTypes) == 0 {
		return nil
	}
	keys := slices.Collect(maps.Keys(newTypes))
	return s.db.Write(ctx, "sensors of "+deviceID, func(ctx context.Context, tx *db.Tx) error {
		_, _, err := editSensors(ctx, tx, acct, deviceID, keys, func(sensor *Sensor) error {
			if typeID := newTypes[sensor.Key]; sensor.SensorTypeID != typeID {
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
