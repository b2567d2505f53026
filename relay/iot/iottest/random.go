package iottest

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

// Load returns 5,000 points of 1,000 devices with five sensors each, for benchmarks. All points
// have the time t.
func Load(t time.Time) iot.Readings {
	var readings iot.Readings
	for i := range 5000 {
		device := fmt.Sprintf("01jd8q9x7v3k5m2n4p6r8%05d", i/5)
		readings.Points = append(readings.Points, iot.Point{
			Account: 1, Type: [...]string{"temperature", "humidity", "co2", "battery", "pressure"}[i%5],
			DeviceID: device, Identifier: fmt.Sprintf("24e124136b5%05x", i/5), SensorID: fmt.Sprintf("%s.%d", device, i%5),
			Key: "key", Time: t, Value: 20 + float64(i%100)/10,
		})
	}
	return readings
}

// Random returns n readings of a device with three sensors of two types, over sixteen weeks around a
// leap February: half of them at any time, a quarter within one day, and a quarter at the start of a
// bucket or a nanosecond before it.
func Random(device string, n int, seed uint64) []iot.Point {
	random := rand.New(rand.NewPCG(seed, 1))
	start, end := time.Date(2023, 12, 20, 0, 0, 0, 0, time.UTC), time.Date(2024, 4, 10, 0, 0, 0, 0, time.UTC)
	randomTime := func() time.Time { return start.Add(time.Duration(random.Int64N(int64(end.Sub(start))))) }
	points := make([]iot.Point, n)
	for i := range points {
		p := point(device, fmt.Sprint(random.IntN(3)), 0, math.Round(random.NormFloat64()*1e4)/100*math.Pow(10, float64(random.IntN(4))))
		if p.Key == "key_2" {
			p.Type = "humidity"
		}
		switch i % 4 {
		case 0, 1:
			p.Time = randomTime()
		case 2:
			p.Time = end.Add(-time.Duration(random.Int64N(int64(24 * time.Hour))))
		default:
			g := iot.Granularities()[random.IntN(len(iot.Granularities()))]
			p.Time = bucketStart(g, randomTime()).Add(-time.Duration(random.IntN(2)))
		}
		points[i] = p
	}
	return points
}

// Aggregated computes the aggregate of one device's points with a simple algorithm. Points of the same
// sensor and time overwrite each other.
func Aggregated(points []iot.Point, g iot.Granularity, statistic iot.Statistic) []iot.Bucket {
	type bucketKey struct {
		sensor, sensorType string
		start              int64
	}
	groups := make(map[bucketKey]map[int64]float64)
	for _, p := range points {
		key := bucketKey{p.SensorID, p.Type, bucketStart(g, p.Time).UnixNano()}
		if groups[key] == nil {
			groups[key] = make(map[int64]float64)
		}
		groups[key][p.Time.UnixNano()] = p.Value
	}
	buckets := make([]iot.Bucket, 0, len(groups))
	for key, values := range groups {
		b := iot.Bucket{Type: key.sensorType, SensorID: key.sensor, Start: time.Unix(0, key.start).UTC()}
		b.Value, b.Min, b.Max = compute(values, statistic)
		if statistic != iot.MinAveMax {
			b.Min, b.Max = 0, 0
		}
		buckets = append(buckets, b)
	}
	slices.SortFunc(buckets, func(a, b iot.Bucket) int {
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.SensorID, b.SensorID), cmp.Compare(a.Type, b.Type))
	})
	return buckets
}

// compute returns a statistic of the values of a bucket, with the smallest and the largest value. The
// keys of values are times in nanoseconds.
func compute(values map[int64]float64, statistic iot.Statistic) (value, smallest, largest float64) {
	sum, oldest := 0.0, int64(math.MaxInt64)
	smallest, largest = math.Inf(1), math.Inf(-1)
	for ns, v := range values {
		sum += v
		smallest, largest, oldest = min(smallest, v), max(largest, v), min(oldest, ns)
	}
	switch statistic {
	case iot.First:
		return values[oldest], smallest, largest
	case iot.Least:
		return smallest, smallest, largest
	case iot.Most:
		return largest, smallest, largest
	}
	return sum / float64(len(values)), smallest, largest
}

// bucketStart computes iot.Granularity.Start with another algorithm, for comparison.
func bucketStart(g iot.Granularity, t time.Time) time.Time {
	t = t.UTC()
	midnight := time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
	seconds := map[iot.Granularity]int64{
		iot.HalfMinute: 30, iot.Minute: 60, iot.FiveMinutes: 300, iot.TenMinutes: 600, iot.QuarterHour: 900, iot.HalfHour: 1800,
		iot.Hour: 3600, iot.ThreeHours: 10800, iot.SixHours: 21600, iot.HalfDay: 43200, iot.NineHours: 32400, iot.TenDays: 864000, iot.TwoWeeks: 1209600,
	}[g]
	switch {
	case g == iot.Month:
		return midnight.AddDate(0, 0, 1-t.Day())
	case g == iot.Week:
		for midnight.Weekday() != time.Monday {
			midnight = midnight.AddDate(0, 0, -1)
		}
		return midnight
	case g == iot.Day:
		return midnight
	}
	return time.Unix(t.Unix()-t.Unix()%seconds, 0).UTC()
}

// Agree compares two aggregates: averages to nine digits relative to the size of the readings,
// other values exactly.
func Agree(t *testing.T, label string, got, want []iot.Bucket) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d buckets, want %d", label, len(got), len(want))
		return
	}
	for i, g := range got {
		w := want[i]
		if w.Value != g.Value && math.Abs(w.Value-g.Value) < 1e-9*max(math.Abs(w.Value), math.Abs(w.Min), math.Abs(w.Max), 1e4) {
			g.Value = w.Value
		}
		if g != w {
			relaytest.Equal(t, fmt.Sprintf("%s: bucket %d", label, i), g, w)
			return
		}
	}
}

func randomReadings(t *testing.T, s iot.ReadingStore) {
	points := Random("random", 500, 7)
	write(t, s, points...)
	for _, g := range iot.Granularities() {
		for _, statistic := range iot.Statistics() {
			q := iot.AggregateQuery{Query: iot.Query{DeviceID: "random", Types: []string{"humidity", celsius}}, Statistic: statistic, Granularity: g}
			Agree(t, string(statistic)+" by "+string(g), aggregate(t, s, q), Aggregated(points, g, statistic))
		}
	}
}
