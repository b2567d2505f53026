package influx

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	httpapi "github.com/influxdata/influxdb-client-go/v2/api/http"
	"github.com/influxdata/influxdb-client-go/v2/api/query"

	"github.com/penstock/penstock/relay/iot"
)

// Aggregate returns the statistics of a device's numbers in each bucket, oldest
// first, and by sensor id and type for equal times. The server computes them.
// Flux of 1.8 omits times before 1970.
func (s *Store) Aggregate(ctx context.Context, q iot.AggregateQuery) ([]iot.Bucket, error) {
	bounded := withBounds(q.Query)
	if q.From, q.To = bounded.From, bounded.To; q.From.After(q.To) {
		return nil, nil
	}
	aggregate, err := forLanguage(ctx, s, s.aggregateFlux, s.aggregateInfluxQL)
	if err != nil {
		return nil, err
	}
	buckets, err := aggregate(ctx, q, false)
	if errors.Is(err, errInfinite) {
		buckets, err = aggregate(ctx, q, true)
	}
	if err != nil {
		return nil, s.wrapError("query", err)
	}
	slices.SortFunc(buckets, func(a, b iot.Bucket) int {
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.SensorID, b.SensorID), cmp.Compare(a.Type, b.Type))
	})
	if q.Limit > 0 {
		buckets = buckets[:min(q.Limit, len(buckets))]
	}
	return buckets, nil
}

// errInfinite reports that an average exceeds the range of floats, which the server cannot
// encode in JSON. The query is then repeated for averages of value / scale. Dividing by a
// power of two is exact unless the number is tiny.
var errInfinite = errors.New("an average is infinite")

const scale = 1 << 64

func (s *Store) aggregateInfluxQL(ctx context.Context, q iot.AggregateQuery, scaled bool) ([]iot.Bucket, error) {
	if width, _ := q.Granularity.Width(); width == 0 {
		return s.aggregateMonths(ctx, q, scaled)
	}
	width, offset := q.Granularity.Width() // 1970 began on a Thursday
	text := fmt.Sprintf("%s, time(%ds, %ds) fill(none)", selectClause(q, scaled), int64(width/time.Second), int64(offset/time.Second))
	if q.Limit > 0 {
		text += fmt.Sprintf(" LIMIT %d", q.Limit)
	}
	results, err := s.aggregates(ctx, q, text)
	if err != nil {
		return nil, err
	}
	return appendBuckets(nil, results[0], q.Statistic, scaled, func(t time.Time) time.Time { return t })
}

// monthsPerRequest is the number of months that one request covers: ten years.
const monthsPerRequest = 120

// aggregateMonths uses one statement per month, because InfluxQL cannot group by
// calendar month.
func (s *Store) aggregateMonths(ctx context.Context, q iot.AggregateQuery, scaled bool) ([]iot.Bucket, error) {
	q, err := s.narrowToStored(ctx, q)
	if err != nil {
		return nil, err
	}
	var months []iot.AggregateQuery
	for start := q.From; !start.After(q.To); start = q.Granularity.Next(start) {
		month := q
		month.From = start
		if end := q.Granularity.Next(start).Add(-1); end.Before(q.To) {
			month.To = end
		}
		months = append(months, month)
	}
	var buckets []iot.Bucket
	for part := range slices.Chunk(months, monthsPerRequest) {
		statements := make([]string, len(part))
		for i, month := range part {
			statements[i] = selectClause(month, scaled)
		}
		results, err := s.aggregates(ctx, q, statements...)
		if err != nil {
			return nil, err
		}
		for i, month := range part {
			start := q.Granularity.Start(month.From)
			if buckets, err = appendBuckets(buckets, results[i], q.Statistic, scaled, func(time.Time) time.Time { return start }); err != nil {
				return nil, err
			}
		}
	}
	return buckets, nil
}

// narrowToStored narrows a range of many months to the range that contains readings.
func (s *Store) narrowToStored(ctx context.Context, q iot.AggregateQuery) (iot.AggregateQuery, error) {
	if q.To.Sub(q.From) < monthsPerRequest*28*24*time.Hour {
		return q, nil
	}
	values := "SELECT value FROM " + measurementList(q.Types) + condition(q)
	results, err := s.aggregates(ctx, q, values+" ORDER BY time ASC LIMIT 1", values+" ORDER BY time DESC LIMIT 1")
	if err != nil {
		return q, err
	}
	var earliest, latest time.Time
	for n, rows := range results {
		err := eachRow(rows, func(_ *series, t time.Time, _ row) error {
			switch {
			case n == 0 && (earliest.IsZero() || t.Before(earliest)):
				earliest = t
			case n == 1 && t.After(latest):
				latest = t
			}
			return nil
		})
		if err != nil {
			return q, err
		}
	}
	if earliest.IsZero() {
		latest = earliest.Add(-1) // no readings: an empty range
	}
	q.From, q.To = earliest, latest
	return q, nil
}

// aggregates runs statements about a device and returns the series of each.
func (s *Store) aggregates(ctx context.Context, q iot.AggregateQuery, statements ...string) ([][]series, error) {
	results, err := s.influxQLs(ctx, s.statement(deviceParams(q.Query), strings.Join(statements, "; ")))
	herr, ok := errors.AsType[*httpapi.Error](err)
	switch {
	case ok && strings.Contains(herr.Message, "unsupported value"): // an infinity in JSON
		return nil, errInfinite
	case err != nil:
		return nil, err
	case len(results) != len(statements):
		return nil, fmt.Errorf("%d results for %d statements", len(results), len(statements))
	}
	return results, nil
}

// selectClause returns the statement of an aggregate up to its GROUP BY time clause.
func selectClause(q iot.AggregateQuery, scaled bool) string {
	functions := strings.Join(functionsOf(q.Statistic), "(value), ") + "(value)"
	source := measurementList(q.Types) + condition(q)
	if scaled {
		functions = strings.ReplaceAll(functions, "mean(value)", "mean(scaled)")
		source = fmt.Sprintf("(SELECT value / %.1f AS scaled, value FROM %s) WHERE %s", float64(scale), source, strings.TrimPrefix(timeCondition(q.Query), " AND "))
	}
	return "SELECT " + functions + " FROM " + source + " GROUP BY sensor_id"
}

func condition(q iot.AggregateQuery) string {
	return " WHERE account = $account AND device_id = $device" + timeCondition(q.Query)
}

// functionsOf returns the functions of a statistic, which both query languages have.
func functionsOf(s iot.Statistic) []string {
	switch s {
	case iot.First:
		return []string{"first"}
	case iot.Least:
		return []string{"min"}
	case iot.Most:
		return []string{"max"}
	case iot.MinAveMax:
		return []string{"mean", "min", "max"}
	}
	return []string{"mean"}
}

// appendBuckets converts the rows of series to buckets: time, value, and for
// MinAveMax the minimum and the maximum.
func appendBuckets(buckets []iot.Bucket, rows []series, statistic iot.Statistic, scaled bool, start func(time.Time) time.Time) ([]iot.Bucket, error) {
	for _, sr := range rows {
		b := iot.Bucket{Type: unclean(sr.Name), SensorID: unclean(sr.Tags["sensor_id"])}
		targets := []*float64{&b.Value, &b.Min, &b.Max}[:len(functionsOf(statistic))]
		buckets = slices.Grow(buckets, len(sr.Values))
		for _, row := range sr.Values {
			t, err := row.time()
			if err == nil && len(row) != len(targets)+1 {
				err = fmt.Errorf("a row of %d columns", len(row))
			}
			for i := 0; err == nil && i < len(targets); i++ {
				var null bool
				if *targets[i], null, err = row.number(i + 1); null {
					err = errors.New("a row without a number")
				}
			}
			if err != nil {
				return nil, err
			}
			if scaled && (statistic == iot.Average || statistic == iot.MinAveMax) {
				b.Value *= scale
			}
			b.Start = start(t)
			buckets = append(buckets, b)
		}
	}
	return buckets, nil
}

// aggregateFlux queries each statistic as a result of its own and merges the
// records of each bucket.
func (s *Store) aggregateFlux(ctx context.Context, q iot.AggregateQuery, scaled bool) ([]iot.Bucket, error) {
	type key struct {
		kind, sensor string
		start        int64
	}
	byKey := make(map[key]*iot.Bucket)
	err := s.flux(ctx, s.aggregateScript(q, scaled), func(r *query.FluxRecord) error {
		value, ok := r.Value().(float64)
		if !ok {
			return fmt.Errorf("flux: a value of type %T", r.Value())
		}
		// The first and the last window are cut at the ends of the range, so the
		// start is computed.
		sensor, start := fluxTag(r, "sensor_id"), q.Granularity.Start(r.Time())
		k := key{r.Measurement(), sensor, start.UnixNano()}
		b := byKey[k]
		if b == nil {
			b = &iot.Bucket{Type: unclean(r.Measurement()), SensorID: unclean(sensor), Start: start}
			byKey[k] = b
		}
		switch {
		case r.Result() == "min" && q.Statistic == iot.MinAveMax:
			b.Min = value
		case r.Result() == "max" && q.Statistic == iot.MinAveMax:
			b.Max = value
		case r.Result() == "mean" && (math.IsInf(value, 0) || math.IsNaN(value)):
			return errInfinite
		case r.Result() == "mean" && scaled:
			b.Value = value * scale
		default:
			b.Value = value
		}
		return nil
	})
	buckets := make([]iot.Bucket, 0, len(byKey))
	for _, b := range byKey {
		buckets = append(buckets, *b)
	}
	return buckets, err
}

func (s *Store) aggregateScript(q iot.AggregateQuery, scaled bool) string {
	var b strings.Builder
	b.WriteString("readings = " + s.fluxDevice(q.Query, `r._field == "value"`))
	// 1.8 includes the end of a range.
	fmt.Fprintf(&b, "  |> filter(fn: (r) => r._time <= %s)\n", fluxTime(q.To))
	b.WriteString("  |> group(columns: [\"_measurement\", \"sensor_id\"])\n  |> sort(columns: [\"_time\"])\n")
	window := "every: 1mo"
	if width, offset := q.Granularity.Width(); width != 0 {
		window = fmt.Sprintf("every: %ds, offset: %ds", int64(width/time.Second), int64(offset/time.Second))
	}
	fmt.Fprintf(&b, "  |> window(%s)\n", window)
	// Join the results of the windows into one table, like aggregateWindow, which has no offset
	// in 1.8.
	for _, function := range functionsOf(q.Statistic) {
		scaling := ""
		if scaled && function == "mean" {
			scaling = fmt.Sprintf("|> map(fn: (r) => ({r with _value: r._value / %.1f})) ", float64(scale))
		}
		fmt.Fprintf(&b, "readings %s|> %s() |> duplicate(column: \"_start\", as: \"_time\") |> window(every: inf) |> yield(name: \"%s\")\n", scaling, function, function)
	}
	return b.String()
}
