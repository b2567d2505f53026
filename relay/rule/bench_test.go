package rule_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/recordstest"
	"github.com/penstock/penstock/relay/rule"
)

// BenchmarkEvaluate evaluates batches of 5,000 frames of 10,000 devices by 1,000 rules. Ten rules
// evaluate each frame, and none fires.
func BenchmarkEvaluate(b *testing.B) {
	const devices, rules, batch = 10_000, 1000, 5000
	store := recordstest.Open(b)
	service, err := rule.New(rule.Deps{Store: store.Rules, Fleet: &iot.Service{}, Deliveries: outbox.Sender{Dispatcher: &fakeDispatcher{}}}, rule.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for n := range rules {
		r := rule.Rule{
			ID: fmt.Sprint("r", n), Name: "Rule", Enabled: true, On: rule.OnReading, Devices: rule.Devices{Name: fmt.Sprintf("Device *%02d", n%100)},
			When: fmt.Sprintf("values.temperature_1 > %d and uplink.rssi > -120", 30+n/100), Clear: "values.temperature_1 < 28",
			Actions: []rule.Action{{Action: rule.HTTPPost, Parameters: []string{"https://example.com/"}}},
		}
		if err := store.Rules.Create(b.Context(), 1, r); err != nil {
			b.Fatal(err)
		}
	}
	rssi, startedAt := -60.0, time.Now()
	allDevices := make([]iot.Device, devices)
	frames := make([]iot.StoredFrame, devices)
	for n := range frames {
		d := &allDevices[n]
		d.ID, d.Name = fmt.Sprint("d", n), fmt.Sprintf("Device %05d", n)
		frames[n] = iot.StoredFrame{
			RecordID: fmt.Sprint("rec", n), Device: d, Frame: &decoders.Frame{Kind: decoders.Uplink}, Time: startedAt, Heard: startedAt,
			Points: []iot.Point{{Key: "temperature_1", Value: 21, Time: startedAt}, {Key: "humidity_2", Value: 50, Time: startedAt}},
			Radio:  &iot.RadioData{RSSI: &rssi, SNR: &rssi, Frame: true},
		}
	}
	v := iot.Version{Records: 1, Rules: 1}
	if err := service.Evaluate(b.Context(), 1, v, frames); err != nil { // caches the rules of each device
		b.Fatal(err)
	}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		start := n % 2 * batch
		if err := service.Evaluate(b.Context(), 1, v, frames[start:start+batch]); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/frame")
}
