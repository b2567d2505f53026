package influx

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/penstock/penstock/relay/iot"
)

// MaxReadings is the maximum number of points that a query returns.
const MaxReadings = 1000

// Readings returns a device's points, newest first, and by sensor id for equal
// times. No types means every type. If a number and a text were written for the
// same sensor and time, it returns the number.
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

// read returns the newest points of each series of a device, up to the limit and
// one more.
func (s *Store) read(ctx context.Context, q iot.Query) ([]iot.Point, error) {
	query, err := forLanguage(ctx, s, s.readFlux, s.readInfluxQL)
	if err != nil {
		return nil, err
	}
	return query(ctx, q)
}

// withBounds sets the missing bounds of a query to the range that the server can
// hold.
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
