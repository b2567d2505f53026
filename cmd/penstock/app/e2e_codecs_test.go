package app

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// testEndlessCodec has one account's codec never end, on a thousand frames that
// came before another account's.
func testEndlessCodec(t *testing.T, s *site) {
	g := start(t, s, fixture(t, "inventory.yaml"))
	acme, globex := g.as("acme-all-0123456"), g.as("globex-all-0123456")
	const devEUI, other, neighbour = "70b3d57ed00e0001", "70b3d57ed00e0002", "70b3d57ed00e0003"
	frame := func(n int, devEUI string) string {
		return fmt.Sprintf(`{"deduplicationId":"loop-%s-%d","time":"2026-03-01T10:15:30Z","deviceInfo":{"devEui":%q,"deviceName":"Probe"},"fCnt":%d,"fPort":2,"data":"A2cBEA=="}`, devEUI, n, devEUI, n)
	}
	loop := acme.decoder("javascript", "function decodeUplink(input) { while (true) {} }")
	acme.post("/iot/decoders/"+loop+"/sensors", `{"sensor_type_id":"temperature","key":"temperature"}`).mentions(t, 200, "temperature")
	for n := range 1000 {
		hook(t, acme, "/webhooks/lorawan?event=up&decoder_id="+loop, frame(n, devEUI))
	}
	hook(t, globex, "/webhooks/lorawan?event=up&decoder_id=lpp", frame(0, other))
	hook(t, acme, "/webhooks/lorawan?event=up&decoder_id=lpp", frame(0, neighbour))
	began := time.Now()
	for of, c := range map[string]caller{other: globex, neighbour: acme} {
		eventually(t, "the reading of "+of, func() (any, bool) {
			a := c.get("/iot/devices/identifier/" + of)
			if a.status != 200 {
				return a.body, false
			}
			got := short(c.readings(c.device(of), ""))
			return got, got == "temperature_3=27.2@2026-03-01 10:15:30"
		})
	}
	// A thousand calls of 100 ms would have taken two minutes before them.
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("frames of others were stored after %v", took)
	}
	g.settled()
	eventually(t, "every frame has ended", func() (any, bool) {
		set := g.events("state=quarantined&limit=1000&device=" + devEUI)
		return len(set), len(set) == 1000
	})
	set := g.events("state=quarantined&limit=1000&device=" + devEUI)
	if !strings.Contains(set[0].Reason, "is suspended until ") || !strings.Contains(set[0].Reason, "ran out of time ") {
		t.Errorf("the newest event says %q", set[0].Reason)
	}
	if last := set[len(set)-1].Reason; !strings.Contains(last, "did not end within") {
		t.Errorf("the oldest event says %q", last)
	}
	g.awaitMetric("penstock_decoders_suspended", 1)
	g.awaitMetric("penstock_decoder_suspensions_total", 1)
	if !strings.Contains(g.logs.String(), "decoder suspended") {
		t.Error("the log does not say that a decoder is suspended")
	}

	t.Run("a mended source runs at once, and a replay stores the frames", func(t *testing.T) {
		source := "function decodeUplink(input) { return {data: {temperature: input.bytes[3] / 10}} }"
		acme.do("PATCH", "/iot/decoders/"+loop, string(must2(json.Marshal(map[string]string{"source": source})))).mentions(t, 200, loop)
		g.admin().post("/admin/events/replay", `{"state": "quarantined", "device": "`+devEUI+`"}`).is(t, 200, `{"count": 1000}`)
		same(t, "readings", short(acme.readings(acme.device(devEUI), "")), "temperature=1.6@2026-03-01 10:15:30")
		g.awaitMetric("penstock_decoders_suspended", 0)
	})
}

// testCodecClock has a codec tell its clock, wherever codecs run.
func testCodecClock(t *testing.T, s *site) {
	g := start(t, s, fixture(t, "inventory.yaml"))
	acme := g.as("acme-all-0123456")
	clock := acme.decoder("javascript", "function decodeUplink(input) { return {data: {state: input.recvTime.toISOString() + ' ' + new Date().toISOString()}} }")
	acme.post("/iot/decoders/"+clock+"/sensors", `{"sensor_type_id":"state","key":"state"}`).mentions(t, 200, "state")
	hook(t, acme, "/webhooks/lorawan?event=up&decoder_id="+clock, fixture(t, "chirpstack/up.json", "70b3d57ed0001234", fridge))
	g.settled()
	id := acme.device(fridge)
	const at, told = "2026-03-02T08:00:00Z", "2026-03-02T08:00:00.000Z 2026-03-02T08:00:00.000Z"
	acme.post("/iot/devices/"+id+"/readings", `{"reading":[{"hex":"01","time":"`+at+`"}]}`).mentions(t, 200, told)
	g.admin().post("/admin/decoders/try", `{"device_id":"`+id+`","frames":[{"hex":"01","time":"`+at+`"}]}`).mentions(t, 200, told)
	if a := g.admin().post("/admin/decoders/try", `{"device_id":"`+id+`","frames":[{"hex":"01"}]}`); strings.Contains(a.body, "1970") || !strings.Contains(a.body, time.Now().UTC().Format("2006-01")) {
		t.Errorf("a frame without a time: %s", a.body)
	}
}

// testLongSource declares codecs as long as the longest that are published, and as
// long as may be.
func testLongSource(t *testing.T, s *site) {
	g := start(t, s, fixture(t, "inventory.yaml"))
	acme := g.as("acme-all-0123456")
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
	create := func(source string) answer {
		return acme.post("/iot/decoders", string(must2(json.Marshal(map[string]string{
			"name": "Long", "description": "a table", "type": "lorawan", "codec": "javascript", "source": source,
		}))))
	}
	var made struct{ Data struct{ ID string } }
	create(source(331<<10)).into(t, &made)
	create(source(1<<20)).mentions(t, 201, `"Long"`)
	create(source(1<<20)+" ").mentions(t, 422, "the source is longer than 1048576 bytes")
	acme.post("/iot/decoders/"+made.Data.ID+"/sensors", `{"sensor_type_id":"temperature","key":"temperature"}`).mentions(t, 200, "temperature")
	hook(t, acme, "/webhooks/lorawan?event=up&decoder_id="+made.Data.ID, fixture(t, "chirpstack/up.json", "70b3d57ed0001234", fridge))
	g.settled()
	if got := short(acme.readings(acme.device(fridge), "")); !strings.HasPrefix(got, "temperature=3@") {
		t.Errorf("%s; events %+v", got, g.events("state=quarantined"))
	}
}
