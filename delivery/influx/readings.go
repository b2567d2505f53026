package influx

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/penstock/penstock/relay/iot"
)

// MaxReadings is the most points one query returns.
const MaxReadings = 1000

// Readings returns a device's points, newest first; at the same time in order
// of sensor id. No types means every type. Where a number and a text were
// written for the same sensor and time, the number counts.
func (s *Store) Readings(ctx context.Context, q iot.Query) ([]iot.Point, error) {
	q = bounded(q)
	if q.From.After(q.To) {
		return nil, nil
	}
	points, err := s.read(ctx, q)
	if err != nil {
		return nil, err
	}
	return newest(points, q.Limit), nil
}

// read returns the newest points of each series of a device, up to the limit and
// one more.
func (s *Store) read(ctx context.Context, q iot.Query) ([]iot.Point, error) {
	sv, err := s.server(ctx)
	if err != nil {
		return nil, err
	}
	if s.language(sv) == InfluxQL {
		return s.readInfluxQL(ctx, q)
	}
	return s.readFlux(ctx, q)
}

// bounded gives a query the ends it lacks, within what the server can hold.
func bounded(q iot.Query) iot.Query {
	first := time.Date(1678, 1, 1, 0, 0, 0, 0, time.UTC)
	last := time.Date(2261, 12, 31, 23, 59, 59, 0, time.UTC)
	if q.From.IsZero() || q.From.Before(first) {
		q.From = first
	}
	if q.To.IsZero() || q.To.After(last) {
		q.To = last
	}
	if q.Limit <= 0 || q.Limit > MaxReadings {
		q.Limit = MaxReadings
	}
	return q
}

// newest sorts points, keeps one per sensor and time, and at most limit. Points
// of one series come sorted.
func newest(points []iot.Point, limit int) []iot.Point {
	if !slices.IsSortedFunc(points, newerFirst) {
		slices.SortStableFunc(points, newerFirst)
	}
	points = slices.CompactFunc(points, func(a, b iot.Point) bool {
		return a.Time.Equal(b.Time) && a.SensorID == b.SensorID
	})
	return points[:min(limit, len(points))]
}

func newerFirst(a, b iot.Point) int {
	if c := b.Time.Compare(a.Time); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(a.SensorID, b.SensorID), text(a)-text(b))
}

func text(p iot.Point) int {
	if p.IsText {
		return 1
	}
	return 0
}
