package iot_test

import (
	"slices"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestReadingsOfAPostHaveUniqueTimes(t *testing.T) {
	hourAgo := func(g *gateway) time.Time { return g.now.Add(-time.Hour) }
	sample := func(v float64, sampledAt time.Time) decoders.Reading {
		return decoders.Reading{Key: "temperature", Value: v, Time: sampledAt}
	}
	for _, tc := range []struct {
		name     string
		arrivals func(g *gateway) []iot.Arrival
		want     []string // readings, oldest first
	}{
		{"a key twice in one frame", func(g *gateway) []iot.Arrival {
			a := g.frame("n1-u1", nil)
			a.Frame.Samples = []decoders.Reading{sample(1, time.Time{}), sample(1, time.Time{}), sample(2, time.Time{})}
			return []iot.Arrival{a}
		}, []string{"temperature=1", "temperature=1", "temperature=2"}},
		{"samples with the same time, and one a nanosecond later", func(g *gateway) []iot.Arrival {
			a := g.frame("n1-u1", nil)
			a.Frame.Samples = []decoders.Reading{sample(3, hourAgo(g).Add(1)), sample(1, hourAgo(g)), sample(2, hourAgo(g))}
			return []iot.Arrival{a}
		}, []string{"temperature=1", "temperature=2", "temperature=3"}},
		{"frames with the same time and two sensors each", func(g *gateway) []iot.Arrival {
			a, b := g.frame("n1-u1.0", values("temperature", 1.0, "humidity", 10.0)), g.frame("n1-u1.1", values("temperature", 2.0, "humidity", 20.0))
			a.Post, b.Post, a.Frame.NetworkTime, b.Frame.NetworkTime = "n1-u1", "n1-u1", hourAgo(g), hourAgo(g)
			return []iot.Arrival{a, b}
		}, []string{"humidity=10", "temperature=1", "humidity=20", "temperature=2"}},
		{"a later post with the same time replaces the readings", func(g *gateway) []iot.Arrival {
			a, b := g.frame("n1-u1", values("temperature", 1.0)), g.frame("n1-u2", values("temperature", 2.0))
			a.Frame.NetworkTime, b.Frame.NetworkTime = hourAgo(g), hourAgo(g)
			return []iot.Arrival{a, b}
		}, []string{"temperature=2"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := newGateway(t)
			for range 2 {
				g.mustStore(tc.arrivals(g)...)
				got := g.history(1)
				slices.Reverse(got)
				if !slices.Equal(got, tc.want) {
					t.Errorf("history %q, want %q", got, tc.want)
				}
			}
			previewed, err := g.NewPreview().Frames(t.Context(), tc.arrivals(g))
			relaytest.NoError(t, err)
			for _, f := range previewed {
				for _, d := range f.Readings {
					if d.Effect == iot.Added {
						t.Errorf("the preview adds a reading:\n%s", relaytest.Diff(d.New, (*iot.Point)(nil)))
					}
				}
			}
		})
	}
}
