package iot_test

import (
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestAnEventMarkerIsValidated(t *testing.T) {
	g := newGateway(t)
	g.mustStore(g.frame("n1-u1", values("temperature", 1.0)))
	id := g.device(1).ID
	for name, tc := range map[string]struct {
		marker iot.Marker
		want   string // the fields with problems
	}{
		"the required fields":     {iot.Marker{ID: "a/b c", Comment: "two\nlines"}, ""},
		"an empty marker":         {iot.Marker{}, "comment event_marker_id"},
		"blank texts":             {iot.Marker{ID: " ", Comment: "\t"}, "comment event_marker_id"},
		"texts that are too long": {iot.Marker{ID: strings.Repeat("x", 201), Comment: strings.Repeat("x", 2001)}, "comment event_marker_id"},
		"an id with a line break": {iot.Marker{ID: "a\nb", Comment: "c"}, "event_marker_id"},
		"an id that is not UTF-8": {iot.Marker{ID: "a\xff", Comment: "c"}, "event_marker_id"},
		"a time in 100 BC":        {iot.Marker{ID: "old", Comment: "c", CreatedAt: time.Date(-99, 1, 1, 0, 0, 0, 0, time.UTC)}, "date_published"},
	} {
		if _, _, err := g.AddMarker(t.Context(), 1, id, tc.marker); fieldsOf(err) != tc.want {
			t.Errorf("%s: %v, want problems of %q", name, err, tc.want)
		}
	}
}

func TestEventMarkersHaveASecondAndADevice(t *testing.T) {
	g := newGateway(t)
	g.mustStore(g.frame("n1-u1", values("temperature", 1.0)))
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
	_, _, putErr := g.AddMarker(t.Context(), 2, id, iot.Marker{ID: "e", Comment: "c"})
	if relay.KindOf(err) != relay.KindNotFound || relay.KindOf(putErr) != relay.KindNotFound {
		t.Errorf("markers of another account: list %v, put %v; want not found", err, putErr)
	}
}
