package readings

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/penstock/penstock/relay/iot"
)

// Aggregate returns what the numbers of a device come to in each bucket, oldest
// first; at the same time in order of sensor id and type.
func (s *Store) Aggregate(ctx context.Context, q iot.AggregateQuery) ([]iot.Bucket, error) {
	buckets, finite, err := s.aggregate(ctx, q, false)
	if err == nil && !finite {
		buckets, _, err = s.aggregate(ctx, q, true)
	}
	if err != nil {
		return nil, s.failed("aggregate", err)
	}
	return buckets, nil
}

// scale keeps sums of the largest floats finite. Multiplying by a power of two
// loses nothing of a number that is not tiny.
const scale = 1 << 64

// aggregate runs the query; scaled, averages are made of values / scale. finite
// is false when an average has left the range of floats.
func (s *Store) aggregate(ctx context.Context, q iot.AggregateQuery, scaled bool) (buckets []iot.Bucket, finite bool, err error) {
	text, args := aggregateQuery(q, scaled)
	rows, err := s.read.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = rows.Close() }()
	finite = true
	for rows.Next() {
		b, ok, err := bucket(rows, q.Statistic)
		if err != nil {
			return nil, false, err
		}
		finite = finite && ok
		buckets = append(buckets, b)
	}
	return buckets, finite, rows.Err()
}

// bucket reads a row: type, sensor, start, value, and what some statistics have
// besides.
func bucket(rows *sql.Rows, of iot.Statistic) (b iot.Bucket, finite bool, err error) {
	var start int64
	var value sql.NullFloat64 // NULL: infinities that cancel out
	to := []any{&b.Type, &b.SensorID, &start, &value}
	switch of {
	case iot.MinAveMax:
		to = append(to, &b.Min, &b.Max)
	case iot.First:
		to = append(to, new(int64)) // its time
	}
	err = rows.Scan(to...)
	b.Start, b.Value = time.Unix(0, start).UTC(), value.Float64
	return b, value.Valid && !math.IsInf(b.Value, 0), err
}

// aggregateQuery makes the statement for a query and its parameters.
func aggregateQuery(q iot.AggregateQuery, scaled bool) (string, []any) {
	var b strings.Builder
	fmt.Fprintf(&b, `
SELECT label.type, sensor.name, %s AS start, %s
FROM device
JOIN reading ON reading.device = device.id
JOIN sensor ON sensor.id = reading.sensor
JOIN label ON label.id = reading.label
WHERE device.account = ? AND device.name = ? AND reading.at BETWEEN ? AND ? AND reading.value IS NOT NULL`,
		startOf(q.Granularity), statistic(q.Statistic, scaled))
	args := between(q.Query)
	if len(q.Types) > 0 {
		b.WriteString(" AND label.type IN (?" + strings.Repeat(", ?", len(q.Types)-1) + ")")
		for _, t := range q.Types {
			args = append(args, t)
		}
	}
	b.WriteString(" GROUP BY start, reading.sensor, label.type ORDER BY start, sensor.name, label.type")
	if q.Limit > 0 {
		b.WriteString(" LIMIT ?")
		args = append(args, q.Limit)
	}
	return b.String(), args
}

// startOf is the start of a reading's bucket. SQLite's division rounds towards
// zero; a remainder below zero is a time before 1970.
func startOf(g iot.Granularity) string {
	width, offset := g.Width()
	if width == 0 {
		return "unixepoch(reading.at / 1000000000 - (reading.at % 1000000000 < 0), 'unixepoch', 'start of month') * 1000000000"
	}
	at := fmt.Sprintf("(reading.at - %d)", int64(offset))
	return fmt.Sprintf("(%[1]s / %[2]d - (%[1]s %% %[2]d < 0)) * %[2]d + %[3]d", at, int64(width), int64(offset))
}

// statistic is what is selected of a bucket. Beside a lone min(), SQLite takes
// the other columns from the row that has it.
func statistic(of iot.Statistic, scaled bool) string {
	average := "avg(reading.value)"
	if scaled {
		average = fmt.Sprintf("avg(reading.value / %[1]g) * %[1]g", float64(scale))
	}
	switch of {
	case iot.First:
		return "reading.value, min(reading.at)"
	case iot.Least:
		return "min(reading.value)"
	case iot.Most:
		return "max(reading.value)"
	case iot.MinAveMax:
		return average + ", min(reading.value), max(reading.value)"
	}
	return average
}
