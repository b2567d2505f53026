package iot_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

// unmapped returns the unmapped keys of a decoder as "key count time".
func (g *gateway) unmapped(decoderID string) (list []string) {
	g.t.Helper()
	d, err := g.Decoder(g.t.Context(), 1, decoderID)
	relaytest.NoError(g.t, err)
	keys, err := g.UnmappedKeys(g.t.Context(), 1, d)
	relaytest.NoError(g.t, err)
	for _, k := range keys {
		list = append(list, fmt.Sprintf("%s %d %s", k.Key, k.Count, k.LastSeen.Format(time.TimeOnly)))
	}
	return list
}

func TestKeysWithoutAMappingAreListedOnTheirDecoder(t *testing.T) {
	g := newGateway(t)
	g.stored(g.later(1, values("temperature", 1.0, "wind", 3.0, "rain", 1.0)), g.later(2, values("temperature", 2.0, "wind", 4.0)))
	relaytest.NoError(t, g.SaveUnmapped(t.Context()))
	g.stored(g.later(3, values("temperature", 2.0, "wind", 5.0)))
	relaytest.NoError(t, g.SaveUnmapped(t.Context()), g.SaveUnmapped(t.Context()))
	relaytest.Equal(t, "the unmapped keys", g.unmapped("d1"), []string{"wind 3 12:03:00", "rain 1 12:01:00"})

	_, err := g.AddSensor(t.Context(), 1, "d1", iot.Mapping{Key: "wind", SensorTypeID: "state"})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the unmapped keys after one was mapped", g.unmapped("d1"), []string{"rain 1 12:01:00"})
}

func TestUnmappedKeysAreBounded(t *testing.T) {
	g := newGateway(t)
	many := values("temperature", 1.0)
	for i := range 2 * iot.MaxUnmappedKeys {
		many[fmt.Sprint("k", i)] = float64(i)
	}
	for i := range 3 {
		g.stored(g.later(i, many))
		relaytest.NoError(t, g.SaveUnmapped(t.Context()))
	}
	relaytest.Equal(t, "the number of unmapped keys", len(g.unmapped("d1")), iot.MaxUnmappedKeys)
}

func TestALongUnmappedKeyIsCut(t *testing.T) {
	g := newGateway(t)
	g.stored(g.later(1, values("temperature", 1.0, strings.Repeat("k", 250), 3.0)))
	relaytest.NoError(t, g.SaveUnmapped(t.Context()))
	relaytest.Equal(t, "the unmapped keys", g.unmapped("d1"), []string{strings.Repeat("k", 200) + "… 1 12:01:00"})
}

func TestUnmappedKeysAreKeptDuringAnOutage(t *testing.T) {
	g := newGateway(t)
	g.stored(g.later(1, values("temperature", 1.0, "wind", 3.0)))
	relaytest.NoError(t, g.db.Close())
	if err := g.SaveUnmapped(t.Context()); err == nil {
		t.Fatalf("saved without a database: %v", err)
	}
	if err := g.SaveUnmapped(t.Context()); err == nil || !strings.Contains(err.Error(), "unmapped keys") {
		t.Errorf("the keys were not kept for the next time: %v", err)
	}
}

func TestUnmappedKeysEndWithTheRetention(t *testing.T) {
	g := newGateway(t)
	g.stored(g.later(1, values("temperature", 1.0, "wind", 3.0)))
	relaytest.NoError(t, g.SaveUnmapped(t.Context()))
	g.now = g.now.Add(iot.UnmappedRetention + time.Hour)
	g.stored(g.later(2, values("temperature", 1.0, "rain", 3.0)))
	relaytest.NoError(t, g.SaveUnmapped(t.Context()))
	relaytest.Equal(t, "the unmapped keys", g.unmapped("d1"), []string{"rain 1 13:02:00"})
	relaytest.NoError(t, g.records.DeleteDecoder(t.Context(), 1, "d1"))
	keys, err := g.records.Unmapped(t.Context(), 1, "d1")
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of keys of a deleted decoder", len(keys), 0)
}
