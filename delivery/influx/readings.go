package influx

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/influxdata/influxdb-client-go/v2/api/query"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

// MaxReadings is the maximum number of points that a query returns.
const MaxReadings = 1000

// Readings returns a device's points, newest first, and by sensor id for equal times. A query
// without types returns every type. If a number and a text were written for the same sensor
// and time, Readings returns the number.
func (s *Store) Readings(ctx context.Context, q iot.Query) ([]iot.Point, error) {
	q = withBounds(q)
	if q.From.After(q.To) {
		return nil, nil
	}
	points, err := s.read(ctx, q)
	slices.SortStableFunc(points, func(a, b iot.Point) int {
		return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(a.SensorID, b.SensorID), textRank(a)-textRank(b))
	})
	points = slices.CompactFunc(points, func(a, b iot.Point) bool { return a.Time.Equal(b.Time) && a.SensorID == b.SensorID })
	return points[:min(q.Limit, len(points))], err
}

// read returns the newest points of each series of a device, up to the limit plus one.
func (s *Store) read(ctx context.Context, q iot.Query) ([]iot.Point, error) {
	query, err := forLanguage(ctx, s, s.readFlux, s.readInfluxQL)
	if err != nil {
		return nil, err
	}
	return query(ctx, q)
}

// withBounds limits the range of a query to times that the server can store, and its limit to
// MaxReadings.
func withBounds(q iot.Query) iot.Query {
	earliest := time.Date(1678, 1, 1, 0, 0, 0, 0, time.UTC)
	latest := time.Date(2261, 12, 31, 23, 59, 59, 0, time.UTC)
	if q.From.IsZero() || q.From.Before(earliest) {
		q.From = earliest
	}
	if q.To.IsZero() || q.To.After(latest) {
		q.To = latest
	}
	if q.Limit <= 0 || q.Limit > MaxReadings {
		q.Limit = MaxReadings
	}
	return q
}

func textRank(p iot.Point) int {
	if p.IsText {
		return 1
	}
	return 0
}

// Latest returns the newest point of each sensor of a device. It reads one point of each series.
func (s *Store) Latest(ctx context.Context, acct relay.AccountID, deviceID string, types []string) ([]iot.Point, error) {
	q := withBounds(iot.Query{Account: acct, DeviceID: deviceID, Types: types, Limit: 1})
	points, err := s.read(ctx, q)
	return latest(points), err
}

// latest returns the newest points of each sensor, one of each type.
func latest(points []iot.Point) []iot.Point {
	slices.SortStableFunc(points, func(a, b iot.Point) int {
		return cmp.Or(cmp.Compare(a.SensorID, b.SensorID), b.Time.Compare(a.Time), cmp.Compare(a.Type, b.Type), textRank(a)-textRank(b))
	})
	var newest []iot.Point
	for _, p := range points {
		if n := len(newest); n > 0 && newest[n-1].SensorID == p.SensorID && (newest[n-1].Time.After(p.Time) || newest[n-1].Type == p.Type) {
			continue
		}
		newest = append(newest, p)
	}
	return newest
}

// maxNamedDevices is the maximum number of devices in a query. For more devices, Radio makes
// several queries, and LastStored queries all devices of the account.
const maxNamedDevices = 100

// recentWindow is the range that is queried first, because most devices report every day and
// a server reads a day much faster than years.
const recentWindow = 24 * time.Hour

// LastStored returns the time of each device's newest point or uplink. It reads
// the newest point of each measurement.
func (s *Store) LastStored(ctx context.Context, acct relay.AccountID, deviceIDs []string) (map[string]time.Time, error) {
	search, err := forLanguage(ctx, s, s.storedFlux, s.storedInfluxQL)
	if err != nil {
		return nil, err
	}
	latest := make(map[string]time.Time, len(deviceIDs))
	for _, start := range []time.Time{s.opts.Now().Add(-recentWindow), {}} {
		missing := make(map[string]bool)
		for _, id := range deviceIDs {
			if latest[id].IsZero() {
				missing[id] = true
			}
		}
		if len(missing) == 0 {
			break
		}
		record := func(tag string, t time.Time) {
			if id := unclean(tag); missing[id] && (latest[id].IsZero() || t.After(latest[id])) {
				latest[id] = t
			}
		}
		var names []string // empty means all devices
		if len(missing) <= maxNamedDevices {
			names = slices.Collect(maps.Keys(missing))
		}
		if err := search(ctx, withBounds(iot.Query{Account: acct, From: start}), names, record); err != nil {
			return nil, s.wrapError("query", err)
		}
	}
	return latest, nil
}

func (s *Store) storedInfluxQL(ctx context.Context, q iot.Query, names []string, record func(tag string, t time.Time)) error {
	params, devices := tagIn(q.Account, "device_id", names)
	condition := "account = $account" + timeCondition(q)
	if devices != "" {
		condition += " AND (" + devices + ")"
	}
	rows, err := s.influxQL(ctx, s.statement(params,
		"SELECT *::field FROM /.*/ WHERE "+condition+" GROUP BY device_id ORDER BY time DESC LIMIT 1"))
	if err != nil {
		return err
	}
	return eachRow(rows, func(s *series, t time.Time, _ row) error {
		record(s.Tags["device_id"], t)
		return nil
	})
}

// storedFlux reads the last value of each series and field. It drops the values, because values
// of different types do not fit in one table.
func (s *Store) storedFlux(ctx context.Context, q iot.Query, names []string, record func(tag string, t time.Time)) error {
	condition := "r.account == " + quoteFlux(q.Account.String())
	if len(names) > 0 {
		condition += " and (" + fluxIn("device_id", names) + ")"
	}
	script := s.fluxRange(q.From, q.To) + "  |> filter(fn: (r) => " + condition + ")\n  |> last()\n" +
		"  |> keep(columns: [\"device_id\", \"_time\"])\n  |> group(columns: [\"device_id\"])\n  |> max(column: \"_time\")\n"
	return s.flux(ctx, script, func(r *query.FluxRecord) error {
		record(fluxTag(r, "device_id"), r.Time().UTC())
		return nil
	})
}
