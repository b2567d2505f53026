package frames

import (
	"fmt"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/ingest/admin"
	"github.com/penstock/penstock/relay/relaytest"
)

// numberedJSON returns n numbered pieces of JSON, separated by commas.
func numberedJSON(n int, format string) string {
	pieces := make([]string, n)
	for i := range pieces {
		pieces[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(pieces, ",")
}

// testPosts checks posts of many readings: every reading is stored, or the post is refused or
// quarantined.
func testPosts(t *testing.T, s *e2e.Site) {
	g := e2e.Start(t, s, e2e.Fixture(t, "inventory.yaml"), "PENSTOCK_INBOUND_ANSWER_WAIT=1m") // the answers have all readings
	acme := g.WithToken("acme-all-0123456")
	decoder := acme.CreateDecoder("expr", "temperature = bytes[0] * 1.0")
	acme.Post("/iot/decoders/"+decoder+"/sensors", `{"sensor_type_id": "temperature", "key": "temperature"}`).Mentions(t, 200, "temperature")
	barn := acme.Create("/iot/devices/other", `{"location_id": "yard", "decoder_id": "`+decoder+`", "identifier": "barn", "name": "Barn"}`)

	// values returns a device's readings, oldest first.
	values := func(device string) string {
		var texts []string
		for _, r := range acme.Readings(device, "") {
			texts = append([]string{fmt.Sprint(*r.Value)}, texts...)
		}
		return strings.Join(texts, " ")
	}
	numbers := func(start, end int) string {
		var texts []string
		for i := start; i < end; i++ {
			texts = append(texts, fmt.Sprint(i))
		}
		return strings.Join(texts, " ")
	}
	t.Run("readings without a time are stored in their order, and a replay adds no readings", func(t *testing.T) {
		var list struct{ Data []e2e.Reading }
		acme.Post("/iot/devices/"+barn+"/readings", `{"reading": [0, 2], "readings": [`+strings.ReplaceAll(numberedJSON(99, "[%d]"), "[0]", "[100]")+`]}`).Decode(t, &list)
		if len(list.Data) != 100 {
			t.Errorf("updated sensors = %d, want 100", len(list.Data))
		}
		var webhookAnswer struct{ Data []e2e.Reading }
		acme.Post("/webhooks/generic/pen?decoder_id=sent", `[`+numberedJSON(50, `{"temperature": %d}`)+`]`).Decode(t, &webhookAnswer)
		pen := acme.AwaitDevice("pen")
		want := strings.Replace(numbers(0, 99), "0 1 ", "0 100 1 ", 1)
		for _, round := range []string{"once", "after a replay"} {
			relaytest.Equal(t, "added "+round, values(barn), want)
			relaytest.Equal(t, "posted "+round, values(pen), numbers(0, 50))
			relaytest.Equal(t, "latest "+round, fmt.Sprint(*acme.LatestReadings(pen)[0].Value), "49")
			g.Admin().Post("/admin/events/replay", `{"kind": "uplink"}`).Mentions(t, 200, `"count":2,`)
		}
	})
	t.Run("a measurement that a post names twice at one time is stored twice", func(t *testing.T) {
		acme.Post("/webhooks/generic/sty?decoder_id=sent", `[{"n": "temperature", "v": 1}, {"n": "temperature", "v": 2}]`).Mentions(t, 200, "temperature")
		acme.Post("/webhooks/generic/sty", `[{"time": "2026-03-01T10:00:00Z", "temperature": 3}, {"time": "2026-03-01T10:00:00Z", "temperature": 4}]`).Mentions(t, 200, "temperature")
		relaytest.Equal(t, "readings", values(acme.AwaitDevice("sty")), "3 4 1 2")
	})
	t.Run("a post of too many frames is refused as a whole", func(t *testing.T) {
		const frames = 1000
		acme.Post("/webhooks/generic/herd?decoder_id=sent", `[`+numberedJSON(frames+1, `{"temperature": %d}`)+`]`).
			Expect(t, 413, `{"message": "A post may hold at most 1000 frames."}`)
		acme.Post("/webhooks/sensor-vendor", `{"sensorMessages": [`+numberedJSON(frames+1, `{"sensorID": "herd", "dataType": "T", "dataValue": "%d"}`)+`]}`).Mentions(t, 413, "at most 1000 frames")
		acme.Get("/iot/devices/identifier/herd").Mentions(t, 422)
		if got := g.Events("q=herd"); len(got) != 0 {
			t.Errorf("events of refused posts = %d, want 0", len(got))
		}
		var list struct{ Data []e2e.Reading }
		acme.Post("/webhooks/generic/herd?decoder_id=sent", `[`+numberedJSON(frames, `{"temperature": %d}`)+`]`).Decode(t, &list)
		if stored := acme.Readings(acme.AwaitDevice("herd"), "limit=1000"); len(list.Data) != frames || len(stored) != frames {
			t.Errorf("updated sensors = %d, stored readings = %d, want %d", len(list.Data), len(stored), frames)
		}
	})
	t.Run("a frame with too many values is quarantined, and its readings up to the limit are stored", func(t *testing.T) {
		for n, state := range map[int]string{9_999: "done", 10_000: "quarantined"} {
			device := fmt.Sprint("flock-", n)
			acme.Post("/webhooks/generic/"+device+"?decoder_id=sent", `{"door": "open", "filler": [`+numberedJSON(n, "%d")+`]}`).Mentions(t, 200, `"text":"open"`)
			g.AwaitProcessed()
			events := g.Events("q=" + device)
			if len(events) != 1 {
				t.Fatalf("events of a frame with %[2]d more values = %[1]d, want 1", len(events), n)
			}
			relaytest.Equal(t, "the state of the event of "+device, events[0].State, state)
			relaytest.Equal(t, "whether the reason is the number of readings", strings.Contains(events[0].Reason, "10000 readings"), state == "quarantined")
			relaytest.Equal(t, "readings", fmt.Sprint(len(acme.Readings(acme.AwaitDevice(device), ""))), "1")
		}
	})
	t.Run("the query names the device, unless the path does", func(t *testing.T) {
		body := `{"deviceId": "wrong", "time": "2026-03-01T10:00:00Z", "temperature": 5}`
		acme.Post("/webhooks/generic?deviceId=coop%201&decoder_id=sent", body).Mentions(t, 200, `"value":5`)
		acme.Post("/webhooks/generic?deviceId=coop-2&decoder_id=sent", `{"time": "2026-03-01T10:00:00Z", "temperature": 6}`).Mentions(t, 200, `"value":6`)
		acme.Post("/webhooks/generic/coop-3?deviceId=wrong&decoder_id=sent", body).Mentions(t, 200, `"value":5`)
		acme.Post("/webhooks/generic?deviceId=coop-4&decoder_id=sent", `[{"bn": "wrong/", "n": "temperature", "v": 7}]`).Mentions(t, 200, `"value":7`)
		for _, name := range []string{"coop%201", "coop-2", "coop-3", "coop-4"} {
			acme.AwaitDevice(name)
		}
		acme.Get("/iot/devices/identifier/wrong").Mentions(t, 422)
	})
	t.Run("a reading that changes between a number and a text has its last value", func(t *testing.T) {
		const timestamp = "2026-03-01T10:00:00Z"
		post := func(value string) {
			acme.Post("/webhooks/generic/gate?decoder_id=sent", `{"time": "`+timestamp+`", "door": `+value+`}`).Mentions(t, 200, `"key":"door"`)
		}
		post("1")
		id := acme.AwaitDevice("gate")
		for _, step := range []struct{ value, reading, aggregate string }{
			{`"ajar"`, "door=ajar@2026-03-01 10:00:00", `{"data": []}`},
			{`2`, "door=2@2026-03-01 10:00:00", ""},
			{`"open"`, "door=open@2026-03-01 10:00:00", `{"data": []}`},
		} {
			post(step.value)
			relaytest.Equal(t, "readings", e2e.FormatReadings(acme.Readings(id, "")), step.reading)
			relaytest.Equal(t, "latest", e2e.FormatReadings(acme.LatestReadings(id)), step.reading)
			if step.aggregate != "" {
				acme.Get("/iot/devices/"+id+"/readings/aggregate?type=ave&granularity=day").Expect(t, 200, step.aggregate)
			}
			var dryRun admin.DryRun
			g.Admin().Post("/admin/events/replay", `{"ids": ["`+g.Events("q=gate")[0].ID+`"], "dry_run": true}`).Decode(t, &dryRun)
			relaytest.Equal(t, "the number of readings that a dry run changes", dryRun.Readings.Changed, 0)
			relaytest.Equal(t, "the number of readings that a dry run does not change", dryRun.Readings.Unchanged, 1)
		}
	})
	t.Run("frames after a reset of the counter are new, and a repetition names the first event", func(t *testing.T) {
		const eui = "70b3d57ed00f00aa"
		// up returns a frame of an ABP device. Its session never changes.
		up := func(minute, count int) string {
			frameTime := fmt.Sprintf("2026-03-01T10:%02d:00Z", minute)
			return fmt.Sprintf(`{"end_device_ids": {"device_id": "abp", "application_ids": {"application_id": "farm"}, "dev_eui": %q}, "received_at": %q,
				"uplink_message": {"session_key_id": "AYfgeq==", "f_port": 2, "f_cnt": %d, "frm_payload": "A2cBEA==", "received_at": %q}}`, eui, frameTime, count, frameTime)
		}
		const path = "/webhooks/community?decoder_id=lpp"
		for minute, count := range []int{0, 1, 0, 1} {
			e2e.PostWebhook(t, acme, path, up(10*minute, count))
			g.AwaitProcessed()
		}
		e2e.PostWebhook(t, acme, path, up(30, 1))
		e2e.PostWebhook(t, acme, path, strings.Replace(up(30, 1), "10:30:00Z", "10:30:09Z", 2)) // the device repeats the frame
		id := acme.AwaitDevice(eui)
		relaytest.Equal(t, "readings", e2e.FormatReadings(acme.Readings(id, "")), "temperature_3=27.2@2026-03-01 10:30:00 temperature_3=27.2@2026-03-01 10:20:00 "+
			"temperature_3=27.2@2026-03-01 10:10:00 temperature_3=27.2@2026-03-01 10:00:00")
		events := g.Events("q=" + eui)
		if len(events) != 6 {
			t.Fatalf("number of events = %d, want 6", len(events))
		}
		for i, e := range events { // newest first
			isRepetition := strings.HasPrefix(e.Outcome, "repeats "+events[2].ID+", dropped; "+eui+": ")
			relaytest.Equal(t, "the state of the event "+e.ID, e.State, "done")
			relaytest.Equal(t, "the reason of the event "+e.ID, e.Reason, "")
			relaytest.Equal(t, "whether the event "+e.ID+" repeats the third", isRepetition, i < 2)
		}
		if got := g.Events("state=done&q=repeats"); len(got) != 2 {
			t.Errorf("events that are repetitions = %d, want 2", len(got))
		}
	})
}
