package uplink

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/ingest/intake/intaketest"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestEventsAreDescribed(t *testing.T) {
	received := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const of = `"deviceInfo":{"devEui":"a84041d2c5182f01"}`
	cases := []struct{ name, query, body, want string }{
		{"an uplink", "event=up", `{` + of + `,"fCnt":7,"fPort":2,"data":"AQI=","rxInfo":[{"gatewayId":"a","rssi":-90,"snr":-3.5},{"gatewayId":"b","rssi":-60,"snr":9}]}`,
			"uplink of a84041d2c5182f01: f_cnt 7, f_port 2, 2 bytes, gateways 2, rssi -60 dBm, snr 9 dB"},
		{"a status", "event=status", `{` + of + `,"margin":10,"batteryLevel":88.3}`, "status of a84041d2c5182f01: battery 88.3 %, margin 10 dB"},
		{"a join", "event=join", `{` + of + `}`, "join of a84041d2c5182f01"},
		{"an acknowledgement", "event=ack", `{` + of + `,"acknowledged":true}`, "ack of a84041d2c5182f01"},
		{"one that did not come", "event=ack", `{` + of + `}`, "nack of a84041d2c5182f01"},
		{"a location", "event=location", `{` + of + `,"location":{"latitude":51.5,"longitude":-0.125}}`, "location of a84041d2c5182f01: at 51.5, -0.125"},
		{"a log", "event=log", `{` + of + `,"level":"ERROR","code":"OTAA","description":"no"}`, "log of a84041d2c5182f01: ERROR OTAA: no"},
		{"ciphertext", "event=up", `{` + of + `,"fCnt":1,"fPort":2,"data":"AQ==","joinServerContext":{"sessionKeyId":"x"}}`, "uplink of a84041d2c5182f01: f_cnt 1, f_port 2, 1 bytes, encrypted"},
		{"a time that is not used", "event=up", `{` + of + `,"time":"noon","fCnt":1,"fPort":2}`, "uplink of a84041d2c5182f01: f_cnt 1, f_port 2"},
		{"a simulation", "", `{"end_device_ids":{"dev_eui":"A84041D2C5182F01"},"uplink_message":{"f_port":2,"f_cnt":3},"simulated":true}`, "uplink of a84041d2c5182f01: f_cnt 3, f_port 2, simulated"},
		{"an alert", "", `{"subject":"Cold","rule":"Freezer","deviceID":"5","reading":"9"}`, "alert of 5: Freezer: Cold: 9"},
		{"seven at once", "", `[{"id":"1","t":1},{"id":"2","t":1},{"id":"3","t":1},{"id":"4","t":1},{"id":"5","t":1},{"id":"6","t":1},{"id":"7","t":1}]`,
			"uplink of 1; uplink of 2; uplink of 3; uplink of 4; uplink of 5; and 2 more"},
		{"what cannot be read", "", `{"a":1}`, ""},
	}
	p := NewProcessor(nil, nil)
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			e := intake.Entry{Path: "/webhooks/lorawan", Query: tc.query, Body: []byte(tc.body), ReceivedAt: received}
			if got := intaketest.Describe(p, &e); got != tc.want {
				t.Errorf("%s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestTheOperatorFindsEventsByTheirBodyOrQuery(t *testing.T) {
	f := newFlow(t)
	f.run()
	f.post("/webhooks/lorawan?event=join", "hook-1", `{"deviceInfo":{"devEui":"a84041d2c5182f01"}}`)
	f.post("/webhooks/lorawan?event=status", "hook-1", `{"deviceInfo":{"devEui":"a84041d2c5182f01"},"batteryLevel":55,"margin":9}`)
	f.settled()
	for query, want := range map[string]string{`"BATTERYLEVEL":55`: "status of a84041d2c5182f01: battery 55 %, margin 9 dB", "event=join": "join of a84041d2c5182f01", "alert": ""} {
		var got []string
		relaytest.NoError(t, f.in.Events(t.Context(), event.Filter{Query: query}, 0, func(e event.Event, _ uint64) bool {
			got = append(got, e.Outcome)
			return true
		}))
		if strings.Join(got, "|") != want {
			t.Errorf("%s: %q, want %q", query, got, want)
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
	f.Fuzz(func(t *testing.T, path, query, kind string, body []byte) {
		it := intake.Item{Entry: intake.Entry{Path: path, Query: query, ContentType: kind, Body: body, ReceivedAt: time.Unix(1_772_366_400, 0)}}
		in, keys, _ := p.Parse(&it)
		_, again, _ := p.Parse(&it)
		relaytest.Equal(t, "the number of keys when asked again", len(again), len(keys))
		if len(keys) > len(in.frames) {
			t.Fatalf("%d keys for %d frames", len(keys), len(in.frames))
		}
		text := intaketest.Describe(p, &it.Entry)
		relaytest.Equal(t, "the description when asked again", intaketest.Describe(p, &it.Entry), text)
		if len(in.frames) > 0 && text == "" {
			t.Fatalf("%d frames have no description", len(in.frames))
		}
		if cut := intake.ClipReason(text); !utf8.ValidString(cut) {
			t.Fatalf("%q is no text", cut)
		}
	})
}
