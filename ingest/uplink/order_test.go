package uplink

import (
	"fmt"
	"testing"

	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/relaytest"
)

// Several batches are processed concurrently. An acknowledgement directly after the first frame of a
// device must find the device, and the first of two posts of a frame is stored.
func TestAnAcknowledgementFindsTheDeviceOfThePreviousFrame(t *testing.T) {
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
			_, err := f.intake.Accept(t.Context(), &e)
			relaytest.NoError(t, err)
		}
		if i == 0 {
			f.run()
		}
	}
	f.waitProcessed()
	for _, e := range f.events(event.Quarantined) {
		t.Errorf("%s is quarantined: %s", e.ID, e.Reason)
	}
	isStored := make(map[string]bool)
	for _, p := range f.readings.Points() {
		relaytest.Equal(t, "the value of "+p.Identifier, p.Value, 1)
		if isStored[p.Identifier] {
			t.Errorf("%s was stored twice", p.Identifier)
		}
		isStored[p.Identifier] = true
	}
	if len(isStored) != devices {
		t.Errorf("devices with readings = %d, want %d", len(isStored), devices)
	}
}
