package influx

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	httpapi "github.com/influxdata/influxdb-client-go/v2/api/http"

	"github.com/penstock/penstock/relay/iot"
)

// Aggregate returns the statistics of a device's numbers in each bucket, oldest
// first, and by sensor id and type for equal times. The server computes them.
// Flux of 1.8 omits times before 1970.
func (s *Store) Aggregate(ctx context.Context, q iot.AggregateQuery) ([]iot.Bucket, error) {
	ends := withBounds(q.Query)
	if q.From, q.To = ends.From, ends.To; q.From.After(q.To) {
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
	if !slices.IsSortedFunc(buckets, olderFirst) {
		slices.SortFunc(buckets, olderFirst)
	}
	if q.Limit > 0 {
		buckets = buckets[:min(q.Limit, len(buckets))]
	}
	return buckets, nil
}

func olderFirst(a, b iot.Bucket) int {
	if c := a.Start.Compare(b.Start); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(a.SensorID, b.SensorID), cmp.Compare(a.Type, b.Type))
}

// errInfinite reports that an average has left the range of floats, which the server cannot
// put into JSON: it is asked again for averages of value / scale. Dividing by a power of two
// loses nothing of a number that is not tiny.
var errInfinite = errors.New("an average is infinite")

const scale = 1 << 64

func (s *Store) aggregateInfluxQL(ctx context.Context, q iot.AggregateQuery, scaled bool) ([]iot.Bucket, error) {
	if width, _ := q.Granularity.Width(); width == 0 {
		return s.aggregateMonths(ctx, q, scaled)
	}
	text := selectClause(q, scaled) + ", " + timeGrouping(q.Granularity)
	if q.Limit > 0 {
		text += fmt.Sprintf(" LIMIT %d", q.Limit)
	}
	found, err := s.aggregates(ctx, q, text)
	if err != nil {
		return nil, err
	}
	return appendBuckets(nil, found[0], q.Statistic, scaled, func(t time.Time) time.Time { return t })
}

// timeGrouping returns the GROUP BY time clause; 1970 began on a Thursday.
func timeGrouping(g iot.Granularity) string {
	width, offset := g.Width()
	return fmt.Sprintf("time(%ds, %ds) fill(none)", int64(width/time.Second), int64(offset/time.Second))
}

// monthsAtOnce is the number of months that one request covers: ten years.
const monthsAtOnce = 120

// aggregateMonths uses one statement per month, because InfluxQL cannot group by
// calendar month.
func (s *Store) aggregateMonths(ctx context.Context, q iot.AggregateQuery, scaled bool) ([]iot.Bucket, error) {
	q, err := s.narrowToStored(ctx, q)
	if err != nil {
		return nil, err
	}
	var buckets []iot.Bucket
	for part := range slices.Chunk(months(q), monthsAtOnce) {
		texts := make([]string, len(part))
		for i, month := range part {
			texts[i] = selectClause(month, scaled)
		}
		found, err := s.aggregates(ctx, q, texts...)
		if err != nil {
			return nil, err
		}
		for i, month := range part {
			start := q.Granularity.Start(month.From)
			if buckets, err = appendBuckets(buckets, found[i], q.Statistic, scaled, func(time.Time) time.Time { return start }); err != nil {
				return nil, err
			}
		}
	}
	return buckets, nil
}

// months splits a query into the months that it covers.
func months(q iot.AggregateQuery) (queries []iot.AggregateQuery) {
	for start := q.From; !start.After(q.To); start = q.Granularity.Next(start) {
		month := q
		month.From = start
		if end := q.Granularity.Next(start).Add(-1); end.Before(q.To) {
			month.To = end
		}
		queries = append(queries, month)
	}
	return queries
}

// narrowToStored narrows a range of many months to the one that contains
// readings.
func (s *Store) narrowToStored(ctx context.Context, q iot.AggregateQuery) (iot.AggregateQuery, error) {
	if q.To.Sub(q.From) < monthsAtOnce*28*24*time.Hour {
		return q, nil
	}
	values := "SELECT value FROM " + measurementList(q.Types) + condition(q)
	found, err := s.aggregates(ctx, q, values+" ORDER BY time ASC LIMIT 1", values+" ORDER BY time DESC LIMIT 1")
	if err != nil {
		return q, err
	}
	var earliest, latest time.Time
	for n, list := range found {
		err := eachRow(list, func(_ *series, t time.Time, _ row) error {
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
		latest = earliest.Add(-1) // nothing at all
	}
	q.From, q.To = earliest, latest
	return q, nil
}

// aggregates runs statements about a device and returns the series of each.
func (s *Store) aggregates(ctx context.Context, q iot.AggregateQuery, texts ...string) ([][]series, error) {
	found, err := s.influxQLs(ctx, s.statement(deviceParams(q.Query), strings.Join(texts, "; ")))
	switch {
	case unsupported(err):
		return nil, errInfinite
	case err != nil:
		return nil, err
	case len(found) != len(texts):
		return nil, fmt.Errorf("%d results of %d statements", len(found), len(texts))
	}
	return found, nil
}

// unsupported reports whether the server failed to encode an infinity in JSON.
func unsupported(err error) bool {
	herr, ok := errors.AsType[*httpapi.Error](err)
	return ok && strings.Contains(herr.Message, "unsupported value")
}

// selectClause returns the statement of an aggregate up to its GROUP BY time
// clause.
func selectClause(q iot.AggregateQuery, scaled bool) string {
	if !scaled {
		return "SELECT " + statistic(q.Statistic, "value") + " FROM " + measurementList(q.Types) + condition(q) + " GROUP BY sensor_id"
	}
	inner := fmt.Sprintf("SELECT value / %.1f AS scaled, value FROM %s%s", float64(scale), measurementList(q.Types), condition(q))
	outer := strings.ReplaceAll(statistic(q.Statistic, "value"), "mean(value)", "mean(scaled)")
	return "SELECT " + outer + " FROM (" + inner + ") WHERE " + strings.TrimPrefix(timeCondition(q.Query), " AND ") + " GROUP BY sensor_id"
}

// condition restricts a query to the device and the time range.
func condition(q iot.AggregateQuery) string {
	return " WHERE account = $account AND device_id = $device" + timeCondition(q.Query)
}

func statistic(s iot.Statistic, field string) string {
	switch s {
	case iot.First:
		return "first(" + field + ")"
	case iot.Least:
		return "min(" + field + ")"
	case iot.Most:
		return "max(" + field + ")"
	case iot.MinAveMax:
		return "mean(" + field + "), min(" + field + "), max(" + field + ")"
	}
	return "mean(" + field + ")"
}

// appendBuckets converts the rows of series to buckets: time, value, and for
// MinAveMax the minimum and the maximum.
func appendBuckets(buckets []iot.Bucket, found []series, statistic iot.Statistic, scaled bool, start func(time.Time) time.Time) ([]iot.Bucket, error) {
	for _, sr := range found {
		b := iot.Bucket{Type: unclean(sr.Name), SensorID: unclean(sr.Tags["sensor_id"])}
		buckets = slices.Grow(buckets, len(sr.Values))
		for _, row := range sr.Values {
			t, err := row.time()
			if err == nil {
				err = setStatistics(row, statistic, &b)
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

// setStatistics sets the columns after the time.
func setStatistics(r row, statistic iot.Statistic, b *iot.Bucket) (err error) {
	targets := []*float64{&b.Value, &b.Min, &b.Max}
	if statistic != iot.MinAveMax {
		targets = targets[:1]
	}
	if len(r) != len(targets)+1 {
		return fmt.Errorf("a row of %d columns", len(r))
	}
	for i := range targets {
		var null bool
		if *targets[i], null, err = r.number(i + 1); err == nil && null {
			err = errors.New("a row without a number")
		}
		if err != nil {
			return err
		}
	}
	return nil
}
