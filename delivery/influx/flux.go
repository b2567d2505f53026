package influx

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/influxdata/influxdb-client-go/v2/api/query"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

// readFlux queries the newest points of each series and field of the device. Servers push
// range and filter down to storage. The end of a range is exclusive in Flux, but 1.8 includes
// it, so readFlux requests one point more and drops points outside the range.
func (s *Store) readFlux(ctx context.Context, q iot.Query) ([]iot.Point, error) {
	var points []iot.Point
	script := s.fluxDevice(q, `r._field == "value" or r._field == "text"`) + fmt.Sprintf("  |> tail(n: %d)\n", q.Limit+1)
	err := s.flux(ctx, script, func(r *query.FluxRecord) error {
		p := pointOf(q.Account, r.Measurement(), func(tag string) string { return fluxTag(r, tag) })
		p.Time = r.Time().UTC()
		p.IsText = r.Field() == "text"
		p.Value, _ = r.Value().(float64)
		text, _ := r.Value().(string) // empty if the client returns nil
		p.Text = unclean(text)
		if !p.Time.Before(q.From) && !p.Time.After(q.To) {
			points = append(points, p)
		}
		return nil
	})
	if err != nil {
		return nil, s.wrapError("query", err)
	}
	return points, nil
}

func (s *Store) flux(ctx context.Context, script string, visit func(*query.FluxRecord) error) error {
	records, err := s.client.QueryAPI(s.opts.Org).Query(ctx, script)
	if err != nil {
		return err
	}
	for records.Next() {
		if err := visit(records.Record()); err != nil {
			return err
		}
	}
	if err := records.Err(); err != nil {
		return fmt.Errorf("flux: %w", err)
	}
	return nil
}

// fluxDevice starts a script with the device's records of some fields in the range of a query.
func (s *Store) fluxDevice(q iot.Query, fields string) string {
	script := s.fluxRange(q.From, q.To.Add(1)) + fmt.Sprintf("  |> filter(fn: (r) => r.device_id == %s and r.account == %s)\n  |> filter(fn: (r) => %s)\n",
		quoteFlux(clean(q.DeviceID)), quoteFlux(q.Account.String()), fields)
	if len(q.Types) > 0 {
		script += fmt.Sprintf("  |> filter(fn: (r) => %s)\n", fluxIn("_measurement", q.Types))
	}
	return script
}

// fluxRange starts a script with the bucket's records from start up to but excluding stop.
func (s *Store) fluxRange(start, stop time.Time) string {
	return fmt.Sprintf("from(bucket: %s)\n  |> range(start: %s, stop: %s)\n", quoteFlux(s.opts.Bucket), fluxTime(start), fluxTime(stop))
}

func fluxIn(column string, values []string) string {
	comparisons := make([]string, len(values))
	for i, v := range values {
		comparisons[i] = "r." + column + " == " + quoteFlux(clean(v))
	}
	return strings.Join(comparisons, " or ")
}

func fluxTag(r *query.FluxRecord, tag string) string {
	value, _ := r.ValueByKey(tag).(string)
	return value
}

func fluxTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// quoteFlux quotes a string of Flux. Special bytes are written in hexadecimal, also $, which
// would begin an interpolation.
func quoteFlux(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		if isPlainByte(s[i]) {
			b.WriteByte(s[i])
		} else {
			fmt.Fprintf(&b, `\x%02x`, s[i])
		}
	}
	b.WriteByte('"')
	return b.String()
}

func pointOf(acct relay.AccountID, measurement string, tag func(string) string) iot.Point {
	return iot.Point{
		Account:    acct,
		Type:       unclean(measurement),
		DeviceID:   unclean(tag("device_id")),
		Identifier: unclean(tag("identifier")),
		SensorID:   unclean(tag("sensor_id")),
		Key:        unclean(tag("key")),
	}
}
