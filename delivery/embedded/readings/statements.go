package readings

import (
	"context"
	"database/sql"
	"strings"
)

// Readings are inserted with many rows per statement, which halves the cost of a row.
const (
	rowsPerStatement = 64
	rowColumns       = 6
)

// The statements of a write.
const (
	findDevice   = "SELECT id FROM device WHERE account = ? AND name = ?"
	insertDevice = "INSERT INTO device (account, name) VALUES (?, ?) RETURNING id"
	findSensor   = "SELECT id FROM sensor WHERE device = ? AND name = ?"
	insertSensor = "INSERT INTO sensor (device, name) VALUES (?, ?) RETURNING id"
	findLabel    = "SELECT id FROM label WHERE type = ? AND identifier = ? AND key = ?"
	insertLabel  = "INSERT INTO label (type, identifier, key) VALUES (?, ?, ?) RETURNING id"
	raiseNewest  = "INSERT INTO newest (sensor, at) VALUES (?, ?) ON CONFLICT DO UPDATE SET at = excluded.at WHERE excluded.at > at"

	// A later write that omits a field keeps it, as in InfluxDB: a network may report one
	// frame in two posts.
	insertUplink = `
		INSERT INTO uplink (device, at, identifier, f_cnt, f_port, rssi, snr, gateways, battery, margin, latitude, longitude)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET
		  identifier = excluded.identifier,
		  f_cnt = coalesce(excluded.f_cnt, f_cnt),
		  f_port = coalesce(excluded.f_port, f_port),
		  rssi = coalesce(excluded.rssi, rssi),
		  snr = coalesce(excluded.snr, snr),
		  gateways = coalesce(excluded.gateways, gateways),
		  battery = coalesce(excluded.battery, battery),
		  margin = coalesce(excluded.margin, margin),
		  latitude = coalesce(excluded.latitude, latitude),
		  longitude = coalesce(excluded.longitude, longitude)`
)

func insertReadings(n int) string {
	return "INSERT INTO reading (device, at, sensor, label, value, text) VALUES (?, ?, ?, ?, ?, ?)" +
		strings.Repeat(", (?, ?, ?, ?, ?, ?)", n-1) +
		" ON CONFLICT DO UPDATE SET label = excluded.label, value = excluded.value, text = excluded.text"
}

type statements struct {
	tx       *sql.Tx
	prepared map[string]*sql.Stmt // closed by the transaction
}

func (s *statements) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	if stmt := s.prepared[query]; stmt != nil {
		return stmt, nil
	}
	stmt, err := s.tx.PrepareContext(ctx, query)
	s.prepared[query] = stmt
	return stmt, err
}

func (s *statements) exec(ctx context.Context, query string, args ...any) error {
	stmt, err := s.prepare(ctx, query)
	if err == nil {
		_, err = stmt.ExecContext(ctx, args...)
	}
	return err
}
