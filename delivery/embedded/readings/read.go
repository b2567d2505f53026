package readings

import (
	"context"
	"database/sql"
	"math"
	"time"

	"github.com/penstock/penstock/relay/iot"
)

// MaxReadings is the maximum number of points that a query returns.
const MaxReadings = 1000

// selectReadings scans the primary key backwards and stops at the limit; it sorts only
// readings of equal times.
const selectReadings = `
SELECT label.type, label.identifier, sensor.name, label.key, reading.at, reading.value, reading.text
FROM device
JOIN reading ON reading.device = device.id
JOIN sensor ON sensor.id = reading.sensor
JOIN label ON label.id = reading.label
WHERE device.account = ? AND device.name = ? AND reading.at BETWEEN ? AND ?`

// Readings returns a device's points, newest first, and by sensor id for equal
// times. No types means every type.
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
	var points []iot.Point
	err := s.eachRow(ctx, func(rows *sql.Rows) error {
		p, err := scan(rows)
		p.Account, p.DeviceID = q.Account, q.DeviceID
		points = append(points, p)
		return err
	}, text, args...)
	return points, err
}

// query returns the statement of a query and its arguments.
func query(q iot.Query) (string, []any) {
	limit := q.Limit
	if limit <= 0 || limit > MaxReadings {
		limit = MaxReadings
	}
	text, args := selectReadings, between(q)
	text, args = ofTypes(q, text, args)
	return text + " ORDER BY reading.at DESC, sensor.name LIMIT ?", append(args, limit)
}

// ofTypes restricts a statement to the types of a query.
func ofTypes(q iot.Query, text string, args []any) (string, []any) {
	if len(q.Types) == 0 {
		return text, args
	}
	list, args := list(args, q.Types)
	return text + " AND label.type IN " + list, args
}

// between returns a query's device and the bounds of its time range, as arguments.
func between(q iot.Query) []any {
	return []any{int64(q.Account), q.DeviceID, nanoseconds(q.From, math.MinInt64), nanoseconds(q.To, math.MaxInt64)}
}

// nanoseconds returns a bound as it is stored: unset if it is zero, and the nearest
// representable time if it is out of range.
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
		ns    int64
		value sql.NullFloat64
		text  sql.NullString
	)
	err := rows.Scan(&p.Type, &p.Identifier, &p.SensorID, &p.Key, &ns, &value, &text)
	p.Time, p.Value, p.Text, p.IsText = time.Unix(0, ns).UTC(), value.Float64, text.String, text.Valid
	return p, err
}
