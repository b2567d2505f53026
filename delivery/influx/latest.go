package influx

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/iot"
)

// Latest returns the newest point of each of a device's sensors. It reads one
// point of each series.
func (s *Store) Latest(ctx context.Context, acct account.ID, deviceID string, types []string) ([]iot.Point, error) {
	q := withBounds(iot.Query{Account: acct, DeviceID: deviceID, Types: types, Limit: 1})
	points, err := s.read(ctx, q)
	if err != nil {
		return nil, err
	}
	return latest(points), nil
}

// latest returns the newest points of each sensor, one of each type.
func latest(points []iot.Point) []iot.Point {
	slices.SortStableFunc(points, func(a, b iot.Point) int {
		return cmp.Or(cmp.Compare(a.SensorID, b.SensorID), b.Time.Compare(a.Time), cmp.Compare(a.Type, b.Type), textRank(a)-textRank(b))
	})
	var out []iot.Point
	for _, p := range points {
		if n := len(out); n > 0 && out[n-1].SensorID == p.SensorID && (out[n-1].Time.After(p.Time) || out[n-1].Type == p.Type) {
			continue
		}
		out = append(out, p)
	}
	return out
}

// maxNamedDevices is the largest number of devices that a query names; for more
// it queries all devices of the account.
const maxNamedDevices = 100

// recentWindow is the range that is queried first. Most devices report every
// day, and a server reads a day much faster than years.
const recentWindow = 24 * time.Hour

// LastStored returns the time of each device's newest point or uplink. It reads
// the newest point of each measurement.
func (s *Store) LastStored(ctx context.Context, acct account.ID, deviceIDs []string) (map[string]time.Time, error) {
	sv, err := s.server(ctx)
	if err != nil {
		return nil, err
	}
	search := s.storedFlux
	if s.language(sv) == InfluxQL {
		search = s.storedInfluxQL
	}
	out := make(map[string]time.Time, len(deviceIDs))
	for _, from := range []time.Time{s.opts.Now().Add(-recentWindow), {}} {
		missing := make(map[string]bool)
		for _, id := range deviceIDs {
			if out[id].IsZero() {
				missing[id] = true
			}
		}
		if len(missing) == 0 {
			break
		}
		found := func(tag string, at time.Time) {
			if id := unclean(tag); missing[id] && (out[id].IsZero() || at.After(out[id])) {
				out[id] = at
			}
		}
		if err := search(ctx, storedQuery{acct, deviceNames(missing), withBounds(iot.Query{From: from})}, found); err != nil {
			return nil, s.wrapError("query", err)
		}
	}
	return out, nil
}

// storedQuery selects the newest points of devices; no names means all devices.
type storedQuery struct {
	account account.ID
	names   []string
	iot.Query
}

func deviceNames(devices map[string]bool) []string {
	if len(devices) > maxNamedDevices {
		return nil
	}
	return slices.Collect(maps.Keys(devices))
}

func (s *Store) storedInfluxQL(ctx context.Context, q storedQuery, found func(tag string, at time.Time)) error {
	db, rp := s.database()
	params := map[string]any{"account": q.account.String()}
	tests := make([]string, len(q.names))
	for i, id := range q.names {
		name := "d" + strconv.Itoa(i)
		params[name] = clean(id)
		tests[i] = "device_id = $" + name
	}
	condition := "account = $account" + timeCondition(q.Query)
	if len(tests) > 0 {
		condition += " AND (" + strings.Join(tests, " OR ") + ")"
	}
	all, err := s.influxQL(ctx, statement{
		db: db, rp: rp, params: params,
		q: "SELECT *::field FROM /.*/ WHERE " + condition + " GROUP BY device_id ORDER BY time DESC LIMIT 1",
	})
	if err != nil {
		return err
	}
	for _, one := range all {
		for _, r := range one.rows {
			at, err := r.time()
			if err != nil {
				return err
			}
			found(one.tags["device_id"], at)
		}
	}
	return nil
}

// storedFlux reads the last value of each series and field and keeps only its
// time, because values of several types do not fit in one table.
func (s *Store) storedFlux(ctx context.Context, q storedQuery, found func(tag string, at time.Time)) error {
	condition := "r.account == " + quoteFlux(q.account.String())
	if len(q.names) > 0 {
		tests := make([]string, len(q.names))
		for i, id := range q.names {
			tests[i] = "r.device_id == " + quoteFlux(clean(id))
		}
		condition += " and (" + strings.Join(tests, " or ") + ")"
	}
	script := fmt.Sprintf("from(bucket: %s)\n  |> range(start: %s, stop: %s)\n  |> filter(fn: (r) => %s)\n  |> last()\n"+
		"  |> keep(columns: [\"device_id\", \"_time\"])\n  |> group(columns: [\"device_id\"])\n  |> max(column: \"_time\")\n",
		quoteFlux(s.opts.Bucket), fluxTime(q.From), fluxTime(q.To), condition)
	all, err := s.client.QueryAPI(s.opts.Org).Query(ctx, script)
	if err != nil {
		return err
	}
	for all.Next() {
		r := all.Record()
		device, _ := r.ValueByKey("device_id").(string)
		found(device, r.Time().UTC())
	}
	if err := all.Err(); err != nil {
		return fmt.Errorf("flux: %w", err)
	}
	return nil
}
