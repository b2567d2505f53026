package iot

import (
	"context"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// Store keeps the records of the domain in SQL: decoders, locations, sensor types, devices
// with their sensors, event markers and raw frames. Everything is looked up through its
// account; another account's record is not found.
//
// Data of a device is written under the lock of the device's row, and deleted with it:
// work in flight adds nothing to a deleted device. A devEUI or MAC address is claimed by
// an account before the device is saved, and the claim is locked before the device
// wherever both change. A released claim leaves its device.
type Store struct{ db *db.DB }

// NewStore returns the store in a database.
func NewStore(database *db.DB) *Store { return &Store{db: database} }

// typesVersion counts the changes of sensor types.
const typesVersion = "iot/types"

// versionOf names the version of an account's records.
func versionOf(acct relay.AccountID) string { return "iot/" + acct.String() }

// RulesVersionOf names the version of an account's rules.
func RulesVersionOf(acct relay.AccountID) string { return "rules/" + acct.String() }

// Versions returns numbers per account that change with every change that frames
// of the account have to notice.
func (s *Store) Versions(ctx context.Context, accts []relay.AccountID) (map[relay.AccountID]Version, error) {
	names := make([]string, 0, 2*len(accts)+1)
	for _, acct := range accts {
		names = append(names, versionOf(acct), RulesVersionOf(acct))
	}
	all, err := db.Versions(ctx, s.db, append(names, typesVersion))
	out := make(map[relay.AccountID]Version, len(accts))
	for _, acct := range accts {
		out[acct] = Version{Records: all[versionOf(acct)]<<20 + all[typesVersion], Rules: all[RulesVersionOf(acct)]}
	}
	return out, err
}

// write runs a transaction that counts a version up, last of all.
func (s *Store) write(ctx context.Context, noun, version string, do func(ctx context.Context, tx *db.Tx) error) error {
	return s.db.Write(ctx, noun, func(ctx context.Context, tx *db.Tx) error {
		if err := do(ctx, tx); err != nil {
			return err
		}
		return tx.Bump(ctx, version)
	})
}

// change saves a document of an account as changed by the function.
func change[T any](ctx context.Context, s *Store, t db.Documents[T], acct relay.AccountID, id string, change func(*T) error) (T, error) {
	return db.Transact(ctx, s.db, t.Noun(id), func(ctx context.Context, tx *db.Tx) (T, error) {
		out, changed, err := t.Change(ctx, tx, acct, id, change)
		if err != nil || !changed {
			return out, err
		}
		return out, tx.Bump(ctx, versionOf(acct))
	})
}

// loaded is a device or, after it, one of its sensors.
type loaded struct {
	place  int
	sensor bool
	doc    []byte
}

func (l *loaded) fields() []any { return []any{&l.place, &l.sensor, new(any), new(any), &l.doc} }

// Load returns the devices that are there among the identifiers, with their sensors. The
// account is a column of the batch: as a parameter it would have the planner read all of
// the account's rows.
func (s *Store) Load(ctx context.Context, acct relay.AccountID, identifiers []string) (map[string]Known, error) {
	rows, err := db.List(ctx, s.db, "devices", `
WITH found AS MATERIALIZED (
  SELECT batch.n AS place, device.account, device.id, device.doc
  FROM batch JOIN device ON device.account = batch.account AND device.identifier = batch.identifier
)
SELECT place, 0 AS sensor, 0 AS created, '' AS key, doc FROM found
UNION ALL
SELECT found.place, 1, sensor.created, sensor.key, sensor.doc
FROM found JOIN sensor ON sensor.account = found.account AND sensor.device = found.id
ORDER BY 1, 2, 3, 4`, (*loaded).fields, db.AccountColumn(acct, "identifier", identifiers))
	if err != nil {
		return nil, err
	}
	known := make([]Known, len(identifiers))
	for _, row := range rows {
		k := &known[row.place-1]
		if row.sensor {
			k.Sensors = append(k.Sensors, Sensor{})
			err = db.Decode(row.doc, &k.Sensors[len(k.Sensors)-1])
		} else {
			k.Sensors = []Sensor{}
			err = db.Decode(row.doc, &k.Device)
		}
		if err != nil {
			return nil, db.Wrap("device "+identifiers[row.place-1], err)
		}
	}
	out := make(map[string]Known, len(identifiers))
	for i, k := range known {
		if k.Sensors != nil { // else it is not there
			out[identifiers[i]] = k
		}
	}
	return out, nil
}

// Overview returns a device's sensors and the version of the sensor types.
func (s *Store) Overview(ctx context.Context, acct relay.AccountID, deviceID string) (o Overview, err error) {
	noun := "device " + deviceID
	sensors, err := db.List(ctx, s.db, noun, `
SELECT CAST(COALESCE((SELECT SUM(n) FROM version WHERE name IN ('', $1)), 0) AS BIGINT), COALESCE(sensor.doc, '')
FROM device LEFT JOIN sensor ON sensor.account = device.account AND sensor.device = device.id
WHERE device.account = $2 AND device.id = $3
ORDER BY sensor.created, sensor.key`, func(sensor *Sensor) []any {
		return []any{&o.TypesVersion, db.JSON(sensor)}
	}, typesVersion, acct, deviceID)
	if err == nil && len(sensors) == 0 {
		err = db.NotFound(noun)
	}
	if err == nil && sensors[0].ID != "" {
		o.Sensors = sensors
	}
	return o, err
}
