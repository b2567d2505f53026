package iot_test

import (
	"slices"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestNoReadingOfAPostIsStoredOverAnother(t *testing.T) {
	hour := func(g *gateway) time.Time { return g.now.Add(-time.Hour) }
	sample := func(v float64, at time.Time) decoders.Reading {
		return decoders.Reading{Key: "temperature", Value: v, Time: at}
	}
	for _, tc := range []struct {
		name string
		post func(g *gateway) []iot.Arrival
		want []string // oldest first
	}{
		{"a key twice in one frame", func(g *gateway) []iot.Arrival {
			a := g.frame("n1-u1", nil)
			a.Frame.Samples = []decoders.Reading{sample(1, time.Time{}), sample(1, time.Time{}), sample(2, time.Time{})}
			return []iot.Arrival{a}
		}, []string{"temperature=1", "temperature=1", "temperature=2"}},
		{"samples of one second, and one in their way", func(g *gateway) []iot.Arrival {
			a := g.frame("n1-u1", nil)
			a.Frame.Samples = []decoders.Reading{sample(3, hour(g).Add(1)), sample(1, hour(g)), sample(2, hour(g))}
			return []iot.Arrival{a}
		}, []string{"temperature=1", "temperature=2", "temperature=3"}},
		{"frames of one time, each with two sensors", func(g *gateway) []iot.Arrival {
			a, b := g.frame("n1-u1.0", values("temperature", 1.0, "humidity", 10.0)), g.frame("n1-u1.1", values("temperature", 2.0, "humidity", 20.0))
			a.Post, b.Post, a.Frame.NetworkTime, b.Frame.NetworkTime = "n1-u1", "n1-u1", hour(g), hour(g)
			return []iot.Arrival{a, b}
		}, []string{"humidity=10", "temperature=1", "humidity=20", "temperature=2"}},
		{"posts of one time, of which the later counts", func(g *gateway) []iot.Arrival {
			a, b := g.frame("n1-u1", values("temperature", 1.0)), g.frame("n1-u2", values("temperature", 2.0))
			a.Frame.NetworkTime, b.Frame.NetworkTime = hour(g), hour(g)
			return []iot.Arrival{a, b}
		}, []string{"temperature=2"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := newGateway(t)
			for range 2 {
				g.stored(tc.post(g)...)
				got := g.history(1)
				slices.Reverse(got)
				if !slices.Equal(got, tc.want) {
					t.Errorf("%q, want %q", got, tc.want)
				}
			}
			previewed, err := g.NewPreview().Frames(t.Context(), tc.post(g))
			relaytest.NoError(t, err)
			for _, f := range previewed {
				for _, d := range f.Readings {
					if d.Effect == iot.Added {
						t.Errorf("the preview says that a reading would be added:\n%s", relaytest.Diff(d.New, (*iot.Point)(nil)))
					}
				}
			}
		})
	}
}
