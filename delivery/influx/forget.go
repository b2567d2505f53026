package influx

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/influxdata/influxdb-client-go/v2/api/query"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

// Forget deletes points that are older than the retention of their sensors: on 1.x by one
// DELETE for all sensors with the same cutoff, on 2.x by a call of the delete API for each
// sensor that has such points. A shorter retention of the bucket or retention policy deletes
// points earlier.
func (s *Store) Forget(ctx context.Context, acct relay.AccountID, expired []iot.ExpiredPoints) error {
	sv, err := s.server(ctx)
	if err != nil {
		return err
	}
	sensorsByCutoff := make(map[time.Time][]string)
	for _, e := range expired {
		cutoff := e.Before.UTC()
		sensorsByCutoff[cutoff] = append(sensorsByCutoff[cutoff], e.SensorID)
	}
	for cutoff, sensors := range sensorsByCutoff {
		if sv.v1 { // a DELETE without FROM covers all measurements
			params, condition := tagIn(acct, "sensor_id", sensors)
			_, err = s.influxQL(ctx, s.statement(params, fmt.Sprintf(
				"DELETE WHERE account = $account AND (%s) AND time < %d", condition, cutoff.UnixNano())))
		} else {
			err = s.forgetFlux(ctx, acct, sensors, cutoff)
		}
		if err != nil {
			return s.wrapError("delete", err)
		}
	}
	return nil
}

// forgetFlux first queries which sensors have expired points, because a delete scans the
// whole index of a bucket.
func (s *Store) forgetFlux(ctx context.Context, acct relay.AccountID, sensors []string, cutoff time.Time) error {
	earliest := withBounds(iot.Query{}).From
	script := s.fluxRange(earliest, cutoff) + fmt.Sprintf("  |> filter(fn: (r) => r.account == %s and (%s))\n"+
		"  |> first()\n  |> keep(columns: [\"sensor_id\"])\n  |> group()\n  |> distinct(column: \"sensor_id\")\n",
		quoteFlux(acct.String()), fluxIn("sensor_id", sensors))
	var names []string
	err := s.flux(ctx, script, func(r *query.FluxRecord) error {
		if name, ok := r.Value().(string); ok {
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range names {
		// The delete API includes the end of the range.
		err := s.client.DeleteAPI().DeleteWithName(ctx, s.opts.Org, s.opts.Bucket, earliest, cutoff.Add(-1), predicate(acct, name))
		if err != nil {
			return errors.Join(fmt.Errorf("sensor %s", name), err)
		}
	}
	return nil
}

func predicate(acct relay.AccountID, sensor string) string {
	return fmt.Sprintf(`account="%s" AND sensor_id=%s`, acct, quotePredicate(sensor))
}

func quotePredicate(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
