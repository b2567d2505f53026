package uplink

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/ingest/intake/intaketest"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestEventsAreDescribed(t *testing.T) {
	received := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const device = `"deviceInfo":{"devEui":"a84041d2c5182f01"}`
	cases := []struct{ name, query, body, want string }{
		{"an uplink", "event=up", `{` + device + `,"fCnt":7,"fPort":2,"data":"AQI=","rxInfo":[{"gatewayId":"a","rssi":-90,"snr":-3.5},{"gatewayId":"b","rssi":-60,"snr":9}]}`,
			"a84041d2c5182f01: fCnt 7, fPort 2, 2 bytes, 2 radio gateways, RSSI -60 dBm, SNR 9 dB"},
		{"a status", "event=status", `{` + device + `,"margin":10,"batteryLevel":88.3}`, "a84041d2c5182f01: status, battery 88.3 %, margin 10 dB"},
		{"a join", "event=join", `{` + device + `}`, "a84041d2c5182f01: join"},
		{"an acknowledgement", "event=ack", `{` + device + `,"acknowledged":true}`, "a84041d2c5182f01: ack"},
		{"a missing acknowledgement", "event=ack", `{` + device + `}`, "a84041d2c5182f01: nack"},
		{"a location", "event=location", `{` + device + `,"location":{"latitude":51.5,"longitude":-0.125}}`, "a84041d2c5182f01: location, at 51.5, -0.125"},
		{"a log", "event=log", `{` + device + `,"level":"ERROR","code":"OTAA","description":"no"}`, "a84041d2c5182f01: log, ERROR OTAA: no"},
		{"ciphertext", "event=up", `{` + device + `,"fCnt":1,"fPort":2,"data":"AQ==","joinServerContext":{"sessionKeyId":"x"}}`, "a84041d2c5182f01: fCnt 1, fPort 2, 1 byte, encrypted"},
		{"an invalid time", "event=up", `{` + device + `,"time":"noon","fCnt":1,"fPort":2}`, "a84041d2c5182f01: fCnt 1, fPort 2"},
		{"a simulation", "", `{"end_device_ids":{"dev_eui":"A84041D2C5182F01"},"uplink_message":{"f_port":2,"f_cnt":3},"simulated":true}`, "a84041d2c5182f01: fCnt 3, fPort 2, simulated"},
		{"an alert", "", `{"subject":"Cold","rule":"Freezer","deviceID":"5","reading":"9"}`, "5: alert, Freezer: Cold: 9"},
		{"seven frames", "", `[{"id":"1","t":1},{"id":"2","t":1},{"id":"3","t":1},{"id":"4","t":1},{"id":"5","t":1},{"id":"6","t":1},{"id":"7","t":1}]`,
			"1: t 1; 2: t 1; 3: t 1; 4: t 1; 5: t 1; and 2 more"},
		{"an unknown body", "", `{"a":1}`, ""},
	}
	p := NewProcessor(nil, nil)
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			e := intake.Entry{Path: "/webhooks/lorawan", Query: tc.query, Body: []byte(tc.body), ReceivedAt: received}
			if got := intaketest.Describe(p, &e); got != tc.want {
				t.Errorf("description = %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestDescriptionsHaveTheNamesOfDevices(t *testing.T) {
	p := NewProcessor(nil, nil)
	describe := func(identifier string) string {
		return intaketest.Describe(p, &intake.Entry{Account: 1, Path: "/webhooks/lorawan", Query: "event=join", Body: []byte(`{"deviceInfo":{"devEui":"` + identifier + `"}}`)})
	}
	lookups := 0
	p.FindDevice = func(_ context.Context, _ relay.AccountID, identifier string) (iot.Device, error) {
		lookups++
		switch identifier {
		case "a84041d2c5182f01":
			return iot.Device{Name: "Cold room"}, nil
		case "a84041d2c5182f04":
			return iot.Device{Name: "Floor 1: hall; west"}, nil
		case "a84041d2c5182f02":
			return iot.Device{}, relay.Errorf(relay.KindNotFound, "no device")
		}
		return iot.Device{}, relay.Errorf(relay.KindUnavailable, "the database is down")
	}
	relaytest.Equal(t, "a known device", describe("a84041d2c5182f01"), "Cold room: join")
	relaytest.Equal(t, "a name with separators", describe("a84041d2c5182f04"), "Floor 1, hall, west: join")
	for range 2 {
		relaytest.Equal(t, "an unknown device", describe("a84041d2c5182f02"), "a84041d2c5182f02: join")
	}
	relaytest.Equal(t, "the number of lookups of three devices", lookups, 3)
	relaytest.Equal(t, "a device while the database is down", describe("a84041d2c5182f03"), "a84041d2c5182f03: join")
}

func TestEventsAreFoundByBodyAndQuery(t *testing.T) {
	f := newFlow(t)
	f.run()
	f.post("/webhooks/lorawan?event=join", "hook-1", `{"deviceInfo":{"devEui":"a84041d2c5182f01"}}`)
	f.post("/webhooks/lorawan?event=status", "hook-1", `{"deviceInfo":{"devEui":"a84041d2c5182f01"},"batteryLevel":55,"margin":9}`)
	f.waitProcessed()
	for query, want := range map[string]string{`"BATTERYLEVEL":55`: "a84041d2c5182f01: status, battery 55 %, margin 9 dB", "event=join": "a84041d2c5182f01: join", "alert": ""} {
		var got []string
		relaytest.NoError(t, f.intake.Events(t.Context(), event.Filter{Query: query}, 0, func(e event.Event, _ uint64) bool {
			single, _, err := f.intake.Event(t.Context(), e.ID)
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the outcome of the event found by its id", single.Outcome, e.Outcome)
			got = append(got, e.Outcome)
			return true
		}))
		if strings.Join(got, "|") != want {
			t.Errorf("events of %s = %q, want %q", query, got, want)
		}
	}
}

func TestEventsAreFoundByDevice(t *testing.T) {
	f := newFlow(t)
	f.run()
	f.post("/webhooks/lorawan?event=join", "hook-1", `{"deviceInfo":{"devEui":"A84041D2C5182F01"}}`)
	f.post("/webhooks/lorawan?event=join", "hook-1", `{"deviceInfo":{"devEui":"a84041d2c5182f02","deviceName":"a84041d2c5182f01"}}`)
	f.post("/webhooks/lorawan", "hook-1", `{"end_device_ids":{"device_id":"cellar","application_ids":{"application_id":"farm"}},"uplink_message":{"f_port":2,"f_cnt":1,"frm_payload":"AQ=="}}`)
	f.post("/webhooks/generic?deviceId=caf%C3%A9+9", "hook-1", `{"t":1}`)
	f.post("/webhooks/generic", "hook-1", `{"deviceId":"caf\u00e9 9","t":2}`)
	f.post("/webhooks/generic?deviceId=a8%3A40%3A41%3Ad2%3Ac5%3A18", "hook-1", `{"t":3}`)
	f.submit("shed/1", `{"reading":{"values":{"t":4}}}`)
	f.post("/webhooks/lorawan", "hook-1", `{"applicationID":"1","devEUI":"qEBB0sUYLwM=","rxInfo":[],"fCnt":1,"fPort":2,"data":"AQ=="}`)
	f.waitProcessed()
	for device, want := range map[string]string{
		"a84041d2c5182f01": "a84041d2c5182f01: join", "a84041d2c5182f03": "a84041d2c5182f03: fCnt 1, fPort 2, 1 byte", "a84041d2c5182f": "",
		"farm/cellar": "farm/cellar: fCnt 1, fPort 2, 1 byte", "café 9": "café 9: t 2|café 9: t 1",
		"a84041d2c518": "a8:40:41:d2:c5:18: t 3", "shed/1": "shed/1: t 4",
	} {
		var got []string
		relaytest.NoError(t, f.intake.Events(t.Context(), event.Filter{Device: device}, 0, func(e event.Event, _ uint64) bool {
			got = append(got, e.Outcome)
			return true
		}))
		if strings.Join(got, "|") != want {
			t.Errorf("events of %s = %q, want %q", device, got, want)
		}
	}
}

// FuzzEntry checks that every accepted entry can be parsed and described, with the same result
// each time.
func FuzzEntry(f *testing.F) {
	f.Add("/webhooks/lorawan", "event=up", "application/json", []byte(`{"deviceInfo":{"devEui":"a84041d2c5182f01"},"deduplicationId":"x","data":"AQ=="}`))
	f.Add("/webhooks/generic/x", "decoder_id=%zz", "", []byte(`[{"t":1},7]`))
	f.Add("/webhooks/lpwan", "device=1A&seqNumber=2&data=01", "", []byte(""))
	f.Add("/webhooks/lpwan", "", "application/x-www-form-urlencoded", []byte("device=1A&time=5&ack=true"))
	f.Add("/webhooks/lorawan", "", "application/xml", []byte("<DevEUI_uplink><DevEUI>A84041D2C5182F01</DevEUI></DevEUI_uplink>"))
	p := NewProcessor(nil, nil)
	f.Fuzz(func(t *testing.T, path, query, contentType string, body []byte) {
		item := intake.Item{Entry: intake.Entry{Path: path, Query: query, ContentType: contentType, Body: body, ReceivedAt: time.Unix(1_772_366_400, 0)}}
		content, keys, _ := p.Parse(&item)
		_, keysAgain, _ := p.Parse(&item)
		if !slices.Equal(keysAgain, keys) {
			t.Fatalf("keys of the second Parse = %v, want %v", keysAgain, keys)
		}
		if len(keys) > len(content.frames) {
			t.Fatalf("keys = %d for %d frames, want at most one each", len(keys), len(content.frames))
		}
		text := intaketest.Describe(p, &item.Entry)
		relaytest.Equal(t, "the second description", intaketest.Describe(p, &item.Entry), text)
		if len(content.frames) > 0 && text == "" {
			t.Fatalf("description of %d frames is empty", len(content.frames))
		}
		if clipped := intake.ClipReason(text); !utf8.ValidString(clipped) {
			t.Fatalf("clipped description = %q, want UTF-8", clipped)
		}
	})
}
