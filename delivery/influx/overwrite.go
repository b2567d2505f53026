package influx

import (
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

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

// A reading is a number or a text. The server stores these as two fields of a point, and
// writing one field leaves the other unchanged. If a point has both, readers use the number.
// So before a text replaces a number, the point with the number is deleted.

type pointKey struct {
	account relay.AccountID
	kind    string
	sensor  string
	ns      int64
}

func pointKeyOf(p *iot.Point) pointKey {
	return pointKey{p.Account, p.Type, p.SensorID, p.Time.UnixNano()}
}

// lastTextsOf returns the keys of the points that a batch writes as text, each with the index of
// its last point, or nil if the batch has no texts.
func lastTextsOf(points []iot.Point) map[pointKey]int {
	var lastTexts map[pointKey]int
	for i := range points {
		if p := &points[i]; p.IsText && p.InvalidReason() == "" {
			if lastTexts == nil {
				lastTexts = make(map[pointKey]int)
			}
			lastTexts[pointKeyOf(p)] = i
		}
	}
	return lastTexts
}

// maxQuerySensors is the largest number of sensors in a query; maxDeletePoints is the largest
// number of points in a delete request to InfluxDB 1; maxConcurrentDeletes is the largest number
// of concurrent delete requests to InfluxDB 2.
const (
	maxQuerySensors      = 100
	maxDeletePoints      = 100
	maxConcurrentDeletes = 8
)

// deleteOverwritten deletes the numbers that texts of the batch overwrite.
// Usually there are none, and a text costs the batch one query.
func (s *Store) deleteOverwritten(ctx context.Context, sv server, lastTexts map[pointKey]int) error {
	pointsByAccount := make(map[relay.AccountID]map[string][]pointKey)
	for p := range lastTexts {
		if pointsByAccount[p.account] == nil {
			pointsByAccount[p.account] = make(map[string][]pointKey)
		}
		pointsByAccount[p.account][p.sensor] = append(pointsByAccount[p.account][p.sensor], p)
	}
	for acct, sensors := range pointsByAccount {
		for chunk := range slices.Chunk(slices.Sorted(maps.Keys(sensors)), maxQuerySensors) {
			var points []pointKey
			for _, sensor := range chunk {
				points = append(points, sensors[sensor]...)
			}
			numbers, err := s.storedNumbers(ctx, sv, acct, chunk, points)
			herr, ok := errors.AsType[*httpapi.Error](err)
			if ok && (herr.StatusCode == http.StatusForbidden || herr.StatusCode == http.StatusUnauthorized) {
				if !s.writeOnly.Swap(true) {
					s.opts.Logger.WarnContext(ctx, "the token lacks read permission: numbers replaced by texts are not deleted", "error", err)
				}
				return nil
			}
			if err != nil {
				return err
			}
			numbers = slices.DeleteFunc(numbers, func(p pointKey) bool {
				_, overwritten := lastTexts[p]
				return !overwritten
			})
			remove := s.deleteFlux
			if sv.v1 {
				remove = s.deleteInfluxQL
			}
			if err := remove(ctx, numbers); err != nil {
				return err
			}
		}
	}
	return nil
}

// storedNumbers returns the stored points of an account's sensors that have a number, in the time
// range of points.
func (s *Store) storedNumbers(ctx context.Context, sv server, acct relay.AccountID, sensors []string, points []pointKey) (numbers []pointKey, err error) {
	q := iot.Query{Account: acct}
	kinds := make(map[string]bool)
	for _, p := range points {
		t := time.Unix(0, p.ns)
		if q.From.IsZero() || t.Before(q.From) {
			q.From = t
		}
		if t.After(q.To) {
			q.To = t
		}
		kinds[p.kind] = true
	}
	q.Types = slices.Sorted(maps.Keys(kinds))
	add := func(measurement, sensor string, t time.Time) {
		numbers = append(numbers, pointKey{acct, unclean(measurement), unclean(sensor), t.UnixNano()})
	}
	if sv.v1 {
		params, condition := tagIn(acct, "sensor_id", sensors)
		rows, err := s.influxQL(ctx, s.statement(params, "SELECT value FROM "+measurementList(q.Types)+
			" WHERE account = $account AND ("+condition+")"+timeCondition(q)+" GROUP BY sensor_id"))
		if err != nil {
			return nil, err
		}
		return numbers, eachRow(rows, func(s *series, t time.Time, _ row) error {
			add(s.Name, s.Tags["sensor_id"], t)
			return nil
		})
	}
	script := s.fluxRange(q.From, q.To.Add(1)) + fmt.Sprintf("  |> filter(fn: (r) => r.account == %s and (%s))\n"+
		"  |> filter(fn: (r) => r._field == \"value\" and (%s))\n  |> keep(columns: [\"_time\", \"_measurement\", \"sensor_id\"])\n",
		quoteFlux(acct.String()), fluxIn("sensor_id", sensors), fluxIn("_measurement", q.Types))
	err = s.flux(ctx, script, func(r *query.FluxRecord) error {
		add(r.Measurement(), fluxTag(r, "sensor_id"), r.Time())
		return nil
	})
	return numbers, err
}

// deleteFlux deletes points by one request each. A request for a range of times would also
// delete points that another batch has written in the meantime.
func (s *Store) deleteFlux(ctx context.Context, points []pointKey) error {
	errs := make([]error, len(points))
	slots := make(chan struct{}, maxConcurrentDeletes)
	var requests sync.WaitGroup
	for i, p := range points {
		slots <- struct{}{}
		requests.Go(func() {
			defer func() { <-slots }()
			t := time.Unix(0, p.ns).UTC()
			err := s.client.DeleteAPI().DeleteWithName(ctx, s.opts.Org, s.opts.Bucket, t, t,
				"_measurement="+quotePredicate(clean(p.kind))+" AND "+predicate(p.account, clean(p.sensor)))
			if err != nil {
				errs[i] = fmt.Errorf("sensor %s: %w", p.sensor, err)
			}
		})
	}
	requests.Wait()
	return errors.Join(errs...)
}

func (s *Store) deleteInfluxQL(ctx context.Context, points []pointKey) error {
	for chunk := range slices.Chunk(points, maxDeletePoints) {
		params := make(map[string]any, 2*len(chunk))
		statements := make([]string, len(chunk))
		for i, p := range chunk {
			n := strconv.Itoa(i)
			params["a"+n], params["s"+n] = p.account.String(), clean(p.sensor)
			statements[i] = fmt.Sprintf("DELETE FROM %s WHERE account = $a%s AND sensor_id = $s%s AND time = %d", quoteName(clean(p.kind)), n, n, p.ns)
		}
		if _, err := s.influxQLs(ctx, s.statement(params, strings.Join(statements, "; "))); err != nil {
			return err
		}
	}
	return nil
}
