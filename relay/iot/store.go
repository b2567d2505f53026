package iot

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// Store stores decoders, locations, sensor types, devices with their sensors, event markers and raw
// frames. It does not return records of other accounts.
//
// A transaction that writes data of a device locks the device's row first, so that no data is
// added to a deleted device. Before a device is saved, its account claims its devEUI or MAC
// address. A transaction that changes a claim and a device locks the claim first. Releasing a claim
// does not delete the device.
type Store struct {
	db       *db.DB
	onDevice DeviceHook
}

// NewStore returns the store in a database. onDevice may be nil.
func NewStore(database *db.DB, onDevice DeviceHook) *Store {
	if onDevice == nil {
		onDevice = func(*db.Tx, relay.AccountID, string, DeviceEvent) []db.Statement { return nil }
	}
	return &Store{db: database, onDevice: onDevice}
}

// DeviceHook returns additional statements for a transaction that creates, changes or deletes a device.
// Package relay/rule implements it.
type DeviceHook func(tx *db.Tx, acct relay.AccountID, deviceID string, e DeviceEvent) []db.Statement

// DeviceEvent is a change of a device in a transaction.
type DeviceEvent int

// The events of devices.
const (
	DeviceCreated DeviceEvent = iota
	DeviceChanged
	DeviceDeleted
)

// typesVersion counts the changes of sensor types.
const typesVersion = "iot/types"

func versionOf(acct relay.AccountID) string { return "iot/" + acct.String() }

// RulesVersionOf returns the name of the version of an account's rules.
func RulesVersionOf(acct relay.AccountID) string { return "rules/" + acct.String() }

// Versions returns the versions of the records and of the rules of each account. A version changes when
// a decoder, device, location, sensor type or rule changes, or a sensor by a request; sensors that
// frames add or retype leave it. Records that were cached with another version are stale.
func (s *Store) Versions(ctx context.Context, accts []relay.AccountID) (map[relay.AccountID]Version, error) {
	names := make([]string, 0, 2*len(accts)+1)
	for _, acct := range accts {
		names = append(names, versionOf(acct), RulesVersionOf(acct))
	}
	numbers, err := db.Versions(ctx, s.db, append(names, typesVersion))
	versions := make(map[relay.AccountID]Version, len(accts))
	for _, acct := range accts {
		versions[acct] = Version{Records: numbers[versionOf(acct)]<<20 + numbers[typesVersion], Rules: numbers[RulesVersionOf(acct)]}
	}
	return versions, err
}

// write runs a transaction whose last statement increments a version.
func (s *Store) write(ctx context.Context, label, version string, do func(ctx context.Context, tx *db.Tx) error) error {
	return s.db.Write(ctx, label, func(ctx context.Context, tx *db.Tx) error {
		if err := do(ctx, tx); err != nil {
			return err
		}
		return tx.Bump(ctx, version)
	})
}

func put[T any](ctx context.Context, s *Store, t db.Documents[T], acct relay.AccountID, id string, v T, version string) error {
	return s.write(ctx, t.Label(id), version, func(ctx context.Context, tx *db.Tx) error {
		return t.Put(ctx, tx, acct, id, v)
	})
}

// remove deletes a document, if it exists, and increments a version.
func remove[T any](ctx context.Context, s *Store, t db.Documents[T], acct relay.AccountID, id, version string) error {
	return s.write(ctx, t.Label(id), version, func(ctx context.Context, tx *db.Tx) error {
		return db.IgnoreNotFound(t.Delete(ctx, tx, acct, id))
	})
}

const (
	decoderTable    db.Documents[Decoder]       = "decoder"
	locationTable   db.Documents[Location]      = "location"
	sensorTypeTable db.Documents[SensorType]    = "sensor_type"
	retiredTable    db.Documents[RetiredSensor] = "retired_sensor"
)

// CreateDecoder saves a decoder.
func (s *Store) CreateDecoder(ctx context.Context, acct relay.AccountID, d Decoder) error {
	return put(ctx, s, decoderTable, acct, d.ID, d, versionOf(acct))
}

// ChangeDecoder calls change with a decoder and saves the result. After a concurrent update, it calls
// change again with the updated decoder. It returns relay.KindNotFound if there is no such decoder, and
// the errors of change.
func (s *Store) ChangeDecoder(ctx context.Context, acct relay.AccountID, id string, change func(*Decoder) error) (Decoder, error) {
	return db.Transact(ctx, s.db, decoderTable.Label(id), func(ctx context.Context, tx *db.Tx) (Decoder, error) {
		decoder, changed, err := decoderTable.Change(ctx, tx, acct, id, change)
		if err != nil || !changed {
			return decoder, err
		}
		return decoder, tx.Bump(ctx, versionOf(acct))
	})
}

// DeleteDecoder deletes a decoder, if it exists, and its unmapped keys.
func (s *Store) DeleteDecoder(ctx context.Context, acct relay.AccountID, id string) error {
	return s.write(ctx, decoderTable.Label(id), versionOf(acct), func(ctx context.Context, tx *db.Tx) error {
		return deleteDecoder(ctx, tx, acct, id)
	})
}

// DeleteUnusedDecoder deletes a decoder and its unmapped keys. It returns relay.KindNotFound if there
// is no such decoder, and relay.KindInvalid if devices use it. Concurrent transactions that assign the
// decoder to a device wait for the end of this transaction.
func (s *Store) DeleteUnusedDecoder(ctx context.Context, acct relay.AccountID, id string) error {
	const lock = "SELECT id FROM decoder WHERE account = $1 AND id = $2 {for update}"
	label := decoderTable.Label(id)
	return s.write(ctx, label, versionOf(acct), func(ctx context.Context, tx *db.Tx) error {
		if _, err := db.Value[string](ctx, tx, label, lock, acct, id); err != nil {
			return err
		}
		devices, err := db.List(ctx, tx, "devices", "SELECT doc FROM device WHERE account = $1", db.Doc[Device], acct)
		if err != nil {
			return err
		}
		users := 0
		for _, d := range devices {
			if d.DecoderID == id {
				users++
			}
		}
		if users > 0 {
			return relay.Invalid("decoder_id", fmt.Sprintf("Number of devices that use the decoder: %d.", users))
		}
		return deleteDecoder(ctx, tx, acct, id)
	})
}

func deleteDecoder(ctx context.Context, tx *db.Tx, acct relay.AccountID, id string) error {
	return tx.RunAll(ctx, decoderTable.Label(id),
		db.Do("DELETE FROM decoder WHERE account = $1 AND id = $2", acct, id),
		db.Do("DELETE FROM unmapped_key WHERE account = $1 AND decoder = $2", acct, id))
}

// lockDecoders locks decoders, so that they cannot be deleted before the transaction ends. It returns
// relay.KindInvalid if a decoder is missing. It ignores empty IDs.
func lockDecoders(ctx context.Context, tx *db.Tx, acct relay.AccountID, ids []string) error {
	const lock = `
		SELECT decoder.id
		FROM batch
		JOIN decoder ON decoder.account = batch.account AND decoder.id = batch.id
		ORDER BY decoder.id {for share}`
	ids = slices.DeleteFunc(db.FirstOfEach(ids, strings.Compare), func(id string) bool { return id == "" })
	locked, err := db.Values[string](ctx, tx, "decoders", lock, db.AccountColumn(acct, "id", ids))
	if err == nil && len(locked) < len(ids) {
		return relay.Invalid("decoder_id", "The selected decoder id is invalid.")
	}
	return err
}

// Decoder loads a decoder.
func (s *Store) Decoder(ctx context.Context, acct relay.AccountID, id string) (Decoder, error) {
	return decoderTable.Get(ctx, s.db, acct, id)
}

// Decoders lists an account's decoders by id.
func (s *Store) Decoders(ctx context.Context, acct relay.AccountID) ([]Decoder, error) {
	return decoderTable.All(ctx, s.db, acct)
}

// PutLocation saves a location.
func (s *Store) PutLocation(ctx context.Context, acct relay.AccountID, l Location) error {
	return put(ctx, s, locationTable, acct, l.ID, l, versionOf(acct))
}

// CreateLocation saves a new location. It returns relay.KindInvalid if the new location and a stored
// location of the account are Imported.
func (s *Store) CreateLocation(ctx context.Context, acct relay.AccountID, l Location) error {
	return s.db.Write(ctx, locationTable.Label(l.ID), func(ctx context.Context, tx *db.Tx) error {
		// Changing the version first makes concurrent calls wait for this transaction.
		if err := tx.Bump(ctx, versionOf(acct)); err != nil {
			return err
		}
		locations, err := locationTable.All(ctx, tx, acct)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(locations, func(stored Location) bool { return stored.Imported })
		if l.Imported && i >= 0 {
			return relay.Invalid("imported", "The location "+locations[i].ID+" already receives imported devices.")
		}
		return locationTable.Put(ctx, tx, acct, l.ID, l)
	})
}

// DeleteLocation deletes a location.
func (s *Store) DeleteLocation(ctx context.Context, acct relay.AccountID, id string) error {
	return remove(ctx, s, locationTable, acct, id, versionOf(acct))
}

// Locations lists an account's locations by id.
func (s *Store) Locations(ctx context.Context, acct relay.AccountID) ([]Location, error) {
	return locationTable.All(ctx, s.db, acct)
}

// PutSensorType saves a sensor type. All accounts share the sensor types.
func (s *Store) PutSensorType(ctx context.Context, t SensorType) error {
	return put(ctx, s, sensorTypeTable, 0, t.ID, t, typesVersion)
}

// DeleteSensorType deletes a sensor type.
func (s *Store) DeleteSensorType(ctx context.Context, id string) error {
	return remove(ctx, s, sensorTypeTable, 0, id, typesVersion)
}

// SensorTypes returns every sensor type by id.
func (s *Store) SensorTypes(ctx context.Context) (map[string]SensorType, error) {
	types, err := sensorTypeTable.All(ctx, s.db, 0)
	return db.IndexBy(types, func(t SensorType) string { return t.ID }), err
}

// Load returns the devices with the given identifiers and their sensors, by identifier, in one round
// trip. It omits missing devices.
func (s *Store) Load(ctx context.Context, acct relay.AccountID, identifiers []string) (map[string]DeviceWithSensors, error) {
	// The account is a column of the batch. With the account as a parameter, PostgreSQL would read
	// all rows of the account.
	const query = `
		WITH found AS MATERIALIZED (
			SELECT batch.n AS row_number, device.account, device.id, device.doc
			FROM batch
			JOIN device ON device.account = batch.account AND device.identifier = batch.identifier
		)
		SELECT row_number, 0 AS sensor, 0 AS created, '' AS key, doc
		FROM found
		UNION ALL
		SELECT found.row_number, 1, sensor.created, sensor.key, sensor.doc
		FROM found
		JOIN sensor ON sensor.account = found.account AND sensor.device = found.id
		ORDER BY 1, 2, 3, 4`
	type row struct { // a device or one of its sensors
		number   int // number of the identifier, from 1
		isSensor bool
		doc      []byte
	}
	fields := func(r *row) []any { return []any{&r.number, &r.isSensor, new(any), new(any), &r.doc} }
	rows, err := db.List(ctx, s.db, "devices", query, fields, db.AccountColumn(acct, "identifier", identifiers))
	if err != nil {
		return nil, err
	}
	devices := make(map[string]DeviceWithSensors, len(identifiers))
	for _, r := range rows {
		identifier := identifiers[r.number-1]
		known := devices[identifier]
		if r.isSensor {
			known.Sensors = append(known.Sensors, Sensor{})
			err = db.Decode(r.doc, &known.Sensors[len(known.Sensors)-1])
		} else {
			known = DeviceWithSensors{Sensors: []Sensor{}}
			err = db.Decode(r.doc, &known.Device)
		}
		if err != nil {
			return nil, db.Wrap("device "+identifier, err)
		}
		devices[identifier] = known
	}
	return devices, nil
}
