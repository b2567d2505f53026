package readings

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"time"

	"github.com/penstock/penstock/relay/iot"
)

// Aggregate returns the statistics of a device's numbers in each bucket, oldest
// first, and by sensor id and type for equal times.
func (s *Store) Aggregate(ctx context.Context, q iot.AggregateQuery) ([]iot.Bucket, error) {
	buckets, finite, err := s.aggregate(ctx, q, false)
	if err == nil && !finite {
		buckets, _, err = s.aggregate(ctx, q, true)
	}
	if err != nil {
		return nil, s.wrapError("aggregate", err)
	}
	return buckets, nil
}

// scale keeps sums of the largest floats finite. Scaling by a power of two is exact
// unless the number is tiny.
const scale = 1 << 64

// aggregate runs the query; if scaled, it averages values / scale. finite is false if
// an average exceeds the range of floats.
func (s *Store) aggregate(ctx context.Context, q iot.AggregateQuery, scaled bool) (buckets []iot.Bucket, finite bool, err error) {
	text, args := aggregateQuery(q, scaled)
	finite = true
	err = s.eachRow(ctx, func(rows *sql.Rows) error {
		var b iot.Bucket
		var start int64
		var value sql.NullFloat64 // NULL if infinities cancel out
		columns := []any{&b.Type, &b.SensorID, &start, &value}
		switch q.Statistic {
		case iot.MinAveMax:
			columns = append(columns, &b.Min, &b.Max)
		case iot.First:
			columns = append(columns, new(int64)) // the time of the value, which is not used
		}
		err := rows.Scan(columns...)
		b.Start, b.Value = time.Unix(0, start).UTC(), value.Float64
		finite = finite && value.Valid && !math.IsInf(b.Value, 0)
		buckets = append(buckets, b)
		return err
	}, text, args...)
	return buckets, finite, err
}

func aggregateQuery(q iot.AggregateQuery, scaled bool) (string, []any) {
	text := fmt.Sprintf(`
SELECT label.type, sensor.name, %s AS start, %s
FROM device
JOIN reading ON reading.device = device.id
JOIN sensor ON sensor.id = reading.sensor
JOIN label ON label.id = reading.label
WHERE device.account = ? AND device.name = ? AND reading.at BETWEEN ? AND ? AND reading.value IS NOT NULL`,
		startOf(q.Granularity), statistic(q.Statistic, scaled))
	text, args := withTypes(q.Query, text, rangeArgs(q.Query))
	text += " GROUP BY start, reading.sensor, label.type ORDER BY start, sensor.name, label.type"
	if q.Limit > 0 {
		text, args = text+" LIMIT ?", append(args, q.Limit)
	}
	return text, args
}

// startOf returns the expression for the start of a reading's bucket. SQLite's division
// rounds towards zero; the remainder is negative for times before 1970.
func startOf(g iot.Granularity) string {
	width, offset := g.Width()
	if width == 0 {
		return "unixepoch(reading.at / 1000000000 - (reading.at % 1000000000 < 0), 'unixepoch', 'start of month') * 1000000000"
	}
	elapsed := fmt.Sprintf("(reading.at - %d)", int64(offset))
	return fmt.Sprintf("(%[1]s / %[2]d - (%[1]s %% %[2]d < 0)) * %[2]d + %[3]d", elapsed, int64(width), int64(offset))
}

// statistic returns the columns that are selected from a bucket. With a single min(),
// SQLite takes the other columns from the row with the minimum.
func statistic(s iot.Statistic, scaled bool) string {
	average := "avg(reading.value)"
	if scaled {
		average = fmt.Sprintf("avg(reading.value / %[1]g) * %[1]g", float64(scale))
	}
	switch s {
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
