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

// deviceRequest returns a valid request to create a device.
func deviceRequest() iot.NewDevice {
	return iot.NewDevice{
		Type: iot.LoRaWAN, Identifier: eui, LocationID: "here",
		DeviceChange: iot.DeviceChange{Name: new("probe"), DecoderID: new("d1")},
	}
}

func TestANewDeviceIsValidated(t *testing.T) {
	changed := func(change func(*iot.NewDevice)) iot.NewDevice { d := deviceRequest(); change(&d); return d }
	cases := []struct {
		name string
		give iot.NewDevice
		want string // the fields with problems
	}{
		{"the required fields", deviceRequest(), ""},
		{"an empty request", iot.NewDevice{Type: iot.Other}, "decoder_id identifier location_id name"},
		{"an empty request for a Bluetooth device", iot.NewDevice{Type: iot.Bluetooth}, "decoder_id location_id mac_address name"},
		{"empty texts", changed(func(d *iot.NewDevice) { d.Name, d.DecoderID = new(" "), new("") }), "decoder_id name"},
		{"an unknown location and decoder", changed(func(d *iot.NewDevice) { d.LocationID, d.DecoderID = "none", new("none") }), "decoder_id location_id"},
		{"another account's decoder", changed(func(d *iot.NewDevice) { d.DecoderID = new("theirs") }), "decoder_id"},
		{"a devEUI that is too short", changed(func(d *iot.NewDevice) { d.Identifier = eui[:14] }), "identifier"},
		{"a MAC address for a devEUI", changed(func(d *iot.NewDevice) { d.Identifier = "aabbccddeeff" }), "identifier"},
		{"a devEUI for a MAC address", changed(func(d *iot.NewDevice) { d.Type = iot.Bluetooth }), "mac_address"},
		{"a line break in an identifier", changed(func(d *iot.NewDevice) { d.Type, d.Identifier = iot.Other, "a\nb" }), "identifier"},
		{"an identifier that is not UTF-8", changed(func(d *iot.NewDevice) { d.Type, d.Identifier = iot.Other, "a\xff" }), "identifier"},
		{"an identifier that is too long", changed(func(d *iot.NewDevice) { d.Type, d.Identifier = iot.Other, strings.Repeat("x", 256) }), "identifier"},
		{"a name and a comment that are too long", changed(func(d *iot.NewDevice) {
			d.Name, d.Comment = new(strings.Repeat("x", 256)), new(strings.Repeat("x", 2001))
		}), "comment name"},
		{"coordinates that are not numbers", changed(func(d *iot.NewDevice) { d.Longitude, d.Latitude, d.Altitude = new("east"), new("NaN"), new("0x1p4") }), "altitude latitude longitude"},
		{"coordinates out of range", changed(func(d *iot.NewDevice) { d.Longitude, d.Latitude, d.Altitude = new("180.1"), new("-90.5"), new("1e999") }), "altitude latitude longitude"},
		{"parameters that are not an object", changed(func(d *iot.NewDevice) { d.ParserParams = new("[1]") }), "parser_params"},
		{"parameters that are null", changed(func(d *iot.NewDevice) { d.ParserParams = new("null") }), "parser_params"},
		{"parameters with a number out of range", changed(func(d *iot.NewDevice) { d.ParserParams = new(`{"k":1e999}`) }), "parser_params"},
		{"parameters of 20 KB", changed(func(d *iot.NewDevice) { d.ParserParams = new(`{"k":"` + strings.Repeat("x", 20_000) + `"}`) }), "parser_params"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			g := newGateway(t)
			relaytest.NoError(t, g.records.CreateDecoder(t.Context(), 2, decoder("theirs", "temperature")))
			d, err := g.CreateDevice(t.Context(), 1, tc.give)
			if got := fieldsOf(err); got != tc.want || (err == nil) != (tc.want == "") {
				t.Fatalf("fields with problems = %q, want %q (%v)", got, tc.want, err)
			}
			if n, _ := g.records.CountDevices(t.Context(), 1); (n == 1) != (tc.want == "") {
				t.Errorf("%d devices, the last result was %q", n, d.Identifier)
			}
		})
	}
}

func TestFramesBelongToTheCreatedDevice(t *testing.T) {
	g := newGateway(t)
	request := deviceRequest()
	request.Identifier, request.Longitude, request.Altitude, request.ParserParams = "24-E1-24 13:6b:50:22:17", new(" -2.0943 "), new(""), new(` {"k": [1, 2]} `)
	created, err := g.CreateDevice(t.Context(), 1, request)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "identifier, parameters and location", []string{created.Identifier, created.Parameters, created.LocationID}, []string{eui, `{"k":[1,2]}`, "here"})
	relaytest.Equal(t, "longitude and altitude", []*float64{created.Longitude, created.Altitude}, []*float64{new(-2.0943), nil})
	sensors, err := g.Sensors(t.Context(), 1, created.ID, "")
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of sensors", len(sensors), 2)
	outcomes := g.mustStore(g.frame("n1-u1", values("temperature", 1.0)))
	if outcomes[0].DeviceID != created.ID {
		t.Errorf("the frame belongs to device %s, want %s", outcomes[0].DeviceID, created.ID)
	}
}

func TestADeviceIsClaimedOnce(t *testing.T) {
	g := newGateway(t)
	_, err := g.CreateDevice(t.Context(), 1, deviceRequest())
	relaytest.NoError(t, err)
	for acct, identifier := range map[relay.AccountID]string{1: strings.ToUpper(eui), 2: eui} {
		request := deviceRequest()
		request.Identifier = identifier
		if _, err := g.CreateDevice(t.Context(), acct, request); relay.KindOf(err) != relay.KindConflict {
			t.Errorf("account %d: %v, want kind conflict", acct, err)
		}
	}
	relaytest.NoError(t, g.DeleteDevice(t.Context(), 1, g.device(1).ID))
	if _, err := g.CreateDevice(t.Context(), 2, deviceRequest()); err != nil {
		t.Errorf("create the device after its deletion: %v", err)
	}
}

func TestChangeDeviceChangesOnlyTheFieldsOfTheRequest(t *testing.T) {
	g := newGateway(t)
	request := deviceRequest()
	request.Longitude, request.Latitude, request.Comment, request.ParserParams = new("1"), new("2"), new("c"), new(`{"k":1}`)
	created, err := g.CreateDevice(t.Context(), 1, request)
	relaytest.NoError(t, err)
	summary := func(d iot.Device) string {
		return fmt.Sprintf("%s %s %s %s %s %s %v", d.Name, d.Comment, formatFloat(d.Longitude), formatFloat(d.Latitude), d.DecoderID, d.Parameters, d.FrameLogging)
	}
	for _, step := range []struct {
		name   string
		change iot.DeviceChange
		want   string
	}{
		{"no field", iot.DeviceChange{}, `probe c 1 2 d1 {"k":1} false`},
		{"a name and a place", iot.DeviceChange{Name: new("p"), Longitude: new("-0.5")}, `p c -0.5 2 d1 {"k":1} false`},
		{"empty texts remove values", iot.DeviceChange{Comment: new(""), Latitude: new(""), DecoderID: new(""), ParserParams: new("")}, `p  -0.5 -   false`},
		{"logging", iot.DeviceChange{FrameLogging: new("enabled"), DecoderID: new("d1")}, `p  -0.5 - d1  true`},
		{"no logging", iot.DeviceChange{FrameLogging: new("disabled")}, `p  -0.5 - d1  false`},
	} {
		got, err := g.ChangeDevice(t.Context(), 1, created.ID, step.change)
		if err != nil || summary(got) != step.want {
			t.Errorf("%s: %s, %v, want %s", step.name, summary(got), err, step.want)
		}
		if stored, err := g.Device(t.Context(), 1, created.ID); err != nil || summary(stored) != step.want {
			t.Errorf("%s: stored %s, %v; want %s", step.name, summary(stored), err, step.want)
		}
	}
	_, err = g.ChangeDevice(t.Context(), 1, created.ID, iot.DeviceChange{Name: new(""), Latitude: new("91"), DecoderID: new("none"), FrameLogging: new("on"), ParserParams: new("x")})
	if got := fieldsOf(err); got != "decoder_id frame_logging latitude name parser_params" {
		t.Errorf("fields with problems = %q (%v)", got, err)
	}
	for _, step := range []struct {
		acct relay.AccountID
		id   string
	}{{2, created.ID}, {1, "none"}} {
		_, err := g.ChangeDevice(t.Context(), step.acct, step.id, iot.DeviceChange{Name: new("x")})
		if deleteErr := g.DeleteDevice(t.Context(), step.acct, step.id); relay.KindOf(err) != relay.KindNotFound || relay.KindOf(deleteErr) != relay.KindNotFound {
			t.Errorf("account %d, device %s: changed with %v, deleted with %v; want not found", step.acct, step.id, err, deleteErr)
		}
	}
}

func formatFloat(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprint(*v)
}

func TestTheNextFrameIsDecodedWithTheChangedDevice(t *testing.T) {
	g := newGateway(t)
	relaytest.NoError(t, g.records.CreateDecoder(t.Context(), 1, iot.Decoder{
		ID: "scaled", Name: "scaled", Type: iot.Other, Codec: "expr", Source: "temperature = object.t * params.k",
		UseRawPayload: true, Sensors: []iot.Mapping{{Key: "temperature", SensorTypeID: "temperature"}},
	}))
	g.mustStore(g.nextFrame(1, values("temperature", 1.0)))
	id := g.device(1).ID
	_, err := g.ChangeDevice(t.Context(), 1, id, iot.DeviceChange{DecoderID: new("scaled"), ParserParams: new(`{"k":10}`)})
	relaytest.NoError(t, err)
	g.mustStore(g.nextFrame(2, values("t", 7.0)))
	if got := g.latestValues(); !slices.Equal(got, []string{"temperature=70"}) {
		t.Errorf("latest values %q, want temperature=70", got)
	}
}
