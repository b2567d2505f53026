package iot

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/penstock/penstock/relay"
)

// Statistic is a statistic of the numbers in a bucket. Texts are ignored.
type Statistic string

// The statistics of the specification.
const (
	First     Statistic = "first" // the oldest reading
	Least     Statistic = "min"
	Most      Statistic = "max"
	Average   Statistic = "ave"         // the arithmetic mean of the readings
	MinAveMax Statistic = "min_ave_max" // minimum, average and maximum
)

// Statistics lists the statistics.
func Statistics() []Statistic { return []Statistic{First, Least, Most, Average, MinAveMax} }

// MaxBuckets is the largest number of rows of an aggregate.
const MaxBuckets = 100_000

// AggregateQuery selects the numbers of a device's readings like Query, and the statistic to compute.
// Limit is the largest number of buckets; 0 means no limit.
type AggregateQuery struct {
	Query
	Statistic   Statistic
	Granularity Granularity
}

// Bucket is a row of an aggregate: the statistic of the readings of one sensor and type in one
// interval. The first and the last bucket include only readings within the range of the query.
type Bucket struct {
	Type, SensorID string
	Start          time.Time // UTC
	Value          float64   // the statistic; for MinAveMax the average
	Min, Max       float64   // for MinAveMax only
}

// AggregateRow is a bucket in the format of the API. A value that is not finite in the requested units
// is null.
type AggregateRow struct {
	SensorID      string   `json:"sensor_id"`
	Key           string   `json:"key"`
	Name          string   `json:"name"` // the name of the sensor type
	ReadingDate   string   `json:"reading_date"`
	Value         *float64 `json:"value"`
	Min           *float64 `json:"min,omitempty"`
	Ave           *float64 `json:"ave,omitempty"`
	Max           *float64 `json:"max,omitempty"`
	MetricUnits   string   `json:"metric_units"`
	ImperialUnits string   `json:"imperial_units"`
}

// Aggregate returns the buckets of a device's readings, oldest first, and by sensor ID at the same
// time. Buckets without readings are omitted.
//
// It returns relay.KindInvalid if a parameter is invalid or if there are more than MaxBuckets rows.
func (s *Service) Aggregate(ctx context.Context, q AggregateQuery, u Units) ([]AggregateRow, error) {
	p := relay.Problems{}
	if q.Check(p); len(p) > 0 {
		return nil, p.Err()
	}
	sensors, types, err := s.sensorsAndTypes(ctx, q.Account, q.DeviceID)
	if err != nil || len(sensors) == 0 {
		return []AggregateRow{}, err
	}
	q.Limit, q.Types = MaxBuckets+1, typesOf(sensors)
	buckets, err := s.readings.Aggregate(ctx, q)
	if err != nil {
		return nil, err
	}
	if len(buckets) > MaxBuckets {
		return nil, relay.Invalid("granularity", fmt.Sprintf("The aggregate has more than %d rows: choose a wider granularity or a shorter time.", MaxBuckets))
	}
	keys := make(map[string]string, len(sensors))
	for _, sensor := range sensors {
		keys[sensor.ID] = sensor.Key
	}
	rows := make([]AggregateRow, len(buckets))
	for i, b := range buckets {
		t := sensorTypeOf(types, b.Type)
		r := AggregateRow{
			SensorID: b.SensorID, Key: keys[b.SensorID], Name: t.Name, ReadingDate: b.Start.UTC().Format(TimeFormat),
			MetricUnits: t.MetricUnits, ImperialUnits: t.ImperialUnits,
		}
		switch q.Statistic {
		case MinAveMax:
			r.Min, r.Ave, r.Max = numberOrNil(u.convert(t, b.Min)), numberOrNil(u.average(t, b.Value)), numberOrNil(u.convert(t, b.Max))
			r.Value = r.Ave
		case Average:
			r.Value = numberOrNil(u.average(t, b.Value))
		default:
			r.Value = numberOrNil(u.convert(t, b.Value))
		}
		rows[i] = r
	}
	return rows, nil
}

// Check adds the problems of the query's type and granularity.
func (q AggregateQuery) Check(p relay.Problems) {
	p.Require("type", string(q.Statistic))
	if q.Statistic != "" && !slices.Contains(Statistics(), q.Statistic) {
		p.Add("type", "The selected type is invalid.")
	}
	if !slices.Contains(Granularities(), q.Granularity) {
		p.Add("granularity", "The selected granularity is invalid.")
	}
}

// Granularity is the width of the buckets of an aggregate. In UTC, weeks begin on Monday and months
// on the first day. Buckets of other widths are counted from 1970-01-01 00:00:00.
type Granularity string

// The granularities of the specification.
const (
	HalfMinute  Granularity = "half_minute"
	Minute      Granularity = "minute"
	FiveMinutes Granularity = "five_minutes"
	TenMinutes  Granularity = "ten_minutes"
	QuarterHour Granularity = "quarter_hour"
	HalfHour    Granularity = "half_hour"
	Hour        Granularity = "hour"
	ThreeHours  Granularity = "three_hours"
	SixHours    Granularity = "six_hours"
	NineHours   Granularity = "nine_hours"
	HalfDay     Granularity = "half_day"
	Day         Granularity = "day"
	Week        Granularity = "week"
	TenDays     Granularity = "ten_days"
	TwoWeeks    Granularity = "two_weeks"
	Month       Granularity = "month"
)

// Granularities lists the granularities, narrowest first.
func Granularities() []Granularity {
	return []Granularity{
		HalfMinute, Minute, FiveMinutes, TenMinutes, QuarterHour, HalfHour, Hour, ThreeHours,
		SixHours, NineHours, HalfDay, Day, Week, TenDays, TwoWeeks, Month,
	}
}

const day = 24 * time.Hour

// Width returns the width of a bucket, and the offset of the first bucket from 1970-01-01
// 00:00:00 UTC, a Thursday. The width is 0 for months and for an invalid granularity.
func (g Granularity) Width() (width, offset time.Duration) {
	if g == Week {
		return 7 * day, 4 * day
	}
	return map[Granularity]time.Duration{
		HalfMinute: 30 * time.Second, Minute: time.Minute, FiveMinutes: 5 * time.Minute, TenMinutes: 10 * time.Minute,
		QuarterHour: 15 * time.Minute, HalfHour: 30 * time.Minute, Hour: time.Hour, ThreeHours: 3 * time.Hour,
		SixHours: 6 * time.Hour, NineHours: 9 * time.Hour, HalfDay: 12 * time.Hour, Day: day,
		TenDays: 10 * day, TwoWeeks: 14 * day,
	}[g], 0
}

// Start returns the beginning of the bucket that contains t, in UTC.
func (g Granularity) Start(t time.Time) time.Time {
	t = t.UTC()
	width, offset := g.Width()
	if width == 0 {
		return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
	}
	elapsed := (t.UnixNano() - int64(offset)) % int64(width)
	if elapsed < 0 {
		elapsed += int64(width)
	}
	return t.Add(-time.Duration(elapsed))
}

// Next returns the beginning of the bucket after the bucket that contains t.
func (g Granularity) Next(t time.Time) time.Time {
	start := g.Start(t)
	if width, _ := g.Width(); width > 0 {
		return start.Add(width)
	}
	return start.AddDate(0, 1, 0)
}
