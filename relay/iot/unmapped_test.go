package iot_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

// unmappedKeys returns the unmapped keys of a decoder as "key count time".
func (g *gateway) unmappedKeys(decoderID string) (list []string) {
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
	g.mustStore(g.nextFrame(1, values("temperature", 1.0, "wind", 3.0, "rain", 1.0)), g.nextFrame(2, values("temperature", 2.0, "wind", 4.0)))
	relaytest.NoError(t, g.SaveUnmapped(t.Context()))
	g.mustStore(g.nextFrame(3, values("temperature", 2.0, "wind", 5.0)))
	relaytest.NoError(t, g.SaveUnmapped(t.Context()), g.SaveUnmapped(t.Context()))
	relaytest.Equal(t, "the unmapped keys", g.unmappedKeys("d1"), []string{"wind 3 12:03:00", "rain 1 12:01:00"})

	_, err := g.AddSensor(t.Context(), 1, "d1", iot.Mapping{Key: "wind", SensorTypeID: "state"})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the unmapped keys after one was mapped", g.unmappedKeys("d1"), []string{"rain 1 12:01:00"})
}

func TestUnmappedKeysAreBounded(t *testing.T) {
	g := newGateway(t)
	posted := values("temperature", 1.0)
	for i := range 2 * iot.MaxUnmappedKeys {
		posted[fmt.Sprint("k", i)] = float64(i)
	}
	for i := range 3 {
		g.mustStore(g.nextFrame(i, posted))
		relaytest.NoError(t, g.SaveUnmapped(t.Context()))
	}
	relaytest.Equal(t, "the number of unmapped keys", len(g.unmappedKeys("d1")), iot.MaxUnmappedKeys)
}

func TestALongUnmappedKeyIsTruncated(t *testing.T) {
	g := newGateway(t)
	g.mustStore(g.nextFrame(1, values("temperature", 1.0, strings.Repeat("k", 250), 3.0)))
	relaytest.NoError(t, g.SaveUnmapped(t.Context()))
	relaytest.Equal(t, "the unmapped keys", g.unmappedKeys("d1"), []string{strings.Repeat("k", 200) + "… 1 12:01:00"})
}

func TestUnmappedKeysAreKeptDuringAnOutage(t *testing.T) {
	g := newGateway(t)
	g.mustStore(g.nextFrame(1, values("temperature", 1.0, "wind", 3.0)))
	relaytest.NoError(t, g.db.Close())
	if err := g.SaveUnmapped(t.Context()); err == nil {
		t.Fatalf("SaveUnmapped returned no error without a database")
	}
	if err := g.SaveUnmapped(t.Context()); err == nil || !strings.Contains(err.Error(), "unmapped keys") {
		t.Errorf("second SaveUnmapped: %v, want an error of the kept keys", err)
	}
}

func TestUnmappedKeysExpire(t *testing.T) {
	g := newGateway(t)
	g.mustStore(g.nextFrame(1, values("temperature", 1.0, "wind", 3.0)))
	relaytest.NoError(t, g.SaveUnmapped(t.Context()))
	g.now = g.now.Add(iot.UnmappedRetention + time.Hour)
	g.mustStore(g.nextFrame(2, values("temperature", 1.0, "rain", 3.0)))
	relaytest.NoError(t, g.SaveUnmapped(t.Context()))
	relaytest.Equal(t, "the unmapped keys", g.unmappedKeys("d1"), []string{"rain 1 13:02:00"})
	relaytest.NoError(t, g.records.DeleteDecoder(t.Context(), 1, "d1"))
	keys, err := g.records.Unmapped(t.Context(), 1, "d1")
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of keys of a deleted decoder", len(keys), 0)
}
