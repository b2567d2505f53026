package iot

import (
	"context"
	"maps"
	"slices"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// sensorRows is the batch of addSensors.
func sensorRows(sensors []Sensor) *db.Batch {
	return db.BatchOf("key, created, doc", sensors, func(one *Sensor) []any {
		return []any{one.Key, db.Nanos(one.CreatedAt), db.JSON(one)}
	})
}

const addSensors = `
INSERT INTO sensor (account, device, key, created, doc)
SELECT $1, $2, key, created, doc FROM batch WHERE true
ON CONFLICT DO NOTHING`

// AddSensors saves sensors whose keys the device does not have. It counts no
// version up: a gateway that misses a sensor adds it and reads what there is. It returns
// relay.KindNotFound if there is no such device.
func (s *Store) AddSensors(ctx context.Context, acct relay.AccountID, deviceID string, sensors []Sensor) error {
	noun, rows := "sensors of "+deviceID, sensorRows(sensors)
	if len(sensors) == 0 {
		return nil
	}
	return s.db.Write(ctx, noun, func(ctx context.Context, tx *db.Tx) error {
		if err := lock(ctx, tx, acct, deviceID); err != nil {
			return err
		}
		return tx.Run(ctx, noun, addSensors, acct, deviceID, rows)
	})
}

// Sensors lists a device's sensors in order of creation.
func (s *Store) Sensors(ctx context.Context, acct relay.AccountID, deviceID string) ([]Sensor, error) {
	return db.List(ctx, s.db, "sensors of "+deviceID, `
SELECT doc FROM sensor WHERE account = $1 AND device = $2 ORDER BY created, key`, db.Doc[Sensor], acct, deviceID)
}

// CountSensors counts the sensors of all of an account's devices.
func (s *Store) CountSensors(ctx context.Context, acct relay.AccountID) (int, error) {
	return db.Value[int](ctx, s.db, "sensors", "SELECT count(*) FROM sensor WHERE account = $1", acct)
}

// editSensors saves what edit makes of those of a device's sensors that have one
// of the keys. It returns those that there are now.
func editSensors(ctx context.Context, tx *db.Tx, acct relay.AccountID, deviceID string, keys []string, edit func(*Sensor) error) (all []Sensor, changed bool, err error) {
	noun := "sensors of " + deviceID
	docs, err := db.Values[string](ctx, tx, noun, `
SELECT doc FROM sensor
WHERE account = $1 AND device = $2 AND key IN (SELECT key FROM batch)
ORDER BY key {for update}`, acct, deviceID, db.Column("key", keys))
	if err != nil {
		return nil, false, err
	}
	rows := db.NewBatch("key, doc")
	all = make([]Sensor, len(docs))
	for i, was := range docs {
		var is, key string
		all[i], is, err = db.Edit(noun, was, func(sensor *Sensor) error {
			key = sensor.Key
			return edit(sensor)
		})
		if err != nil {
			return nil, false, err
		}
		if is != was {
			rows.Add(key, is)
		}
	}
	return all, rows.Len() > 0, tx.Run(ctx, noun, `
UPDATE sensor SET doc = batch.doc FROM batch
WHERE sensor.account = $1 AND sensor.device = $2 AND sensor.key = batch.key`, acct, deviceID, rows)
}

// ChangeSensor saves a device's sensor as changed by the function.
func (s *Store) ChangeSensor(ctx context.Context, acct relay.AccountID, deviceID, key string, change func(*Sensor) error) (Sensor, error) {
	noun := "sensor " + key + " of " + deviceID
	return db.Transact(ctx, s.db, noun, func(ctx context.Context, tx *db.Tx) (out Sensor, err error) {
		all, changed, err := editSensors(ctx, tx, acct, deviceID, []string{key}, change)
		if err == nil && len(all) == 0 {
			err = db.NotFound(noun)
		}
		if err != nil {
			return out, err
		}
		if changed {
			err = tx.Bump(ctx, versionOf(acct))
		}
		return all[0], err
	})
}

// RetypeSensors gives sensors of a device another type. It counts no version up:
// a gateway that has the sensor with its old type finds that out by itself.
func (s *Store) RetypeSensors(ctx context.Context, acct relay.AccountID, deviceID string, types map[string]string) error {
	if len(types) == 0 {
		return nil
	}
	keys := slices.Collect(maps.Keys(types))
	return s.db.Write(ctx, "sensors of "+deviceID, func(ctx context.Context, tx *db.Tx) error {
		_, _, err := editSensors(ctx, tx, acct, deviceID, keys, func(sensor *Sensor) error {
			retype(sensor, types[sensor.Key])
			return nil
		})
		return err
	})
}

// retype gives a sensor a type and keeps the one it had among the former ones.
func retype(sensor *Sensor, to string) {
	if sensor.SensorTypeID == to {
		return
	}
	sensor.Former = slices.DeleteFunc(append(sensor.Former, sensor.SensorTypeID), func(t string) bool { return t == to })
	sensor.SensorTypeID = to
}
