package iot_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

// fieldsOf returns the fields with problems, sorted.
func fieldsOf(err error) string {
	return strings.Join(slices.Sorted(maps.Keys(relay.FieldsOf(err))), " ")
}

// probe returns a valid request for a device.
func probe() iot.NewDevice {
	return iot.NewDevice{
		Type: iot.LoRaWAN, Identifier: eui, LocationID: "here",
		DeviceChange: iot.DeviceChange{Name: new("probe"), DecoderID: new("d1")},
	}
}

func TestADeviceIsCheckedWhenItIsCreated(t *testing.T) {
	with := func(change func(*iot.NewDevice)) iot.NewDevice { d := probe(); change(&d); return d }
	cases := []struct {
		name string
		give iot.NewDevice
		want string // the fields with problems
	}{
		{"all that is required", probe(), ""},
		{"nothing", iot.NewDevice{Type: iot.Other}, "decoder_id identifier location_id name"},
		{"a Bluetooth device of nothing", iot.NewDevice{Type: iot.Bluetooth}, "decoder_id location_id mac_address name"},
		{"empty texts", with(func(d *iot.NewDevice) { d.Name, d.DecoderID = new(" "), new("") }), "decoder_id name"},
		{"an unknown location and decoder", with(func(d *iot.NewDevice) { d.LocationID, d.DecoderID = "none", new("none") }), "decoder_id location_id"},
		{"another account's decoder", with(func(d *iot.NewDevice) { d.DecoderID = new("theirs") }), "decoder_id"},
		{"a devEUI that is too short", with(func(d *iot.NewDevice) { d.Identifier = eui[:14] }), "identifier"},
		{"a MAC address for a devEUI", with(func(d *iot.NewDevice) { d.Identifier = "aabbccddeeff" }), "identifier"},
		{"a devEUI for a MAC address", with(func(d *iot.NewDevice) { d.Type = iot.Bluetooth }), "mac_address"},
		{"a line break in an identifier", with(func(d *iot.NewDevice) { d.Type, d.Identifier = iot.Other, "a\nb" }), "identifier"},
		{"an identifier that is no text", with(func(d *iot.NewDevice) { d.Type, d.Identifier = iot.Other, "a\xff" }), "identifier"},
		{"a long identifier", with(func(d *iot.NewDevice) { d.Type, d.Identifier = iot.Other, strings.Repeat("x", 256) }), "identifier"},
		{"a long name and comment", with(func(d *iot.NewDevice) {
			d.Name, d.Comment = new(strings.Repeat("x", 256)), new(strings.Repeat("x", 2001))
		}), "comment name"},
		{"places that are no numbers", with(func(d *iot.NewDevice) { d.Longitude, d.Latitude, d.Altitude = new("east"), new("NaN"), new("0x1p4") }), "altitude latitude longitude"},
		{"places beyond the earth", with(func(d *iot.NewDevice) { d.Longitude, d.Latitude, d.Altitude = new("180.1"), new("-90.5"), new("1e999") }), "altitude latitude longitude"},
		{"parameters that are no object", with(func(d *iot.NewDevice) { d.ParserParams = new("[1]") }), "parser_params"},
		{"parameters that are null", with(func(d *iot.NewDevice) { d.ParserParams = new("null") }), "parser_params"},
		{"parameters with a number beyond numbers", with(func(d *iot.NewDevice) { d.ParserParams = new(`{"k":1e999}`) }), "parser_params"},
		{"parameters of 20 KB", with(func(d *iot.NewDevice) { d.ParserParams = new(`{"k":"` + strings.Repeat("x", 20_000) + `"}`) }), "parser_params"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			g := newGateway(t)
			relaytest.NoError(t, g.records.CreateDecoder(t.Context(), 2, decoder("theirs", "temperature")))
			d, err := g.CreateDevice(t.Context(), 1, tc.give)
			if got := fieldsOf(err); got != tc.want || (err == nil) != (tc.want == "") {
				t.Fatalf("%q, want %q (%v)", got, tc.want, err)
			}
			if n, _ := g.records.CountDevices(t.Context(), 1); (n == 1) != (tc.want == "") {
				t.Errorf("%d devices, among them %q", n, d.Identifier)
			}
		})
	}
}

func TestACreatedDeviceIsTheOneOfItsFrames(t *testing.T) {
	g := newGateway(t)
	n := probe()
	n.Identifier, n.Longitude, n.Altitude, n.ParserParams = "24-E1-24 13:6b:50:22:17", new(" -2.0943 "), new(""), new(` {"k": [1, 2]} `)
	made, err := g.CreateDevice(t.Context(), 1, n)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "identifier, parameters and location", []string{made.Identifier, made.Parameters, made.LocationID}, []string{eui, `{"k":[1,2]}`, "here"})
	relaytest.Equal(t, "longitude and altitude", []*float64{made.Longitude, made.Altitude}, []*float64{new(-2.0943), nil})
	sensors, err := g.Sensors(t.Context(), 1, made.ID, "")
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of sensors, by the decoder", len(sensors), 2)
	out := g.stored(g.frame("n1-u1", values("temperature", 1.0)))
	if out[0].DeviceID != made.ID {
		t.Errorf("its frame went to %s", out[0].DeviceID)
	}
}

func TestADeviceIsClaimedOnce(t *testing.T) {
	g := newGateway(t)
	_, err := g.CreateDevice(t.Context(), 1, probe())
	relaytest.NoError(t, err)
	for acct, identifier := range map[relay.AccountID]string{1: strings.ToUpper(eui), 2: eui} {
		again := probe()
		again.Identifier = identifier
		if _, err := g.CreateDevice(t.Context(), acct, again); relay.KindOf(err) != relay.KindConflict {
			t.Errorf("account %d: %v", acct, err)
		}
	}
	relaytest.NoError(t, g.DeleteDevice(t.Context(), 1, g.device(1).ID))
	if _, err := g.CreateDevice(t.Context(), 2, probe()); err != nil {
		t.Errorf("after it was deleted: %v", err)
	}
}

func TestADeviceChangesOnlyWhereItIsAskedTo(t *testing.T) {
	g := newGateway(t)
	n := probe()
	n.Longitude, n.Latitude, n.Comment, n.ParserParams = new("1"), new("2"), new("c"), new(`{"k":1}`)
	made, err := g.CreateDevice(t.Context(), 1, n)
	relaytest.NoError(t, err)
	show := func(d iot.Device) string {
		return fmt.Sprintf("%s %s %s %s %s %s %v", d.Name, d.Comment, text(d.Longitude), text(d.Latitude), d.DecoderID, d.Parameters, d.FrameLogging)
	}
	for _, step := range []struct {
		what   string
		change iot.DeviceChange
		want   string
	}{
		{"nothing", iot.DeviceChange{}, `probe c 1 2 d1 {"k":1} false`},
		{"a name and a place", iot.DeviceChange{Name: new("p"), Longitude: new("-0.5")}, `p c -0.5 2 d1 {"k":1} false`},
		{"empty texts take away", iot.DeviceChange{Comment: new(""), Latitude: new(""), DecoderID: new(""), ParserParams: new("")}, `p  -0.5 -   false`},
		{"logging", iot.DeviceChange{FrameLogging: new("enabled"), DecoderID: new("d1")}, `p  -0.5 - d1  true`},
		{"no logging", iot.DeviceChange{FrameLogging: new("disabled")}, `p  -0.5 - d1  false`},
	} {
		got, err := g.ChangeDevice(t.Context(), 1, made.ID, step.change)
		if err != nil || show(got) != step.want {
			t.Errorf("%s: %s, %v, want %s", step.what, show(got), err, step.want)
		}
		if kept, err := g.Device(t.Context(), 1, made.ID); err != nil || show(kept) != step.want {
			t.Errorf("%s: kept %s, %v", step.what, show(kept), err)
		}
	}
	_, err = g.ChangeDevice(t.Context(), 1, made.ID, iot.DeviceChange{Name: new(""), Latitude: new("91"), DecoderID: new("none"), FrameLogging: new("on"), ParserParams: new("x")})
	if got := fieldsOf(err); got != "decoder_id frame_logging latitude name parser_params" {
		t.Errorf("%q, %v", got, err)
	}
	for _, step := range []struct {
		acct relay.AccountID
		id   string
	}{{2, made.ID}, {1, "none"}} {
		_, err := g.ChangeDevice(t.Context(), step.acct, step.id, iot.DeviceChange{Name: new("x")})
		if gone := g.DeleteDevice(t.Context(), step.acct, step.id); relay.KindOf(err) != relay.KindNotFound || relay.KindOf(gone) != relay.KindNotFound {
			t.Errorf("account %d, device %s: changed with %v, deleted with %v; want not found", step.acct, step.id, err, gone)
		}
	}
}

func text(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprint(*v)
}

func TestTheNextFrameFollowsAChangedDevice(t *testing.T) {
	g := newGateway(t)
	relaytest.NoError(t, g.records.CreateDecoder(t.Context(), 1, iot.Decoder{
		ID: "scaled", Name: "scaled", Type: iot.Other, Codec: "expr", Source: "temperature = object.t * params.k",
		UseRawPayload: true, Sensors: []iot.Mapping{{Key: "temperature", SensorTypeID: "temperature"}},
	}))
	g.stored(g.later(1, values("temperature", 1.0)))
	id := g.device(1).ID
	_, err := g.ChangeDevice(t.Context(), 1, id, iot.DeviceChange{DecoderID: new("scaled"), ParserParams: new(`{"k":10}`)})
	relaytest.NoError(t, err)
	g.stored(g.later(2, values("t", 7.0)))
	if got := g.latest(); !slices.Equal(got, []string{"temperature=70"}) {
		t.Errorf("%q", got)
	}
}
