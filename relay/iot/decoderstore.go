package iot

import (
	"cmp"
	"context"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

const (
	decoderTable    db.Documents[Decoder]    = "decoder"
	locationTable   db.Documents[Location]   = "location"
	sensorTypeTable db.Documents[SensorType] = "sensor_type"
	retiredTable    db.Documents[Retired]    = "retired_sensor"
)

// put saves a document and counts a version up.
func put[T any](ctx context.Context, s *Store, t db.Documents[T], acct relay.AccountID, id string, v T, version string) error {
	return s.write(ctx, t.Noun(id), version, func(ctx context.Context, tx *db.Tx) error {
		return t.Put(ctx, tx, acct, id, v)
	})
}

// remove deletes a document, if there is one, and counts a version up.
func remove[T any](ctx context.Context, s *Store, t db.Documents[T], acct relay.AccountID, id, version string) error {
	return s.write(ctx, t.Noun(id), version, func(ctx context.Context, tx *db.Tx) error {
		return db.IgnoreNotFound(t.Delete(ctx, tx, acct, id))
	})
}

// CreateDecoder saves a decoder.
func (s *Store) CreateDecoder(ctx context.Context, acct relay.AccountID, d Decoder) error {
	return put(ctx, s, decoderTable, acct, d.ID, d, versionOf(acct))
}

// ChangeDecoder saves a decoder as changed by the function.
func (s *Store) ChangeDecoder(ctx context.Context, acct relay.AccountID, id string, edit func(*Decoder) error) (Decoder, error) {
	return change(ctx, s, decoderTable, acct, id, edit)
}

// DeleteDecoder deletes a decoder and its unmapped keys.
func (s *Store) DeleteDecoder(ctx context.Context, acct relay.AccountID, id string) error {
	return s.write(ctx, decoderTable.Noun(id), versionOf(acct), func(ctx context.Context, tx *db.Tx) error {
		if err := db.IgnoreNotFound(decoderTable.Delete(ctx, tx, acct, id)); err != nil {
			return err
		}
		return tx.Run(ctx, decoderTable.Noun(id), "DELETE FROM unmapped_key WHERE account = $1 AND decoder = $2", acct, id)
	})
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

// DeleteLocation deletes a location.
func (s *Store) DeleteLocation(ctx context.Context, acct relay.AccountID, id string) error {
	return remove(ctx, s, locationTable, acct, id, versionOf(acct))
}

// Locations lists an account's locations by id.
func (s *Store) Locations(ctx context.Context, acct relay.AccountID) ([]Location, error) {
	return locationTable.All(ctx, s.db, acct)
}

// PutSensorType saves a sensor type of the whole gateway.
func (s *Store) PutSensorType(ctx context.Context, t SensorType) error {
	return put(ctx, s, sensorTypeTable, 0, t.ID, t, typesVersion)
}

// DeleteSensorType deletes a sensor type.
func (s *Store) DeleteSensorType(ctx context.Context, id string) error {
	return remove(ctx, s, sensorTypeTable, 0, id, typesVersion)
}

// SensorTypes returns every sensor type by id.
func (s *Store) SensorTypes(ctx context.Context) (map[string]SensorType, error) {
	all, err := sensorTypeTable.All(ctx, s.db, 0)
	return db.By(all, func(t SensorType) string { return t.ID }), err
}

// Retire saves the retention of sensors of a device that is deleted next.
func (s *Store) Retire(ctx context.Context, acct relay.AccountID, sensors []Retired) error {
	first := db.FirstOfEach(sensors, func(a, b Retired) int { return cmp.Compare(a.SensorID, b.SensorID) })
	rows := db.BatchOf("account, id, doc", first, func(r *Retired) []any { return []any{acct, r.SensorID, db.JSON(r)} })
	return s.db.Run(ctx, "retired sensors", db.UpsertAll("retired_sensor", "account, id", "doc"), rows)
}

// Retired lists sensors of deleted devices by id.
func (s *Store) Retired(ctx context.Context, acct relay.AccountID) ([]Retired, error) {
	return retiredTable.All(ctx, s.db, acct)
}

// Unretire deletes sensors of deleted devices.
func (s *Store) Unretire(ctx context.Context, acct relay.AccountID, sensorIDs []string) error {
	return s.db.Run(ctx, "retired sensors", `
DELETE FROM retired_sensor WHERE (account, id) IN (SELECT account, id FROM batch)`, db.AccountColumn(acct, "id", sensorIDs))
}
