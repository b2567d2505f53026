package devices

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/sqlstore"
)

// sensorRows is the batch of addSensors.
func sensorRows(sensors []iot.Sensor) (*sqlstore.Batch, error) {
	rows := sqlstore.NewBatch("key text, created bigint, doc text")
	for _, sensor := range sensors {
		doc, err := sqlstore.Encode(sensor)
		if err != nil {
			return nil, fmt.Errorf("sensor %s: encode: %w", sensor.ID, err)
		}
		rows.Add(sensor.Key, nanos(sensor.CreatedAt), doc)
	}
	return rows, nil
}

const addSensors = `
INSERT INTO sensor (account, device, key, created, doc)
SELECT $1, $2, key, created, doc FROM batch WHERE true
ON CONFLICT DO NOTHING`

// AddSensors saves sensors whose keys the device does not have. It counts no
// version up: a gateway that misses a sensor adds it and reads what there is.
func (s *Store) AddSensors(ctx context.Context, acct account.ID, deviceID string, sensors []iot.Sensor) error {
	rows, err := sensorRows(sensors)
	if err != nil || len(sensors) == 0 {
		return err
	}
	noun := "sensors of " + deviceID
	return s.db.Write(ctx, noun, func(ctx context.Context, tx *sqlstore.Tx) error {
		if err := lock(ctx, tx, acct, deviceID); err != nil {
			return ignoreMissing(err)
		}
		_, err := tx.Exec(ctx, noun, addSensors, int64(acct), deviceID, rows)
		return err
	})
}

// ignoreMissing is for what is written of a device that may have been deleted.
func ignoreMissing(err error) error {
	if relay.KindOf(err) == relay.KindNotFound {
		return nil
	}
	return err
}

const listSensors = `SELECT doc FROM sensor WHERE account = $1 AND device = $2 ORDER BY created, key`

// Sensors lists a device's sensors in order of creation.
func (s *Store) Sensors(ctx context.Context, acct account.ID, deviceID string) ([]iot.Sensor, error) {
	return sqlstore.List(ctx, s.db, "sensors of "+deviceID, listSensors, sqlstore.ScanDoc[iot.Sensor], int64(acct), deviceID)
}

const countSensors = `SELECT count(*) FROM sensor WHERE account = $1`

// CountSensors counts the sensors of all of an account's devices.
func (s *Store) CountSensors(ctx context.Context, acct account.ID) (int, error) {
	return sqlstore.Value[int](ctx, s.db, "sensors", countSensors, int64(acct))
}

const lockSensors = `
SELECT doc FROM sensor
WHERE account = $1 AND device = $2 AND key IN (SELECT key FROM batch)
ORDER BY key {for update}`

const saveSensors = `
UPDATE sensor SET doc = batch.doc FROM batch
WHERE sensor.account = $1 AND sensor.device = $2 AND sensor.key = batch.key`

// editSensors saves what edit makes of those of a device's sensors that have one
// of the keys. It returns the documents that were there and are there now.
func editSensors(ctx context.Context, tx *sqlstore.Tx, acct account.ID, deviceID string, keys []string, edit func(*iot.Sensor) error) (all []iot.Sensor, changed bool, err error) {
	noun := "sensors of " + deviceID
	names := sqlstore.NewBatch("key text")
	for _, key := range keys {
		names.Add(key)
	}
	docs, err := sqlstore.Values[string](ctx, tx, noun, lockSensors, int64(acct), deviceID, names)
	if err != nil {
		return nil, false, err
	}
	rows := sqlstore.NewBatch("key text, doc text")
	all = make([]iot.Sensor, len(docs))
	for i, was := range docs {
		key, is, err := editSensor(was, &all[i], edit)
		if err != nil {
			return nil, false, err
		}
		if is != was {
			rows.Add(key, is)
		}
	}
	if rows.Len() == 0 {
		return all, false, nil
	}
	_, err = tx.Exec(ctx, noun, saveSensors, int64(acct), deviceID, rows)
	return all, true, err
}

// editSensor returns a sensor's key and its document as edit leaves it.
func editSensor(was string, sensor *iot.Sensor, edit func(*iot.Sensor) error) (key, is string, err error) {
	if err := json.Unmarshal([]byte(was), sensor); err != nil {
		return "", "", fmt.Errorf("sensor: decode: %w", err)
	}
	key = sensor.Key
	if err := edit(sensor); err != nil {
		return "", "", err
	}
	is, err = sqlstore.Encode(sensor)
	return key, is, err
}

// ChangeSensor saves what change makes of a device's sensor.
func (s *Store) ChangeSensor(ctx context.Context, acct account.ID, deviceID, key string, change func(*iot.Sensor) error) (out iot.Sensor, err error) {
	noun := "sensor " + key + " of " + deviceID
	err = s.db.Write(ctx, noun, func(ctx context.Context, tx *sqlstore.Tx) error {
		all, changed, err := editSensors(ctx, tx, acct, deviceID, []string{key}, change)
		if err != nil {
			return err
		}
		if len(all) == 0 {
			return relay.Errorf(relay.KindNotFound, "%s: not found", noun)
		}
		out = all[0]
		if !changed {
			return nil
		}
		return tx.Bump(ctx, versionOf(acct))
	})
	return out, err
}

// RetypeSensors gives sensors of a device another type. It counts no version up:
// a gateway that has the sensor with its old type finds that out by itself.
func (s *Store) RetypeSensors(ctx context.Context, acct account.ID, deviceID string, types map[string]string) error {
	if len(types) == 0 {
		return nil
	}
	keys := make([]string, 0, len(types))
	for key := range types {
		keys = append(keys, key)
	}
	return s.db.Write(ctx, "sensors of "+deviceID, func(ctx context.Context, tx *sqlstore.Tx) error {
		_, _, err := editSensors(ctx, tx, acct, deviceID, keys, func(sensor *iot.Sensor) error {
			retype(sensor, types[sensor.Key])
			return nil
		})
		return err
	})
}

// retype gives a sensor a type and keeps the one it had among the former ones.
func retype(sensor *iot.Sensor, to string) {
	if sensor.SensorTypeID == to {
		return
	}
	sensor.Former = slices.DeleteFunc(append(sensor.Former, sensor.SensorTypeID), func(t string) bool { return t == to })
	sensor.SensorTypeID = to
}
