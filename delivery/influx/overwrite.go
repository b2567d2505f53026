package influx

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	httpapi "github.com/influxdata/influxdb-client-go/v2/api/http"
	"github.com/influxdata/influxdb-client-go/v2/api/query"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/iot"
)

// A reading is a number or a text, but to the server these are two fields, and
// writing one leaves the other as it was. A number that is written over a text
// counts, wherever readings are read. A text cannot take a number's place so:
// the point that holds the number is deleted first.

// pointKey identifies a point.
type pointKey struct {
	account account.ID
	kind    string
	sensor  string
	ns      int64
}

func pointKeyOf(p *iot.Point) pointKey {
	return pointKey{p.Account, p.Type, p.SensorID, p.Time.UnixNano()}
}

// textsOf returns the keys of the points that a batch writes as text, each with
// the index of its last point; nil if there is none.
func textsOf(points []iot.Point) map[pointKey]int {
	var out map[pointKey]int
	for i := range points {
		if p := &points[i]; p.IsText && p.Invalid() == "" {
			if out == nil {
				out = make(map[pointKey]int)
			}
			out[pointKeyOf(p)] = i
		}
	}
	return out
}

// sensorsAtOnce is the largest number of sensors in a query; pointsAtOnce is the
// largest number of points in a delete request of InfluxDB 1; requestsAtOnce is how many
// delete requests of InfluxDB 2 are made at the same time.
const (
	sensorsAtOnce  = 100
	pointsAtOnce   = 100
	requestsAtOnce = 8
)

// deleteOverwritten deletes the numbers that texts of the batch overwrite.
// Usually there are none, and a text costs the batch one query.
func (s *Store) deleteOverwritten(ctx context.Context, sv server, texts map[pointKey]int) error {
	for acct, sensors := range bySensor(texts) {
		for some := range slices.Chunk(slices.Sorted(maps.Keys(sensors)), sensorsAtOnce) {
			var places []pointKey
			for _, sensor := range some {
				places = append(places, sensors[sensor]...)
			}
			stored, err := s.pointsAt(ctx, sv, acct, some, places)
			if forbidden(err) {
				if !s.writeOnly.Swap(true) {
					s.opts.Logger.WarnContext(ctx, "the token lacks read permission: numbers replaced by texts are not deleted", "error", err)
				}
				return nil
			}
			if err != nil {
				return err
			}
			if err := s.deletePoints(ctx, sv, stored, texts); err != nil {
				return err
			}
		}
	}
	return nil
}

func bySensor(texts map[pointKey]int) map[account.ID]map[string][]pointKey {
	out := make(map[account.ID]map[string][]pointKey)
	for p := range texts {
		if out[p.account] == nil {
			out[p.account] = make(map[string][]pointKey)
		}
		out[p.account][p.sensor] = append(out[p.account][p.sensor], p)
	}
	return out
}

// storedPoint is a point that the server has. It may hold a number and a text.
type storedPoint struct {
	pointKey
	number bool // this is its number
}

// pointsAt returns the points of an account's sensors in the time range of the given
// points; of InfluxDB 1 those that hold numbers.
func (s *Store) pointsAt(ctx context.Context, sv server, acct account.ID, sensors []string, places []pointKey) ([]storedPoint, error) {
	q := iot.Query{Account: acct}
	kinds := make(map[string]bool)
	for _, p := range places {
		at := time.Unix(0, p.ns)
		if q.From.IsZero() || at.Before(q.From) {
			q.From = at
		}
		if at.After(q.To) {
			q.To = at
		}
		kinds[p.kind] = true
	}
	q.Types = slices.Sorted(maps.Keys(kinds))
	if sv.v1 {
		return s.numbersInfluxQL(ctx, q, sensors)
	}
	return s.pointsFlux(ctx, q, sensors)
}

func (s *Store) numbersInfluxQL(ctx context.Context, q iot.Query, sensors []string) ([]storedPoint, error) {
	params, tests := tagIn(q.Account, "sensor_id", sensors)
	all, err := s.influxQL(ctx, s.statement(params, "SELECT value FROM "+measurementList(q.Types)+
		" WHERE account = $account AND ("+tests+")"+timeCondition(q)+" GROUP BY sensor_id"))
	if err != nil {
		return nil, err
	}
	var points []storedPoint
	err = eachRow(all, func(of *series, at time.Time, _ row) error {
		points = append(points, storedPoint{pointKey{q.Account, unclean(of.name), unclean(of.tags["sensor_id"]), at.UnixNano()}, true})
		return nil
	})
	return points, err
}

func (s *Store) pointsFlux(ctx context.Context, q iot.Query, sensors []string) ([]storedPoint, error) {
	script := s.fluxRange(q.From, q.To.Add(1)) + fmt.Sprintf("  |> filter(fn: (r) => r.account == %s and (%s))\n"+
		"  |> filter(fn: (r) => %s)\n  |> keep(columns: [\"_time\", \"_measurement\", \"_field\", \"sensor_id\"])\n",
		quoteFlux(q.Account.String()), fluxIn("sensor_id", sensors), fluxIn("_measurement", q.Types))
	var points []storedPoint
	err := s.flux(ctx, script, func(r *query.FluxRecord) error {
		key := pointKey{q.Account, unclean(r.Measurement()), unclean(fluxTag(r, "sensor_id")), r.Time().UnixNano()}
		points = append(points, storedPoint{key, r.Field() == "value"})
		return nil
	})
	return points, err
}

// deletePoints deletes the stored numbers that texts overwrite.
func (s *Store) deletePoints(ctx context.Context, sv server, stored []storedPoint, texts map[pointKey]int) error {
	if sv.v1 {
		var stale []pointKey
		for _, p := range stored {
			if _, overwritten := texts[p.pointKey]; overwritten {
				stale = append(stale, p.pointKey)
			}
		}
		return s.deleteInfluxQL(ctx, stale)
	}
	runs := runsOf(stored, texts)
	errs := make([]error, len(runs))
	slots := make(chan struct{}, requestsAtOnce)
	var requests sync.WaitGroup
	for i, r := range runs {
		slots <- struct{}{}
		requests.Go(func() {
			defer func() { <-slots }()
			errs[i] = s.deleteRun(ctx, r)
		})
	}
	requests.Wait()
	return errors.Join(errs...)
}

// run is overwritten numbers of one series, with no other point between them.
type run struct {
	pointKey
	lastNS int64
}

// runsOf returns the runs of the stored numbers that texts overwrite. A stored text that
// is overwritten too does not end a run.
func runsOf(stored []storedPoint, texts map[pointKey]int) (runs []run) {
	slices.SortFunc(stored, func(a, b storedPoint) int {
		return cmp.Or(cmp.Compare(a.account, b.account), cmp.Compare(a.kind, b.kind), cmp.Compare(a.sensor, b.sensor), cmp.Compare(a.ns, b.ns))
	})
	var current *run
	for _, p := range stored {
		_, overwritten := texts[p.pointKey]
		switch {
		case !overwritten:
			current = nil
		case !p.number:
		case current != nil && current.account == p.account && current.kind == p.kind && current.sensor == p.sensor:
			current.lastNS = p.ns
		default:
			runs = append(runs, run{p.pointKey, p.ns})
			current = &runs[len(runs)-1]
		}
	}
	return runs
}

func (s *Store) deleteRun(ctx context.Context, r run) error {
	err := s.client.DeleteAPI().DeleteWithName(ctx, s.opts.Org, s.opts.Bucket, time.Unix(0, r.ns).UTC(), time.Unix(0, r.lastNS).UTC(),
		"_measurement="+quotePredicate(clean(r.kind))+" AND "+predicate(r.account, clean(r.sensor)))
	if err != nil {
		return fmt.Errorf("sensor %s: %w", r.sensor, err)
	}
	return nil
}

func (s *Store) deleteInfluxQL(ctx context.Context, places []pointKey) error {
	for some := range slices.Chunk(places, pointsAtOnce) {
		params := make(map[string]any, 2*len(some))
		each := make([]string, len(some))
		for i, p := range some {
			n := strconv.Itoa(i)
			params["a"+n], params["s"+n] = p.account.String(), clean(p.sensor)
			each[i] = fmt.Sprintf("DELETE FROM %s WHERE account = $a%s AND sensor_id = $s%s AND time = %d", quoteName(clean(p.kind)), n, n, p.ns)
		}
		if _, err := s.influxQLs(ctx, s.statement(params, strings.Join(each, "; "))); err != nil {
			return err
		}
	}
	return nil
}

// forbidden reports that the token lacks a permission.
func forbidden(err error) bool {
	herr, ok := errors.AsType[*httpapi.Error](err)
	return ok && (herr.StatusCode == http.StatusForbidden || herr.StatusCode == http.StatusUnauthorized)
}
