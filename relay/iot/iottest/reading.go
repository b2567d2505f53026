package iottest

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/iot"
)

func newestFirst(t *testing.T, s iot.ReadingStore) {
	a, b, c := point("order", "1", 0, 21), point("order", "1", 60, 21.5), point("order", "1", 30, -0.25)
	write(t, s, a, b)
	write(t, s, c)
	expect(t, read(t, s, iot.Query{DeviceID: "order", Types: []string{celsius}}), b, c, a)
}

func sameTime(t *testing.T, s iot.ReadingStore) {
	a, b, c := point("tie", "1", 0, 1), point("tie", "2", 0, 2), point("tie", "3", 0, 3)
	b.Type = "humidity"
	newerPoint := point("tie", "2", 1, 4)
	write(t, s, c, newerPoint, a, b)
	expect(t, read(t, s, iot.Query{DeviceID: "tie", Types: []string{"humidity", celsius}}), newerPoint, a, b, c)
}

func limitWithinTime(t *testing.T, s iot.ReadingStore) {
	var points []iot.Point
	for i := range 5 {
		points = append(points, point("cut", fmt.Sprint(i), 0, float64(i)))
	}
	write(t, s, points...)
	for n := 1; n <= 5; n++ {
		expect(t, read(t, s, iot.Query{DeviceID: "cut", Types: []string{celsius}, Limit: n}), points[:n]...)
	}
}

func overwrites(t *testing.T, s iot.ReadingStore) {
	oldPoint, corrected, otherSensor := point("again", "1", 0, 1), point("again", "1", 0, 2), point("again", "2", 0, 3)
	write(t, s, oldPoint, otherSensor)
	write(t, s, corrected)
	write(t, s, corrected)
	expect(t, read(t, s, iot.Query{DeviceID: "again", Types: []string{celsius}}), corrected, otherSensor)
}

func lastOfBatchWins(t *testing.T, s iot.ReadingStore) {
	write(t, s, point("twice", "1", 0, 1), point("twice", "1", 0, 2), point("twice", "1", 0, 3))
	expect(t, read(t, s, iot.Query{DeviceID: "twice", Types: []string{celsius}}), point("twice", "1", 0, 3))
}

func texts(t *testing.T, s iot.ReadingStore) {
	var want []iot.Point
	for i, text := range []string{
		"open", "", "21.5", `"quoted"`, `back\slash\`, "two\nlines", "a, b = c d", "Grüße 東京 🚰",
		"tab\tand \x01", "nul \x00", "lone\rreturn", "two\r\nlines", "\x1b␍", "'; DROP MEASUREMENT temperature", "${r}", `\n`, "\u241b\u240a",
	} {
		want = append(want, textOf(point("words", "1", i, 0), text))
	}
	want = append(want, point("words", "2", len(want), 7), point("words", "1", len(want)+1, 8))
	write(t, s, want...)
	slices.Reverse(want)
	expect(t, read(t, s, iot.Query{DeviceID: "words", Types: []string{celsius}}), want...)
}

func numberOverText(t *testing.T, s iot.ReadingStore) {
	write(t, s, textOf(point("mended", "1", 0, 0), "21,5"))
	write(t, s, point("mended", "1", 0, 21.5))
	expect(t, read(t, s, iot.Query{DeviceID: "mended", Types: []string{celsius}}), point("mended", "1", 0, 21.5))
}

// textOverNumber checks that a sensor has one value at a time, a number or a text.
func textOverNumber(t *testing.T, s iot.ReadingStore) {
	number, previousPoint, nextPoint := point("turned", "1", 0, 21), point("turned", "1", -1, 20), point("turned", "1", 1, 22)
	otherSensor := point("turned", "2", 0, 5)
	write(t, s, number, previousPoint, nextPoint, otherSensor)
	celsiusOnly := iot.Query{DeviceID: "turned", Types: []string{celsius}}
	for _, text := range []string{"broken", "still broken"} {
		textPoint := textOf(number, text)
		write(t, s, textPoint)
		expect(t, read(t, s, celsiusOnly), nextPoint, textPoint, otherSensor, previousPoint)
		exact := celsiusOnly
		exact.From, exact.To = number.Time, number.Time
		wantBuckets(t, s, iot.AggregateQuery{Query: exact, Statistic: iot.Average, Granularity: iot.Hour}, "turned.2 2026-03-01T12:00:00Z 5")
		write(t, s, number)
		expect(t, read(t, s, celsiusOnly), nextPoint, number, otherSensor, previousPoint)
	}
	textPoint := textOf(nextPoint, "off")
	write(t, s, textPoint)
	expect(t, latest(t, s, acme, "turned", celsius), textPoint, otherSensor)
	for i, name := range hostile() {
		p := point("turned "+name, name, i, 1)
		p.Type = name
		textPoint := textOf(p, "off")
		write(t, s, p, otherSensor)
		write(t, s, textPoint)
		expect(t, read(t, s, iot.Query{DeviceID: p.DeviceID}), textPoint)
	}
	expect(t, read(t, s, celsiusOnly), textPoint, number, otherSensor, previousPoint)
	otherAccount := number
	otherAccount.Account = globex
	write(t, s, otherAccount)
	write(t, s, textOf(number, "broken"))
	expect(t, read(t, s, iot.Query{Account: globex, DeviceID: "turned"}), otherAccount)
}

// textsOverNumbers checks that overwriting points does not change points between them or of other
// sensors.
func textsOverNumbers(t *testing.T, s iot.ReadingStore) {
	var numbers []iot.Point
	for i := range 6 {
		numbers = append(numbers, point("runs", "1", i, float64(i)))
	}
	textPoint := textOf(point("runs", "1", 6, 0), "a text")
	lastNumber := point("runs", "1", 7, 7)
	otherSensor := point("runs", "2", 1, 9)
	write(t, s, append(numbers, textPoint, lastNumber, otherSensor)...)
	want := slices.Clone(numbers)
	var texts []iot.Point
	for _, i := range []int{0, 1, 3, 5} {
		want[i] = textOf(numbers[i], "broken")
		texts = append(texts, want[i])
	}
	write(t, s, append(texts, textOf(lastNumber, "off"))...)
	expect(t, read(t, s, iot.Query{DeviceID: "runs"}), textOf(lastNumber, "off"), textPoint, want[5], want[4], want[3], want[2], want[1], otherSensor, want[0])
}

func lastKindOfBatchWins(t *testing.T, s iot.ReadingStore) {
	number, nextPoint := point("kinds", "1", 0, 1), point("kinds", "1", 1, 2)
	write(t, s, number, textOf(nextPoint, "two"), textOf(number, "one"), nextPoint)
	expect(t, read(t, s, iot.Query{DeviceID: "kinds"}), nextPoint, textOf(number, "one"))
	write(t, s, textOf(nextPoint, "two"), number, nextPoint, textOf(nextPoint, "three"))
	expect(t, read(t, s, iot.Query{DeviceID: "kinds"}), textOf(nextPoint, "three"), number)
}

func floats(t *testing.T, s iot.ReadingStore) {
	var want []iot.Point
	for i, v := range []float64{
		0, 1, -1, 21, 21.5, 1e21, 1e-9, 123456789012345680, 0.1, 1.0 / 3, math.MaxFloat64, -math.MaxFloat64,
		math.SmallestNonzeroFloat64, math.Pi, 1 << 53, 1<<63 + 2048, 1e6, 1e100,
	} {
		want = append(want, point("digits", "1", i, v))
	}
	write(t, s, want...)
	slices.Reverse(want)
	expect(t, read(t, s, iot.Query{DeviceID: "digits", Types: []string{celsius}}), want...)
}

// hostile returns names that a store with incorrect quoting would split or drop.
func hostile() []string {
	return []string{
		"plain", "with space", "comma,comma", "equals=equals", `"double"`, "'single'", `back\slash`, `ends in\`,
		`\`, `\\`, `\,`, `\ `, `\=`, `\"`, "line\nbreak", "carriage\r\nreturn", "tab\tstop", "nul\x00byte", "esc\x1b[0m",
		"# comment", "#", "Grüße", "東京", "🚰", "\u2028", "value=1", "a,b=c d=1 1\nevil value=2", "${injection}", "$account",
		"' OR 1=1 --", `" OR "" = "`, ");drop(", "/.*/", "%s%d", "\u240a", "\u241b", "\u241be", "\u241b/", " leading", "trailing ", "time", "-", "_",
	}
}

func hostileTags(t *testing.T, s iot.ReadingStore) {
	var want []iot.Point
	for i, name := range hostile() {
		p := point("tags", fmt.Sprint(i), i, float64(i))
		p.Identifier, p.Key, p.SensorID = name, name, "tags."+name
		want = append(want, p)
		p.Type, p.Time = name, p.Time.Add(time.Millisecond)
		want = append(want, p)
	}
	untagged := point("tags", "last", 1000, 1)
	untagged.Identifier, untagged.Key = "", ""
	want = append(want, untagged)
	write(t, s, want...)
	slices.Reverse(want)
	expect(t, read(t, s, iot.Query{DeviceID: "tags", Types: append(hostile(), celsius)}), want...)
	expect(t, read(t, s, iot.Query{DeviceID: "tags"}), want...)
}

func hostileQueries(t *testing.T, s iot.ReadingStore) {
	write(t, s, point("victim", "1", 0, 42))
	for i, name := range hostile() {
		p := point(name, "1", i, float64(i))
		write(t, s, p)
		expect(t, read(t, s, iot.Query{DeviceID: name, Types: []string{celsius, name}}), p)
		expect(t, read(t, s, iot.Query{DeviceID: "victim", Types: []string{name}}))
	}
}

func ranges(t *testing.T, s iot.ReadingStore) {
	var p []iot.Point
	for i := range 5 {
		p = append(p, point("range", "1", i, float64(i)))
	}
	write(t, s, p...)
	cases := []struct {
		name       string
		start, end time.Time
		want       []iot.Point
	}{
		{"no ends", time.Time{}, time.Time{}, []iot.Point{p[4], p[3], p[2], p[1], p[0]}},
		{"a start at a point", p[3].Time, time.Time{}, []iot.Point{p[4], p[3]}},
		{"an end at a point", time.Time{}, p[1].Time, []iot.Point{p[1], p[0]}},
		{"a range of one point", p[2].Time, p[2].Time, []iot.Point{p[2]}},
		{"ends a nanosecond inside points", p[1].Time.Add(1), p[3].Time.Add(-1), []iot.Point{p[2]}},
		{"a start in another time zone", p[2].Time.In(time.FixedZone("", 3600)), time.Time{}, []iot.Point{p[4], p[3], p[2]}},
		{"a start after the end", p[3].Time, p[1].Time, nil},
		{"a range before all points", time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC), start().Add(-1), nil},
		{"a range wider than int64 nanoseconds", time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), []iot.Point{p[4], p[3], p[2], p[1], p[0]}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			expect(t, read(t, s, iot.Query{DeviceID: "range", Types: []string{celsius}, From: tc.start, To: tc.end}), tc.want...)
		})
	}
}

func limits(t *testing.T, s iot.ReadingStore) {
	var points []iot.Point
	for i := range 1200 {
		points = append(points, point("many", fmt.Sprint(i%3), i, float64(i)))
	}
	write(t, s, points...)
	for limit, want := range map[int]int{0: 1000, 1: 1, 999: 999, 1000: 1000, 5000: 1000, -1: 1000} {
		got := read(t, s, iot.Query{DeviceID: "many", Types: []string{celsius}, Limit: limit})
		if len(got) != want || got[0].Value != 1199 || got[len(got)-1].Value != float64(1200-want) {
			t.Errorf("limit %d: %d readings, want %d, %s", limit, len(got), want, brief(got))
		}
	}
}

func types(t *testing.T, s iot.ReadingStore) {
	temperature, humidity := point("kinds", "1", 0, 1), point("kinds", "2", 1, 2)
	humidity.Type = "humidity"
	write(t, s, temperature, humidity)
	expect(t, read(t, s, iot.Query{DeviceID: "kinds", Types: []string{celsius}}), temperature)
	expect(t, read(t, s, iot.Query{DeviceID: "kinds", Types: []string{"humidity"}}), humidity)
	expect(t, read(t, s, iot.Query{DeviceID: "kinds", Types: []string{"pressure"}}))
	expect(t, read(t, s, iot.Query{DeviceID: "kinds"}), humidity, temperature)
}

func accounts(t *testing.T, s iot.ReadingStore) {
	acmePoint, globexPoint := point("shared", "1", 0, 1), point("shared", "1", 0, 2)
	globexPoint.Account = globex
	write(t, s, acmePoint, globexPoint)
	expect(t, read(t, s, iot.Query{Account: acme, DeviceID: "shared", Types: []string{celsius}}), acmePoint)
	expect(t, read(t, s, iot.Query{Account: globex, DeviceID: "shared", Types: []string{celsius}}), globexPoint)
	expect(t, read(t, s, iot.Query{Account: 3, DeviceID: "shared", Types: []string{celsius}}))
}
