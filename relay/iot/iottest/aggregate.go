package iottest

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

// aggregate queries an aggregate of the account acme, of temperatures if the query has no type.
func aggregate(t *testing.T, s iot.ReadingStore, q iot.AggregateQuery) []iot.Bucket {
	t.Helper()
	if q.Account == 0 {
		q.Account = acme
	}
	if q.Types == nil {
		q.Types = []string{celsius}
	}
	buckets, err := s.Aggregate(t.Context(), q)
	if err != nil {
		t.Fatalf("Aggregate: %v", err)
	}
	return buckets
}

// describe formats buckets as "sensor start value". For min_ave_max it adds the minimum and the
// maximum.
func describe(q iot.AggregateQuery, buckets []iot.Bucket) (lines []string) {
	for _, bucket := range buckets {
		text := fmt.Sprintf("%s %s %.12g", bucket.SensorID, bucket.Start.Format(time.RFC3339Nano), bucket.Value)
		if q.Statistic == iot.MinAveMax {
			text += fmt.Sprintf(" (%g to %g)", bucket.Min, bucket.Max)
		}
		lines = append(lines, text)
	}
	return lines
}

func wantBuckets(t *testing.T, s iot.ReadingStore, q iot.AggregateQuery, want ...string) {
	t.Helper()
	relaytest.Equal(t, fmt.Sprintf("%s by %s", q.Statistic, q.Granularity), describe(q, aggregate(t, s, q)), want)
}

// timeOf parses a time in the format of the API.
func timeOf(text string) time.Time {
	t, err := time.Parse(time.DateTime, text)
	if err != nil {
		panic(err)
	}
	return t
}

// pointAt returns a reading of a device's first sensor.
func pointAt(device, text string, value float64) iot.Point {
	p := point(device, "1", 0, value)
	p.Time = timeOf(text)
	return p
}

func statistics(t *testing.T, s iot.ReadingStore) {
	write(t, s,
		pointAt("stats", "2026-03-01 12:10:00", 5), pointAt("stats", "2026-03-01 12:20:00", -1.5), pointAt("stats", "2026-03-01 12:30:00", 10),
		pointAt("stats", "2026-03-01 14:00:00", 7))
	for statistic, want := range map[iot.Statistic][2]string{
		iot.First: {"5", "7"}, iot.Least: {"-1.5", "7"}, iot.Most: {"10", "7"}, iot.Average: {"4.5", "7"},
		iot.MinAveMax: {"4.5 (-1.5 to 10)", "7 (7 to 7)"},
	} {
		q := iot.AggregateQuery{Query: iot.Query{DeviceID: "stats"}, Statistic: statistic, Granularity: iot.Hour}
		wantBuckets(t, s, q, "stats.1 2026-03-01T12:00:00Z "+want[0], "stats.1 2026-03-01T14:00:00Z "+want[1])
	}
}

func boundaries(t *testing.T, s iot.ReadingStore) {
	write(t, s,
		pointAt("edge", "2026-03-01 11:59:59", 1), pointAt("edge", "2026-03-01 12:00:00", 2),
		pointAt("edge", "2026-03-01 12:59:59", 3), pointAt("edge", "2026-03-01 13:00:00", 4))
	between := func(start, end time.Time) iot.AggregateQuery {
		return iot.AggregateQuery{Query: iot.Query{DeviceID: "edge", From: start, To: end}, Statistic: iot.MinAveMax, Granularity: iot.Hour}
	}
	wantBuckets(t, s, between(time.Time{}, time.Time{}), "edge.1 2026-03-01T11:00:00Z 1 (1 to 1)", "edge.1 2026-03-01T12:00:00Z 2.5 (2 to 3)", "edge.1 2026-03-01T13:00:00Z 4 (4 to 4)")
	wantBuckets(t, s, between(timeOf("2026-03-01 12:00:00"), timeOf("2026-03-01 13:00:00")), "edge.1 2026-03-01T12:00:00Z 2.5 (2 to 3)", "edge.1 2026-03-01T13:00:00Z 4 (4 to 4)")
	wantBuckets(t, s, between(timeOf("2026-03-01 12:00:00").Add(1), timeOf("2026-03-01 13:00:00").Add(-1)), "edge.1 2026-03-01T12:00:00Z 3 (3 to 3)")
	wantBuckets(t, s, between(timeOf("2026-03-01 12:59:59"), timeOf("2026-03-01 12:59:59")), "edge.1 2026-03-01T12:00:00Z 3 (3 to 3)")
	wantBuckets(t, s, between(timeOf("2026-03-01 13:00:00"), timeOf("2026-03-01 12:00:00")))
	wantBuckets(t, s, between(timeOf("2026-03-01 12:10:00"), timeOf("2026-03-01 12:20:00")))
}

func calendarBuckets(t *testing.T, s iot.ReadingStore) {
	write(t, s,
		pointAt("year", "2023-12-31 23:59:59", 1), pointAt("year", "2024-01-01 00:00:00", 2), pointAt("year", "2024-02-29 23:59:59", 3),
		pointAt("year", "2024-03-01 00:00:00", 4), pointAt("year", "2025-02-28 23:59:59", 5), pointAt("year", "2025-03-01 00:00:00", 6),
		pointAt("year", "2025-03-03 00:00:00", 7))
	for granularity, starts := range map[iot.Granularity]string{
		iot.Month:    "2023-12-01 2024-01-01 2024-02-01 2024-03-01 2025-02-01 2025-03-01",
		iot.Week:     "2023-12-25 2024-01-01 2024-02-26 2025-02-24 2025-03-03",
		iot.TwoWeeks: "2023-12-21 2024-02-29 2025-02-27",
		iot.TenDays:  "2023-12-29 2024-02-27 2025-02-21 2025-03-03",
	} {
		var got []string
		for _, b := range aggregate(t, s, iot.AggregateQuery{Query: iot.Query{DeviceID: "year"}, Statistic: iot.First, Granularity: granularity}) {
			got = append(got, b.Start.Format(time.DateOnly))
		}
		if strings.Join(got, " ") != starts {
			t.Errorf("by %s: %s, want %s", granularity, got, starts)
		}
	}
	partialMonths := iot.AggregateQuery{Statistic: iot.Least, Granularity: iot.Month, Query: iot.Query{DeviceID: "year", From: timeOf("2024-02-29 23:59:59"), To: timeOf("2025-02-28 23:59:59")}}
	wantBuckets(t, s, partialMonths, "year.1 2024-02-01T00:00:00Z 3", "year.1 2024-03-01T00:00:00Z 4", "year.1 2025-02-01T00:00:00Z 5")
}

func textsIgnored(t *testing.T, s iot.ReadingStore) {
	textPoint, textOnlyHour := textOf(pointAt("mixed", "2026-03-01 12:00:00", 0), "99"), textOf(pointAt("mixed", "2026-03-01 15:00:00", 0), "99")
	write(t, s, textPoint, textOnlyHour, pointAt("mixed", "2026-03-01 12:30:00", 4))
	for _, statistic := range iot.Statistics() {
		got := aggregate(t, s, iot.AggregateQuery{Query: iot.Query{DeviceID: "mixed"}, Statistic: statistic, Granularity: iot.Hour})
		if len(got) != 1 {
			t.Errorf("%s: %d buckets, want 1", statistic, len(got))
			continue
		}
		relaytest.Equal(t, fmt.Sprintf("the %s of numbers among texts", statistic), got[0].Value, 4)
	}
}

func rowsInOrder(t *testing.T, s iot.ReadingStore) {
	humidity := point("rows", "1", 1, 3)
	humidity.Type = "humidity"
	otherAccount := point("rows", "1", 0, 100)
	otherAccount.Account = globex
	write(t, s, point("rows", "2", 7200, 5), point("rows", "2", 0, 1), point("rows", "1", 7200, 4), point("rows", "1", 0, 2), humidity, otherAccount)
	q := iot.AggregateQuery{Statistic: iot.Average, Granularity: iot.Hour, Query: iot.Query{DeviceID: "rows", Types: []string{"humidity", celsius}}}
	allRows := []string{
		"rows.1 2026-03-01T12:00:00Z 3", "rows.1 2026-03-01T12:00:00Z 2", "rows.2 2026-03-01T12:00:00Z 1",
		"rows.1 2026-03-01T14:00:00Z 4", "rows.2 2026-03-01T14:00:00Z 5",
	}
	wantBuckets(t, s, q, allRows...)
	if got := aggregate(t, s, q); got[0].Type != "humidity" || got[1].Type != celsius {
		t.Errorf("types %q and %q, want %q and %q", got[0].Type, got[1].Type, "humidity", celsius)
	}
	for n := 1; n < len(allRows); n++ {
		q.Limit = n
		wantBuckets(t, s, q, allRows[:n]...)
	}
	q.Limit, q.Types = 0, []string{"humidity"}
	wantBuckets(t, s, q, allRows[0])
	q.Account, q.Types = globex, nil
	wantBuckets(t, s, q, "rows.1 2026-03-01T12:00:00Z 100")
	q.Account, q.DeviceID = acme, "nobody"
	wantBuckets(t, s, q)
}

func largeSums(t *testing.T, s iot.ReadingStore) {
	const huge = math.MaxFloat64 / 4 * 3
	write(t, s, pointAt("huge", "2026-03-01 12:00:00", huge), pointAt("huge", "2026-03-01 12:01:00", huge), pointAt("huge", "2026-03-01 13:00:00", 0.1))
	for _, granularity := range []iot.Granularity{iot.Hour, iot.Month} {
		for _, statistic := range []iot.Statistic{iot.Average, iot.MinAveMax} {
			got := aggregate(t, s, iot.AggregateQuery{Query: iot.Query{DeviceID: "huge"}, Statistic: statistic, Granularity: granularity})
			if want := map[iot.Granularity]float64{iot.Hour: huge, iot.Month: huge / 3 * 2}[granularity]; math.Abs(got[0].Value/want-1) > 1e-9 {
				t.Errorf("%s by %s: %g, want %g", statistic, granularity, got[0].Value, want)
			}
			if granularity == iot.Hour && got[1].Value != 0.1 {
				t.Errorf("%s by %s: %g in the next bucket, want 0.1", statistic, granularity, got[1].Value)
			}
		}
	}
}

func hostileAggregates(t *testing.T, s iot.ReadingStore) {
	for i, name := range hostile() {
		p := point(name, "1", i, float64(i))
		p.Type, p.SensorID = name, name
		write(t, s, p)
		q := iot.AggregateQuery{Query: iot.Query{DeviceID: name, Types: []string{name, celsius}}, Statistic: iot.MinAveMax, Granularity: iot.Month}
		got := aggregate(t, s, q)
		if len(got) != 1 {
			t.Errorf("%q: %d buckets, want 1", name, len(got))
			continue
		}
		relaytest.Equal(t, fmt.Sprintf("type, sensor and value of %q", name), []any{got[0].Type, got[0].SensorID, got[0].Value}, []any{name, name, float64(i)})
	}
}
