package uplink

import (
	"fmt"
	"testing"

	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/relaytest"
)

// Several batches are processed at the same time. An acknowledgement directly after the first
// frame of a device finds the device, and of two posts of one frame the first is stored.
func TestAnAcknowledgementFindsTheDeviceOfTheFrameBefore(t *testing.T) {
	const devices = 150
	f := newFlow(t)
	up := func(i int, value float64) string {
		return fmt.Sprintf(`{"deduplicationId":"f%d","time":"2026-03-01T12:00:0%.0fZ","deviceInfo":{"devEui":"a84041d2c518%04x"},"fCnt":1,"fPort":2,"data":"AQ==","object":{"temperature":%g}}`, i, value, i, value)
	}
	ack := func(i int) string {
		return fmt.Sprintf(`{"deduplicationId":"a%d","deviceInfo":{"devEui":"a84041d2c518%04x"},"queueItemId":"q","acknowledged":true}`, i, i)
	}
	for i := range devices {
		for _, e := range []intake.Entry{
			{Query: "event=up&decoder_id=d1", Body: []byte(up(i, 1))},
			{Query: "event=ack", Body: []byte(ack(i))},
			{Query: "event=up&decoder_id=d1", Body: []byte(up(i, 2))},
		} {
			e.Account, e.Source, e.Path = 1, "chirpstack-v4", "/webhooks/lorawan"
			_, err := f.in.Accept(t.Context(), &e)
			relaytest.NoError(t, err)
		}
		if i == 0 {
			f.run()
		}
	}
	f.settled()
	for _, e := range f.events(event.Quarantined) {
		t.Errorf("%s: %s", e.ID, e.Reason)
	}
	seen := make(map[string]bool)
	for _, p := range f.readings.Points() {
		relaytest.Equal(t, "the value of "+p.Identifier, p.Value, 1)
		if seen[p.Identifier] {
			t.Errorf("%s was stored twice", p.Identifier)
		}
		seen[p.Identifier] = true
	}
	if len(seen) != devices {
		t.Errorf("%d devices have readings", len(seen))
	}
}
