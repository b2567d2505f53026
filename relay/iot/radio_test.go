package iot_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay/iot"
)

// Radio data is stored for each uplink, so that uplinks can be counted. Not every network posts
// counters or gateways.
func TestEachUplinkHasRadioData(t *testing.T) {
	g := newGateway(t)
	bare := g.frame("r1", values("temperature", 20.0))
	status := g.frame("r2", nil)
	status.Frame.Kind, status.Frame.Battery = decoders.Status, new(50.0)
	unmapped := g.frame("r3", values("unmapped", 1.0))
	join := g.frame("r4", nil)
	join.Frame.Kind = decoders.Join
	g.ingest(bare, status, unmapped, join)
	got := ""
	for _, u := range g.readings.radio {
		if u.Frame {
			got += "frame of " + u.Name + ", "
		} else {
			got += "no frame" + u.Name + ", "
		}
	}
	if got != "frame of probe, no frame, frame of probe, " {
		t.Errorf("got %s", got)
	}
}

func TestTheRadioDetailSelectsTheStoredFields(t *testing.T) {
	var rssi, snr, battery, margin = -97.5, 7.25, 81.0, 12.0
	full := iot.RadioData{
		Account: 1, Identifier: eui, FCnt: new(int64(7)), FPort: new(int64(2)), RSSI: &rssi, SNR: &snr, Gateways: new(int64(1)),
		Battery: &battery, Margin: &margin, Latitude: new(51.5), Longitude: new(-0.1), Frame: true, Name: "probe",
	}
	basic := full
	basic.FPort, basic.Gateways, basic.Margin, basic.Name = nil, nil, nil, ""
	for detail, want := range map[iot.RadioDetail][]iot.RadioData{"": {full}, iot.RadioFull: {full}, iot.RadioBasic: {basic}, iot.RadioOff: nil} {
		t.Run(string(detail), func(t *testing.T) {
			g := newGateway(t)
			g.options.Radio = detail
			g.start()
			a := g.frame("r1", values("temperature", 20.0))
			a.Frame.FCnt, a.Frame.HasFCnt, a.Frame.FPort, a.Frame.HasFPort = 7, true, 2, true
			a.Frame.Battery, a.Frame.Margin, a.Frame.Position = &battery, &margin, &decoders.Position{Latitude: 51.5, Longitude: -0.1}
			a.Frame.Gateways = []decoders.Gateway{{ID: "g", RSSI: &rssi, SNR: &snr}}
			g.mustStore(a)
			for i := range want {
				want[i].DeviceID, want[i].Time = g.device(1).ID, g.now
			}
			if diff := cmp.Diff(want, g.readings.radio); diff != "" || g.readings.written != 1 {
				t.Errorf("%d readings, want 1; radio data differs (-want +got):\n%s", g.readings.written, diff)
			}
		})
	}
}
