package iot

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/penstock/penstock/relay"
)

// Statistic is computed by an aggregate from the numbers in a bucket. Texts are
// ignored.
type Statistic string

// The types of the specification.
const (
	First     Statistic = "first" // the oldest reading
	Least     Statistic = "min"
	Most      Statistic = "max"
	Average   Statistic = "ave"         // the arithmetic mean of the readings
	MinAveMax Statistic = "min_ave_max" // all three
)

// Statistics lists them.
func Statistics() []Statistic { return []Statistic{First, Least, Most, Average, MinAveMax} }

// MaxBuckets is the most rows one aggregate has.
const MaxBuckets = 100_000

// AggregateQuery selects the numbers of a device's readings, as Query does, and the
// statistic to compute. Limit is the maximum number of buckets; 0 means no limit.
type AggregateQuery struct {
	Query
	Statistic   Statistic
	Granularity Granularity
}

// Bucket is a row of an aggregate: the statistic of the readings of one sensor and
// type in one interval. A bucket at either end of the query includes only readings
// within the query's range.
type Bucket struct {
	Type, SensorID string
	Start          time.Time // UTC
	Value          float64   // what was asked for; of MinAveMax the average
	Min, Max       float64   // of MinAveMax only
}

// AggregateRow is a bucket as the API lists it. A value that is not finite in
// the requested units is null.
type AggregateRow struct {
	SensorID      string   `json:"sensor_id"`
	Key           string   `json:"key"`
	Name          string   `json:"name"` // the sensor type's
	ReadingDate   string   `json:"reading_date"`
	Value         *float64 `json:"value"`
	Min           *float64 `json:"min,omitempty"`
	Ave           *float64 `json:"ave,omitempty"`
	Max           *float64 `json:"max,omitempty"`
	MetricUnits   string   `json:"metric_units"`
	ImperialUnits string   `json:"imperial_units"`
}

// Aggregate returns the buckets of a device's readings, oldest first; at the same
// time in order of sensor id. Buckets without readings are omitted.
//
// It returns Invalid if a parameter is, or if there are more than MaxBuckets
// rows.
func (s *Service) Aggregate(ctx context.Context, q AggregateQuery, u Units) ([]AggregateRow, error) {
	p := relay.Problems{}
	if q.Check(p); len(p) > 0 {
		return nil, p.Err()
	}
	q.Limit = MaxBuckets + 1
	buckets, o, types, err := withRecords(ctx, s, q.Account, q.DeviceID, func(ctx context.Context, types []string) ([]Bucket, error) {
		return s.readings.Aggregate(ctx, AggregateQuery{q.ofTypes(types), q.Statistic, q.Granularity})
	})
	if err != nil {
		return nil, err
	}
	if len(buckets) > MaxBuckets {
		return nil, relay.Invalid("granularity", fmt.Sprintf("The readings make more than %d rows: choose a wider granularity or a shorter time.", MaxBuckets))
	}
	keys := make(map[string]string, len(o.Sensors))
	for _, sensor := range o.Sensors {
		keys[sensor.ID] = sensor.Key
	}
	return aggregateRows(q.Statistic, buckets, keys, types, u), nil
}

// Check returns the problems of a query's type and granularity.
func (q AggregateQuery) Check(p relay.Problems) {
	p.Require("type", string(q.Statistic))
	if q.Statistic != "" && !slices.Contains(Statistics(), q.Statistic) {
		p.Add("type", "The selected type is invalid.")
	}
	if !slices.Contains(Granularities(), q.Granularity) {
		p.Add("granularity", "The selected granularity is invalid.")
	}
}

func aggregateRows(of Statistic, buckets []Bucket, keys map[string]string, types map[string]SensorType, u Units) []AggregateRow {
	out := make([]AggregateRow, len(buckets))
	for i, b := range buckets {
		t := sensorTypeOf(types, b.Type)
		r := AggregateRow{
			SensorID: b.SensorID, Key: keys[b.SensorID], Name: t.Name, ReadingDate: b.Start.UTC().Format(TimeFormat),
			MetricUnits: t.MetricUnits, ImperialUnits: t.ImperialUnits,
		}
		switch of {
		case MinAveMax:
			r.Min, r.Ave, r.Max = numberOrNil(u.of(t, b.Min)), numberOrNil(u.average(t, b.Value)), numberOrNil(u.of(t, b.Max))
			r.Value = r.Ave
		case Average:
			r.Value = numberOrNil(u.average(t, b.Value))
		default:
			r.Value = numberOrNil(u.of(t, b.Value))
		}
		out[i] = r
	}
	return out
}
