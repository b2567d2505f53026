package iottest

import (
	"testing"
	"time"

	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

// radioOfLast checks that signal, battery and position each come from the newest uplink of the device
// that has them.
func radioOfLast(t *testing.T, s iot.ReadingStore) {
	f := func(v float64) *float64 { return &v }
	atSecond := func(seconds int) time.Time { return start().Add(time.Duration(seconds) * time.Second) }
	radio := []iot.RadioData{
		{Account: acme, DeviceID: "radio", Time: atSecond(0), RSSI: f(-90), SNR: f(7), Battery: f(80), Latitude: f(51.5), Longitude: f(-0.1), Frame: true},
		{Account: acme, DeviceID: "radio", Time: atSecond(60), RSSI: f(-101), SNR: f(-3), Gateways: new(int64(2)), Frame: true},
		{Account: acme, DeviceID: "radio", Time: atSecond(30), Battery: f(79)},
		{Account: acme, DeviceID: "quiet radio", Time: atSecond(-3600), RSSI: f(-70)},
		{Account: acme, DeviceID: "port only", Time: atSecond(0), FPort: new(int64(2)), FCnt: new(int64(1)), Frame: true},
		{Account: globex, DeviceID: "theirs", Time: atSecond(0), RSSI: f(-50)},
	}
	for i := range iot.RadioFrames + 5 {
		radio = append(radio, iot.RadioData{Account: acme, DeviceID: "chatty", Time: atSecond(i), RSSI: f(float64(-i))})
	}
	writeBatch(t, s, iot.Readings{Radio: radio})
	got := relaytest.Must(s.Radio(t.Context(), acme, []string{"radio", "quiet radio", "theirs", "chatty", "silent"}, atSecond(-60)))(t)
	want := map[string]iot.RadioData{
		"radio":  {Account: acme, DeviceID: "radio", Time: atSecond(60), RSSI: f(-101), SNR: f(-3), Gateways: new(int64(2)), Battery: f(79), Latitude: f(51.5), Longitude: f(-0.1)},
		"chatty": {Account: acme, DeviceID: "chatty", Time: atSecond(iot.RadioFrames + 4), RSSI: f(-iot.RadioFrames - 4)},
	}
	relaytest.Equal(t, "the radio data by device", got, want)
	if got, err := s.Radio(t.Context(), acme, nil, atSecond(0)); err != nil || len(got) > 0 {
		t.Errorf("radio data of no devices: %v, %v; want none", got, err)
	}
}
