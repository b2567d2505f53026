package influx

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/influxdata/influxdb-client-go/v2/api/query"

	"github.com/penstock/penstock/relay/iot"
)

// key identifies the bucket of a record.
type key struct {
	kind, sensor string
	start        int64
}

// aggregateFlux queries each statistic as a result of its own and merges the
// records of each bucket.
func (s *Store) aggregateFlux(ctx context.Context, q iot.AggregateQuery, scaled bool) ([]iot.Bucket, error) {
	byKey := make(map[key]*iot.Bucket)
	err := s.flux(ctx, s.aggregateScript(q, scaled), func(r *query.FluxRecord) error { return addRecord(byKey, r, q, scaled) })
	if err != nil {
		return nil, err
	}
	buckets := make([]iot.Bucket, 0, len(byKey))
	for _, b := range byKey {
		buckets = append(buckets, *b)
	}
	return buckets, nil
}

// addRecord adds a record to its bucket. The first and the last window are cut
// at the ends of the range, so the start is looked up.
func addRecord(buckets map[key]*iot.Bucket, r *query.FluxRecord, q iot.AggregateQuery, scaled bool) error {
	sensor := fluxTag(r, "sensor_id")
	value, ok := r.Value().(float64)
	if !ok {
		return fmt.Errorf("flux: a value of type %T", r.Value())
	}
	start := q.Granularity.Start(r.Time())
	k := key{r.Measurement(), sensor, start.UnixNano()}
	b := buckets[k]
	if b == nil {
		b = &iot.Bucket{Type: unclean(r.Measurement()), SensorID: unclean(sensor), Start: start}
		buckets[k] = b
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
}

func (s *Store) aggregateScript(q iot.AggregateQuery, scaled bool) string {
	var b strings.Builder
	b.WriteString("readings = " + s.fluxRange(q.From, q.To.Add(1)))
	fmt.Fprintf(&b, "  |> filter(fn: (r) => r.device_id == %s and r.account == %s and r._field == \"value\")\n", quoteFlux(clean(q.DeviceID)), quoteFlux(q.Account.String()))
	if len(q.Types) > 0 {
		fmt.Fprintf(&b, "  |> filter(fn: (r) => %s)\n", fluxIn("_measurement", q.Types))
	}
	// 1.8 takes the end of a range for a part of it.
	fmt.Fprintf(&b, "  |> filter(fn: (r) => r._time <= %s)\n", fluxTime(q.To))
	fmt.Fprintf(&b, "  |> group(columns: [\"_measurement\", \"sensor_id\"])\n  |> sort(columns: [\"_time\"])\n")
	fmt.Fprintf(&b, "  |> window(%s)\n", fluxWindow(q.Granularity))
	// What becomes of the windows is put into one table again, as aggregateWindow
	// does; that of 1.8 knows no offset.
	for _, function := range fluxFunctions(q.Statistic) {
		grouping := ""
		if scaled && function == "mean" {
			grouping = fmt.Sprintf("|> map(fn: (r) => ({r with _value: r._value / %.1f})) ", float64(scale))
		}
		fmt.Fprintf(&b, "readings %s|> %s() |> duplicate(column: \"_start\", as: \"_time\") |> window(every: inf) |> yield(name: \"%s\")\n", grouping, function, function)
	}
	return b.String()
}

func fluxWindow(g iot.Granularity) string {
	width, offset := g.Width()
	if width == 0 {
		return "every: 1mo"
	}
	return fmt.Sprintf("every: %ds, offset: %ds", int64(width/time.Second), int64(offset/time.Second))
}

func fluxFunctions(statistic iot.Statistic) []string {
	switch statistic {
	case iot.First:
		return []string{"first"}
	case iot.Least:
		return []string{"min"}
	case iot.Most:
		return []string{"max"}
	case iot.MinAveMax:
		return []string{"min", "mean", "max"}
	}
	return []string{"mean"}
}
