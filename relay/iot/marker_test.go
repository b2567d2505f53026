package iot_test

import (
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestAnEventMarkerIsChecked(t *testing.T) {
	g := newGateway(t)
	g.stored(g.frame("n1-u1", values("temperature", 1.0)))
	id := g.device(1).ID
	for name, tc := range map[string]struct {
		give iot.Marker
		want string // the fields with problems
	}{
		"all that is required":   {iot.Marker{ID: "a/b c", Comment: "two\nlines"}, ""},
		"nothing":                {iot.Marker{}, "comment event_marker_id"},
		"blanks":                 {iot.Marker{ID: " ", Comment: "\t"}, "comment event_marker_id"},
		"texts that are long":    {iot.Marker{ID: strings.Repeat("x", 201), Comment: strings.Repeat("x", 2001)}, "comment event_marker_id"},
		"an id of two lines":     {iot.Marker{ID: "a\nb", Comment: "c"}, "event_marker_id"},
		"an id that is no text":  {iot.Marker{ID: "a\xff", Comment: "c"}, "event_marker_id"},
		"one of the year 100 BC": {iot.Marker{ID: "old", Comment: "c", CreatedAt: time.Date(-99, 1, 1, 0, 0, 0, 0, time.UTC)}, "date_published"},
	} {
		if _, _, err := g.AddMarker(t.Context(), 1, id, tc.give); fieldsOf(err) != tc.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEventMarkersAreToTheSecondAndOfTheirDevice(t *testing.T) {
	g := newGateway(t)
	g.stored(g.frame("n1-u1", values("temperature", 1.0)))
	id := g.device(1).ID
	g.now = g.now.Add(500 * time.Millisecond)
	got, created, err := g.AddMarker(t.Context(), 1, id, iot.Marker{ID: "e", Comment: "moved"})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "whether the marker is new", created, true)
	relaytest.Equal(t, "the marker", got, iot.Marker{ID: "e", Comment: "moved", CreatedAt: g.now.Truncate(time.Second)})
	list, err := g.Markers(t.Context(), 1, id)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the listed markers", list, []iot.Marker{got})
	_, err = g.Markers(t.Context(), 2, id)
	_, _, put := g.AddMarker(t.Context(), 2, id, iot.Marker{ID: "e", Comment: "c"})
	if relay.KindOf(err) != relay.KindNotFound || relay.KindOf(put) != relay.KindNotFound {
		t.Errorf("of another account: %v, %v", err, put)
	}
}
