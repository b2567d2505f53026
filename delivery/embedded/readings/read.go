package readings

import (
	"context"
	"database/sql"
	"math"
	"strings"
	"time"

	"github.com/penstock/penstock/relay/iot"
)

// MaxReadings is the most points one query returns.
const MaxReadings = 1000

// selectReadings walks the primary key backwards and stops at the limit; only
// readings of the same time are sorted.
const selectReadings = `
SELECT label.type, label.identifier, sensor.name, label.key, reading.at, reading.value, reading.text
FROM device
JOIN reading ON reading.device = device.id
JOIN sensor ON sensor.id = reading.sensor
JOIN label ON label.id = reading.label
WHERE device.account = ? AND device.name = ? AND reading.at BETWEEN ? AND ?`

// Readings returns a device's points, newest first; at the same time in order
// of sensor id. No types means every type.
func (s *Store) Readings(ctx context.Context, q iot.Query) ([]iot.Point, error) {
	text, args := query(q)
	points, err := s.points(ctx, q, text, args...)
	if err != nil {
		return nil, s.failed("query", err)
	}
	return points, nil
}

// points runs a statement that selects the points of a query's device.
func (s *Store) points(ctx context.Context, q iot.Query, text string, args ...any) ([]iot.Point, error) {
	rows, err := s.read.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var points []iot.Point
	for rows.Next() {
		p, err := scan(rows)
		if err != nil {
			return nil, err
		}
		p.Account, p.DeviceID = q.Account, q.DeviceID
		points = append(points, p)
	}
	return points, rows.Err()
}

// query makes the statement for a query and its parameters.
func query(q iot.Query) (string, []any) {
	limit := q.Limit
	if limit <= 0 || limit > MaxReadings {
		limit = MaxReadings
	}
	text, args := selectReadings, between(q)
	if len(q.Types) > 0 {
		text += " AND label.type IN (?" + strings.Repeat(", ?", len(q.Types)-1) + ")"
		for _, t := range q.Types {
			args = append(args, t)
		}
	}
	return text + " ORDER BY reading.at DESC, sensor.name LIMIT ?", append(args, limit)
}

// between is a device and the ends of a time, as parameters.
func between(q iot.Query) []any {
	return []any{int64(q.Account), q.DeviceID, nanoseconds(q.From, math.MinInt64), nanoseconds(q.To, math.MaxInt64)}
}

// nanoseconds is a bound as it is stored; unset stands for none, and what
// nanoseconds do not reach for the nearest that they do.
func nanoseconds(t time.Time, unset int64) int64 {
	switch year := t.UTC().Year(); {
	case t.IsZero():
		return unset
	case year < 1678:
		return math.MinInt64
	case year > 2261:
		return math.MaxInt64
	}
	return t.UnixNano()
}

func scan(rows *sql.Rows) (iot.Point, error) {
	var (
		p     iot.Point
		at    int64
		value sql.NullFloat64
		text  sql.NullString
	)
	err := rows.Scan(&p.Type, &p.Identifier, &p.SensorID, &p.Key, &at, &value, &text)
	p.Time, p.Value, p.Text, p.IsText = time.Unix(0, at).UTC(), value.Float64, text.String, text.Valid
	return p, err
}
