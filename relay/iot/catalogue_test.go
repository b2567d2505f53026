package iot_test

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestADecoderIsCheckedWhenItIsCreated(t *testing.T) {
	good := iot.DecoderChange{Name: new("n"), Description: new("d"), Type: new(iot.Serial)}
	changed := func(change func(*iot.DecoderChange)) iot.DecoderChange { d := good; change(&d); return d }
	cases := []struct {
		name string
		give iot.DecoderChange
		want string // the fields with problems
	}{
		{"the required fields", good, ""},
		{"an empty request", iot.DecoderChange{}, "description name type"},
		{"a blank name", changed(func(d *iot.DecoderChange) { d.Name = new(" \t") }), "name"},
		{"an unknown type", changed(func(d *iot.DecoderChange) { d.Type = new(iot.DeviceType("wifi")) }), "type"},
		{"an unknown codec", changed(func(d *iot.DecoderChange) { d.Codec = new("cobol") }), "codec"},
		{"a source that does not compile", changed(func(d *iot.DecoderChange) { d.Codec, d.Source = new("expr"), new("temperature = (") }), "source"},
		{"a source for a codec that takes none", changed(func(d *iot.DecoderChange) { d.Codec, d.Source = new("cayenne_lpp"), new("x") }), "source"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			g := newGateway(t)
			d, err := g.CreateDecoder(t.Context(), 1, tc.give)
			if got := strings.Join(slices.Sorted(maps.Keys(relay.FieldsOf(err))), " "); got != tc.want {
				t.Fatalf("fields with problems = %q, want %q (%v)", got, tc.want, err)
			}
			if _, readErr := g.Decoder(t.Context(), 1, d.ID); (readErr == nil) != (tc.want == "") {
				t.Errorf("reading the decoder %q returned %v", d.ID, readErr)
			}
			if tc.want == "" {
				relaytest.Equal(t, "the codec", d.Codec, "json")
			}
		})
	}
}

func TestAddSensorValidatesTheMapping(t *testing.T) {
	g := newGateway(t)
	for name, tc := range map[string]struct {
		decoder string
		m       iot.Mapping
		kind    relay.Kind
		fields  string
	}{
		"an empty mapping":       {"d1", iot.Mapping{}, relay.KindInvalid, "key sensor_type_id"},
		"an unknown sensor type": {"d1", iot.Mapping{SensorTypeID: "x", Key: "k"}, relay.KindInvalid, "sensor_type_id"},
		"an unknown decoder":     {"d9", iot.Mapping{SensorTypeID: "state", Key: "k"}, relay.KindNotFound, ""},
	} {
		_, err := g.AddSensor(t.Context(), 1, tc.decoder, tc.m)
		if got := strings.Join(slices.Sorted(maps.Keys(relay.FieldsOf(err))), " "); relay.KindOf(err) != tc.kind || got != tc.fields {
			t.Errorf("%s: %v with fields %q, want kind %v with fields %q", name, err, got, tc.kind, tc.fields)
		}
	}
	d, err := g.AddSensor(t.Context(), 1, "d1", iot.Mapping{SensorTypeID: "state", Key: "humidity"})
	relaytest.NoError(t, err)
	if len(d.Sensors) != 2 {
		t.Fatalf("%d sensors, want 2", len(d.Sensors))
	}
	relaytest.Equal(t, "the new type of a mapped key", d.Sensors[1].SensorTypeID, "state")
}

func TestChangeSensorChangesOnlyTheFieldsOfTheRequest(t *testing.T) {
	g := newGateway(t)
	g.mustStore(g.frame("n1-u1", values("temperature", 1.0)))
	sensors, err := g.Sensors(t.Context(), 1, g.device(1).ID, "temperature")
	relaytest.NoError(t, err)
	id := sensors[0].ID
	got, err := g.ChangeSensor(t.Context(), 1, id, iot.SensorChange{Slope: new(2.0), RetentionDays: new(30)})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "slope, offset, retention and name", []any{got.Slope, got.Offset, got.RetentionDays, got.Name}, []any{2.0, 0.0, 30, "temperature"})
	for name, tc := range map[string]struct {
		acct   relay.AccountID
		id     string
		change iot.SensorChange
		want   relay.Kind
	}{
		"an empty name":                {1, id, iot.SensorChange{Name: new("")}, relay.KindInvalid},
		"a name that is too long":      {1, id, iot.SensorChange{Name: new(strings.Repeat("x", 256))}, relay.KindInvalid},
		"a slope that is not a number": {1, id, iot.SensorChange{Slope: new(math.NaN())}, relay.KindInvalid},
		"an infinite offset":           {1, id, iot.SensorChange{Offset: new(math.Inf(1))}, relay.KindInvalid},
		"a negative retention":         {1, id, iot.SensorChange{RetentionDays: new(-1)}, relay.KindInvalid},
		"another account's sensor":     {2, id, iot.SensorChange{}, relay.KindNotFound},
		"an empty sensor id":           {1, "", iot.SensorChange{}, relay.KindNotFound},
		"an unknown sensor":            {1, id + "0", iot.SensorChange{}, relay.KindNotFound},
	} {
		if _, err := g.ChangeSensor(t.Context(), tc.acct, tc.id, tc.change); relay.KindOf(err) != tc.want {
			t.Errorf("%s: %v, want kind %v", name, err, tc.want)
		}
	}
}
