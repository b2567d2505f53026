package iot_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestReadingsFollowTheSensorsOfTheDevice(t *testing.T) {
	g := newGateway(t)
	g.mustStore(g.frame("r1", values("temperature", 20)))
	wantHistory := func(label string, want ...string) {
		t.Helper()
		if got := g.history(1); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", label, got, want)
		}
		rows, err := g.Aggregate(t.Context(), iot.AggregateQuery{Query: iot.Query{Account: 1, DeviceID: g.device(1).ID}, Statistic: iot.Most, Granularity: iot.Month}, iot.Metric)
		relaytest.NoError(t, err)
		if len(rows) != len(want) {
			t.Errorf("%s: %d rows, want %d", label, len(rows), len(want))
		}
	}
	wantHistory("with one type", "temperature=20")
	_, err := g.AddSensor(t.Context(), 1, "d1", iot.Mapping{SensorTypeID: "state", Key: "door"})
	relaytest.NoError(t, err)
	g.mustStore(g.frame("r2", values("door", true)))
	if got := g.history(1); len(got) != 2 {
		t.Errorf("with another type: %d readings, want 2: %q", len(got), got)
	}

	id := g.device(1).ID
	if _, err := g.Readings(t.Context(), iot.Query{Account: 2, DeviceID: id}, iot.Metric); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("readings for another account: %v, want not found", err)
	}
	relaytest.NoError(t, g.DeleteDevice(t.Context(), 1, id))
	if _, err := g.Readings(t.Context(), iot.Query{Account: 1, DeviceID: id}, iot.Metric); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("readings of a deleted device: %v, want not found", err)
	}
}

// panickingCache is a cache whose SetLatest panics.
type panickingCache struct{ iot.Cache }

func (panickingCache) SetLatest(context.Context, []iot.Point) error { panic("a fault of the cache") }

// Latest values are cached in separate goroutines. Their panics become an error of the batch, so that
// the frame is quarantined and the gateway continues.
func TestAPanicOfTheCacheIsAnErrorOfTheBatch(t *testing.T) {
	g := newGateway(t)
	service := iot.New(g.records, panickingCache{g.cache}, g.readings, g.compile, g.options)
	_, err := service.Ingest(t.Context(), []iot.Arrival{g.frame("r1", values("temperature", 20))})
	if err == nil || !strings.Contains(err.Error(), "panic: a fault of the cache") {
		t.Errorf("got error %v, want the panic", err)
	}
}
