package influx

import (
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
)

func TestRunsOfOverwrittenNumbers(t *testing.T) {
	at := func(sensor string, ns int64) pointKey { return pointKey{1, "celsius", sensor, ns} }
	number := func(sensor string, ns int64) storedPoint { return storedPoint{at(sensor, ns), true} }
	text := func(sensor string, ns int64) storedPoint { return storedPoint{at(sensor, ns), false} }
	for _, tc := range []struct {
		name   string
		stored []storedPoint
		texts  []pointKey
		want   []run
	}{
		{"none is stored", nil, []pointKey{at("a", 1)}, nil},
		{"numbers without another point between them", []storedPoint{number("a", 3), number("a", 1), number("a", 2)}, []pointKey{at("a", 1), at("a", 2), at("a", 3)}, []run{{at("a", 1), 3}}},
		{"a number between them", []storedPoint{number("a", 1), number("a", 2), number("a", 3)}, []pointKey{at("a", 1), at("a", 3)}, []run{{at("a", 1), 1}, {at("a", 3), 3}}},
		{"a text between them", []storedPoint{number("a", 1), text("a", 2), number("a", 3)}, []pointKey{at("a", 1), at("a", 3)}, []run{{at("a", 1), 1}, {at("a", 3), 3}}},
		{"an overwritten text between them", []storedPoint{number("a", 1), text("a", 2), number("a", 3)}, []pointKey{at("a", 1), at("a", 2), at("a", 3)}, []run{{at("a", 1), 3}}},
		{"two series", []storedPoint{number("a", 1), number("b", 2), number("a", 3)}, []pointKey{at("a", 1), at("b", 2), at("a", 3)}, []run{{at("a", 1), 3}, {at("b", 2), 2}}},
		{"texts alone", []storedPoint{text("a", 1)}, []pointKey{at("a", 1)}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			texts := make(map[pointKey]int)
			for i, key := range tc.texts {
				texts[key] = i
			}
			relaytest.Equal(t, "the runs", runsOf(tc.stored, texts), tc.want)
		})
	}
}
