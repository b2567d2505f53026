package readings

import (
	"context"
	"database/sql"
	"errors"
	"strings"
)

// Readings are inserted with many rows per statement, which halves the cost of a row.
const (
	rowsAtOnce = 64
	rowColumns = 6
)

// A row is device, at, sensor, label, value, text.
const (
	insertInto = "INSERT INTO reading (device, at, sensor, label, value, text) VALUES "
	insertRow  = "(?, ?, ?, ?, ?, ?)"
	overwrite  = " ON CONFLICT DO UPDATE SET label = excluded.label, value = excluded.value, text = excluded.text"
)

// uplinkFields are the fields of an uplink, in the order in which they are written.
const uplinkFields = "f_cnt, f_port, rssi, snr, gateways, battery, margin, latitude, longitude"

// statements are the prepared statements of a write.
type statements struct {
	findDevice, insertDevice      *sql.Stmt // account, name
	findSensor, insertSensor      *sql.Stmt // device, name
	findLabel, insertLabel        *sql.Stmt // type, identifier, key
	insertReading, insertReadings *sql.Stmt
	insertUplink                  *sql.Stmt
	raiseNewest                   *sql.Stmt // sensor, at
}

func prepare(db *sql.DB) (*statements, error) {
	var errs []error
	stmt := func(query string) *sql.Stmt {
		st, err := db.PrepareContext(context.Background(), query)
		errs = append(errs, err)
		return st
	}
	// A later write that omits a field keeps it, as InfluxDB does: a network may report one
	// frame in two posts.
	var overwriteFields []string
	for _, name := range strings.Split(uplinkFields, ", ") {
		overwriteFields = append(overwriteFields, name+" = coalesce(excluded."+name+", "+name+")")
	}
	s := &statements{
		raiseNewest:    stmt("INSERT INTO newest (sensor, at) VALUES (?, ?) ON CONFLICT DO UPDATE SET at = excluded.at WHERE excluded.at > at"),
		findDevice:     stmt("SELECT id FROM device WHERE account = ? AND name = ?"),
		insertDevice:   stmt("INSERT INTO device (account, name) VALUES (?, ?) RETURNING id"),
		findSensor:     stmt("SELECT id FROM sensor WHERE device = ? AND name = ?"),
		insertSensor:   stmt("INSERT INTO sensor (device, name) VALUES (?, ?) RETURNING id"),
		findLabel:      stmt("SELECT id FROM label WHERE type = ? AND identifier = ? AND key = ?"),
		insertLabel:    stmt("INSERT INTO label (type, identifier, key) VALUES (?, ?, ?) RETURNING id"),
		insertReading:  stmt(insertInto + insertRow + overwrite),
		insertReadings: stmt(insertInto + strings.Repeat(insertRow+", ", rowsAtOnce-1) + insertRow + overwrite),
		insertUplink: stmt("INSERT INTO uplink (device, at, identifier, " + uplinkFields + ")" +
			" VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET identifier = excluded.identifier, " + strings.Join(overwriteFields, ", ")),
	}
	return s, errors.Join(errs...)
}

// inTx returns the statements as part of a transaction, which closes them.
func (s *statements) inTx(ctx context.Context, tx *sql.Tx) *statements {
	stmt := func(st *sql.Stmt) *sql.Stmt { return tx.StmtContext(ctx, st) }
	return &statements{
		findDevice: stmt(s.findDevice), insertDevice: stmt(s.insertDevice),
		findSensor: stmt(s.findSensor), insertSensor: stmt(s.insertSensor),
		findLabel: stmt(s.findLabel), insertLabel: stmt(s.insertLabel),
		insertReading: stmt(s.insertReading), insertReadings: stmt(s.insertReadings),
		insertUplink: stmt(s.insertUplink),
		raiseNewest:  stmt(s.raiseNewest),
	}
}
