package frames

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// testEndlessCodec posts hundreds of frames for a codec with an endless loop, and then frames for other
// decoders. The codec is suspended, and the other frames are decoded.
func testEndlessCodec(t *testing.T, s *e2e.Site) {
	g := e2e.Start(t, s, e2e.Fixture(t, "inventory.yaml"))
	acme, globex := g.WithToken("acme-all-0123456"), g.WithToken("globex-all-0123456")
	const frames = 200
	const devEUI, globexEUI, acmeEUI = "70b3d57ed00e0001", "70b3d57ed00e0002", "70b3d57ed00e0003"
	frame := func(n int, devEUI string) string {
		return fmt.Sprintf(`{"deduplicationId":"loop-%s-%d","time":"2026-03-01T10:15:30Z","deviceInfo":{"devEui":%q,"deviceName":"Probe"},"fCnt":%d,"fPort":2,"data":"A2cBEA=="}`, devEUI, n, devEUI, n)
	}
	loop := acme.CreateDecoder("javascript", "function decodeUplink(input) { while (true) {} }")
	acme.Post("/iot/decoders/"+loop+"/sensors", `{"sensor_type_id":"temperature","key":"temperature"}`).Mentions(t, 200, "temperature")
	for n := range frames {
		e2e.PostWebhook(t, acme, "/webhooks/lorawan?event=up&decoder_id="+loop, frame(n, devEUI))
	}
	e2e.PostWebhook(t, globex, "/webhooks/lorawan?event=up&decoder_id=lpp", frame(0, globexEUI))
	e2e.PostWebhook(t, acme, "/webhooks/lorawan?event=up&decoder_id=lpp", frame(0, acmeEUI))
	for identifier, c := range map[string]e2e.Client{globexEUI: globex, acmeEUI: acme} {
		relaytest.Eventually(t, "the reading of "+identifier, func() (any, bool) {
			resp := c.Get("/iot/devices/identifier/" + identifier)
			if resp.Status != 200 {
				return resp.Body, false
			}
			got := e2e.FormatReadings(c.Readings(c.AwaitDevice(identifier), ""))
			return got, got == "temperature_3=27.2@2026-03-01 10:15:30"
		})
	}
	g.AwaitProcessed()
	relaytest.Eventually(t, "every frame is quarantined", func() (any, bool) {
		events := g.Events("state=quarantined&limit=1000&device=" + devEUI)
		return len(events), len(events) == frames
	})
	events := g.Events("state=quarantined&limit=1000&device=" + devEUI)
	if !strings.Contains(events[0].Reason, "is suspended until ") || !strings.Contains(events[0].Reason, "exceeded its limits ") {
		t.Errorf("reason of the newest event = %q, want the end of the suspension and the exceeded limits", events[0].Reason)
	}
	var calls int // calls of the codec that took the whole time limit
	for _, event := range events {
		if strings.Contains(event.Reason, "did not end within") {
			calls++
		}
	}
	if calls == 0 || calls > frames/4 {
		t.Errorf("the codec was called for %d of %d frames, want 1 to a quarter, because the codec is suspended", calls, frames)
	}
	g.AwaitMetric("penstock_decoders_suspended", 1)
	g.AwaitMetric("penstock_decoder_suspensions_total", 1)
	relaytest.Eventually(t, "the log reports that a decoder is suspended", func() (any, bool) {
		return g.Logs.Tail(10), strings.Contains(g.Logs.String(), "decoder suspended")
	})

	t.Run("a corrected source runs at once, and a replay stores the frames", func(t *testing.T) {
		source := "function decodeUplink(input) { return {data: {temperature: input.bytes[3] / 10}} }"
		acme.Do("PATCH", "/iot/decoders/"+loop, string(relaytest.Must(json.Marshal(map[string]string{"source": source}))(t))).Mentions(t, 200, loop)
		g.Admin().Post("/admin/events/replay", `{"state": "quarantined", "device": "`+devEUI+`"}`).Mentions(t, 200, fmt.Sprintf(`"count":%d,`, frames))
		relaytest.Equal(t, "readings", e2e.FormatReadings(acme.Readings(acme.AwaitDevice(devEUI), "")), "temperature=1.6@2026-03-01 10:15:30")
		g.AwaitMetric("penstock_decoders_suspended", 0)
	})
}

// testCodecClock checks the time that a codec reads, for frames, posted readings and trials.
func testCodecClock(t *testing.T, s *e2e.Site) {
	g := e2e.Start(t, s, e2e.Fixture(t, "inventory.yaml"))
	acme := g.WithToken("acme-all-0123456")
	clock := acme.CreateDecoder("javascript", "function decodeUplink(input) { return {data: {state: input.recvTime.toISOString() + ' ' + new Date().toISOString()}} }")
	acme.Post("/iot/decoders/"+clock+"/sensors", `{"sensor_type_id":"state","key":"state"}`).Mentions(t, 200, "state")
	e2e.PostWebhook(t, acme, "/webhooks/lorawan?event=up&decoder_id="+clock, e2e.Fixture(t, "chirpstack/up.json", "70b3d57ed0001234", fridge))
	g.AwaitProcessed()
	id := acme.AwaitDevice(fridge)
	relaytest.Equal(t, "readings of the frame", e2e.FormatReadings(acme.Readings(id, "")), "state=2026-03-01T10:15:30.250Z 2026-03-01T10:15:30.250Z@2026-03-01 10:15:30")
	const frameTime, clocks = "2026-03-02T08:00:00Z", "2026-03-02T08:00:00.000Z 2026-03-02T08:00:00.000Z"
	acme.Post("/iot/devices/"+id+"/readings", `{"reading":[{"hex":"01","time":"`+frameTime+`"}]}`).Mentions(t, 200, clocks)
	g.Admin().Post("/admin/decoders/try", `{"device_id":"`+id+`","frames":[{"hex":"01","time":"`+frameTime+`"}]}`).Mentions(t, 200, clocks)
	month := time.Now().UTC().Format("2006-01") // the month before the request; the condition also allows the month after the request
	if resp := g.Admin().Post("/admin/decoders/try", `{"device_id":"`+id+`","frames":[{"hex":"01"}]}`); !strings.Contains(resp.Body, month) && !strings.Contains(resp.Body, time.Now().UTC().Format("2006-01")) {
		t.Errorf("a frame without a time: answer = %s, want the present month", resp.Body)
	}
}

// testLongSource creates a codec as long as the longest published codec, and a codec of the maximum
// length. A longer source is refused.
func testLongSource(t *testing.T, s *e2e.Site) {
	g := e2e.Start(t, s, e2e.Fixture(t, "inventory.yaml"))
	acme := g.WithToken("acme-all-0123456")
	const head, tail = "function name(k) {\n  switch (k) {\n", "  }\n}\nfunction decodeUplink(input) { return {data: {temperature: name(input.bytes[0])}} }\n"
	source := func(size int) string {
		var b strings.Builder
		b.WriteString(head)
		for n := 0; b.Len() < size-len(tail)-60; n++ {
			fmt.Fprintf(&b, "    case %d: return %d; // \"field %d\"\n", n, n, n)
		}
		b.WriteString(strings.Repeat(" ", size-len(tail)-b.Len()) + tail)
		return b.String()
	}
	long := acme.CreateDecoder("javascript", source(331<<10))
	acme.CreateDecoder("javascript", source(1<<20))
	body := relaytest.Must(json.Marshal(map[string]string{
		"name": "Long", "description": "a table", "type": "lorawan", "codec": "javascript", "source": source(1<<20) + " ",
	}))(t)
	acme.Post("/iot/decoders", string(body)).Mentions(t, 422, "the source is longer than 1048576 bytes")
	acme.Post("/iot/decoders/"+long+"/sensors", `{"sensor_type_id":"temperature","key":"temperature"}`).Mentions(t, 200, "temperature")
	e2e.PostWebhook(t, acme, "/webhooks/lorawan?event=up&decoder_id="+long, e2e.Fixture(t, "chirpstack/up.json", "70b3d57ed0001234", fridge))
	g.AwaitProcessed()
	if got := e2e.FormatReadings(acme.Readings(acme.AwaitDevice(fridge), "")); !strings.HasPrefix(got, "temperature=3@") {
		t.Errorf("readings = %q, want temperature 3", got)
		for _, e := range g.Events("state=quarantined") {
			t.Errorf("event %s is quarantined: %s", e.ID, e.Reason)
		}
	}
}
