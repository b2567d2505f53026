package iot_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestChangeDecoderChangesOnlyTheFieldsOfTheRequest(t *testing.T) {
	g := newGateway(t)
	created, err := g.CreateDecoder(t.Context(), 1, iot.DecoderChange{Name: new("n"), Description: new("d"), Type: new(iot.LoRaWAN), Codec: new("expr"), Source: new("a = 1.0"), MACVersion: new("1.0.3"), ClassB: new(true)})
	relaytest.NoError(t, err)
	for _, step := range []struct {
		name   string
		change iot.DecoderChange
		want   string // name, description, type, codec, source and raw payload, or the fields with problems
	}{
		{"no field", iot.DecoderChange{}, "n d lorawan expr a = 1.0 false"},
		{"a name", iot.DecoderChange{Name: new("m")}, "m d lorawan expr a = 1.0 false"},
		{"a source", iot.DecoderChange{Source: new("a = 2.0"), UseRawPayload: new(true)}, "m d lorawan expr a = 2.0 true"},
		{"a source that does not compile", iot.DecoderChange{Source: new("a = 1.0\nb = (")}, "source"},
		{"a codec without a source removes the old source", iot.DecoderChange{Codec: new("json")}, "m d lorawan json  true"},
		{"a source for a codec that takes none", iot.DecoderChange{Source: new("a = 1.0")}, "source"},
		{"a codec that needs a source", iot.DecoderChange{Codec: new("javascript")}, "source"},
		{"a codec with its source", iot.DecoderChange{Codec: new("javascript"), Source: new("function Decoder(b) { return {a: b[0]} }")}, "m d lorawan javascript function Decoder(b) { return {a: b[0]} } true"},
		{"the unchanged codec keeps the source", iot.DecoderChange{Codec: new("javascript")}, "m d lorawan javascript function Decoder(b) { return {a: b[0]} } true"},
		{"an empty codec becomes json", iot.DecoderChange{Codec: new(""), UseRawPayload: new(false)}, "m d lorawan json  false"},
		{"an unknown codec", iot.DecoderChange{Codec: new("cobol")}, "codec"},
		{"empty texts and an unknown type", iot.DecoderChange{Name: new(""), Description: new(" "), Type: new(iot.DeviceType("wifi"))}, "description name type"},
		{"texts that are too long", iot.DecoderChange{Name: new(strings.Repeat("x", 256)), Description: new(strings.Repeat("x", 2001))}, "description name"},
		{"a type", iot.DecoderChange{Type: new(iot.Serial), Description: new("e")}, "m e serial json  false"},
	} {
		got, err := g.ChangeDecoder(t.Context(), 1, created.ID, step.change)
		summary := fmt.Sprintf("%s %s %s %s %s %v", got.Name, got.Description, got.Type, got.Codec, got.Source, got.UseRawPayload)
		if err != nil {
			summary = fieldsOf(err)
		}
		if summary != step.want {
			t.Errorf("%s: %s, want %s", step.name, summary, step.want)
		}
	}
	stored, err := g.Decoder(t.Context(), 1, created.ID)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "name, MAC version and class B", []any{stored.Name, stored.MACVersion, stored.ClassB}, []any{"m", "1.0.3", true})
	for acct, id := range map[relay.AccountID]string{2: created.ID, 1: "none"} {
		if _, err := g.ChangeDecoder(t.Context(), acct, id, iot.DecoderChange{Name: new("x")}); relay.KindOf(err) != relay.KindNotFound {
			t.Errorf("account %d, decoder %s: %v, want not found", acct, id, err)
		}
	}
}

// Decoders of an inventory need no description.
func TestUnchangedFieldsAreNotValidated(t *testing.T) {
	g := newGateway(t)
	relaytest.NoError(t, g.records.CreateDecoder(t.Context(), 1, iot.Decoder{ID: "invalid", Name: "invalid", Type: iot.Other, Codec: "expr", Source: "a = ("}))
	d, err := g.ChangeDecoder(t.Context(), 1, "invalid", iot.DecoderChange{Name: new("a new name")})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the name", d.Name, "a new name")
}

func TestTheNextFrameIsDecodedByTheChangedDecoder(t *testing.T) {
	g := newGateway(t)
	g.mustStore(g.nextFrame(1, values("temperature", 1.0)))
	_, err := g.ChangeDecoder(t.Context(), 1, "d1", iot.DecoderChange{Codec: new("expr"), Source: new("temperature = object.temperature * 10"), UseRawPayload: new(true)})
	relaytest.NoError(t, err)
	g.mustStore(g.nextFrame(2, values("temperature", 2.0)))
	if got := g.latestValues(); !slices.Equal(got, []string{"temperature=20"}) {
		t.Errorf("latest values %q, want temperature=20", got)
	}
}

func TestARemovedMappingEndsReadingsAndKeepsHistoryAndCalibration(t *testing.T) {
	g := newGateway(t)
	firstValues := values("temperature", 1.0, "humidity", 40.0)
	g.mustStore(g.nextFrame(1, firstValues))
	sensors, err := g.Sensors(t.Context(), 1, g.device(1).ID, "humidity")
	relaytest.NoError(t, err)
	_, err = g.ChangeSensor(t.Context(), 1, sensors[0].ID, iot.SensorChange{Offset: new(5.0)})
	relaytest.NoError(t, err)

	d, err := g.RemoveSensor(t.Context(), 1, "d1", "humidity")
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of sensors", len(d.Sensors), 1)
	relaytest.Equal(t, "the remaining key", d.Sensors[0].Key, "temperature")
	g.mustStore(g.nextFrame(2, values("temperature", 2.0, "humidity", 41.0)))
	if got := g.latestValues(); !slices.Equal(got, []string{"humidity=40", "temperature=2"}) {
		t.Errorf("latest %q", got)
	}
	if got := g.history(1); strings.Join(got, " ") != "temperature=2 humidity=40 temperature=1" && strings.Join(got, " ") != "temperature=2 temperature=1 humidity=40" {
		t.Errorf("history %q", got)
	}
	relaytest.Equal(t, "the reason of a frame with the removed key", g.ingest(g.nextFrame(3, values("humidity", 42.0)))[0].Refused,
		"no sensor is mapped to any key of the frame: humidity")

	_, err = g.AddSensor(t.Context(), 1, "d1", iot.Mapping{SensorTypeID: "humidity", Key: "humidity"})
	relaytest.NoError(t, err)
	g.mustStore(g.nextFrame(4, values("humidity", 43.0)))
	if got := g.latestValues(); !slices.Contains(got, "humidity=48") {
		t.Errorf("latest values after the key was mapped again: %q, want humidity=48", got)
	}
	for _, step := range []struct{ decoder, key string }{{"none", "temperature"}, {"d1", "none"}, {"d1", ""}} {
		if _, err := g.RemoveSensor(t.Context(), 1, step.decoder, step.key); relay.KindOf(err) != relay.KindNotFound {
			t.Errorf("remove key %[2]q of decoder %[1]s: %[3]v, want not found", step.decoder, step.key, err)
		}
	}
}

func TestADecoderMapsNoMoreThan1000Keys(t *testing.T) {
	g := newGateway(t)
	full := iot.Decoder{ID: "full", Name: "full", Type: iot.Other, Codec: "json"}
	for i := range 1000 {
		full.Sensors = append(full.Sensors, iot.Mapping{SensorTypeID: "state", Key: fmt.Sprint("k", i)})
	}
	relaytest.NoError(t, g.records.CreateDecoder(t.Context(), 1, full))
	for key, want := range map[string]string{"k1000": "key", "k7": "", strings.Repeat("x", 201): "key", "a\nb": "key", "a\xff": "key"} {
		if _, err := g.AddSensor(t.Context(), 1, "full", iot.Mapping{SensorTypeID: "state", Key: key}); fieldsOf(err) != want {
			t.Errorf("key %.20q: %v, want problems of %q", key, err, want)
		}
	}
}

// The change repeats the stored source, which is not compiled again. Meanwhile, a concurrent request
// sets another codec, for which that source was not compiled.
func TestAnUnchangedSourceIsNotSavedUnderAnotherCodec(t *testing.T) {
	g := newGateway(t)
	created := relaytest.Must(g.CreateDecoder(t.Context(), 1, iot.DecoderChange{Name: new("n"), Description: new("d"), Type: new(iot.LoRaWAN), Codec: new("expr"), Source: new("a = 1.0")}))(t)
	script := "function Decoder(b) { return {a: b[0]} }"
	g.afterReads(1, func() {
		relaytest.Must(g.ChangeDecoder(t.Context(), 1, created.ID, iot.DecoderChange{Codec: new("javascript"), Source: &script}))(t)
	})
	_, err := g.ChangeDecoder(t.Context(), 1, created.ID, iot.DecoderChange{Source: new("a = 1.0")})
	relaytest.Equal(t, "the kind of the error", relay.KindOf(err), relay.KindConflict)
	stored := relaytest.Must(g.Decoder(t.Context(), 1, created.ID))(t)
	relaytest.Equal(t, "codec and source", []string{stored.Codec, stored.Source}, []string{"javascript", script})
	relaytest.Must(g.ChangeDecoder(t.Context(), 1, created.ID, iot.DecoderChange{Name: new("m")}))(t)
}
