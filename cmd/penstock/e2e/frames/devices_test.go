package frames

import (
	"fmt"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// formatMeasured returns readings as "name value unit", separated by commas, in their order.
func formatMeasured(list []e2e.Reading) string {
	texts := make([]string, len(list))
	for i, r := range list {
		texts[i] = r.Name + " " + r.Text + r.MetricUnits
		if r.Value != nil {
			texts[i] = fmt.Sprint(r.Name, " ", *r.Value, r.MetricUnits)
		}
	}
	return strings.Join(texts, ", ")
}

func testDevices(t *testing.T, s *e2e.Site) {
	g := e2e.Start(t, s, e2e.Fixture(t, "inventory.yaml"))
	acme, globex := g.WithToken("acme-all-0123456"), g.WithToken("globex-all-0123456")
	const timestamp = "2026-03-01 10:15:30"
	up := func(devEUI string) string { return e2e.Fixture(t, "chirpstack/up.json", "70b3d57ed0001234", devEUI) }
	lorawan := func(identifier string) string {
		return `{"location_id": "yard", "decoder_id": "lpp", "identifier": "` + identifier + `", "name": "By hand"}`
	}
	t.Run("a created device receives its frames in every notation of its EUI", func(t *testing.T) {
		id := acme.Create("/iot/devices/lorawan", lorawan("70:B3:D5:7E:D1:00:00:01"))
		e2e.PostWebhook(t, acme, "/webhooks/lorawan?event=up", up("70b3d57ed1000001"))
		relaytest.Equal(t, "latest", e2e.FormatReadings(acme.LatestReadings(id)), "relative_humidity_4=60.5@"+timestamp+" temperature_3=27.2@"+timestamp)
		acme.Get("/iot/devices/identifier/70B3D57ED1000001").Mentions(t, 200, id, `"name":"By hand"`, `"location_id":"yard"`)
	})
	t.Run("a device belongs to one account until it is deleted", func(t *testing.T) {
		id := acme.Create("/iot/devices/lorawan", lorawan("70b3d57ed1000002"))
		deviceOfGlobex := strings.Replace(lorawan("70-b3-d5-7e-d1-00-00-02"), "yard", "shop", 1)
		g.Admin().Put("/admin/inventory", `{"accounts": [{"name": "globex", "locations": [{"id": "shop", "name": "Shop"}]}]}`).Mentions(t, 200)
		globex.Post("/iot/devices/lorawan", deviceOfGlobex).Expect(t, 422, `{"message": "Device has already been claimed."}`)
		globex.Do("DELETE", "/iot/devices/"+id, "").Expect(t, 422, `{"message": "Invalid Device."}`)
		acme.Do("DELETE", "/iot/devices/"+id, "").Expect(t, 204, "")
		globex.Create("/iot/devices/lorawan", deviceOfGlobex)
		acme.Post("/iot/devices/lorawan", lorawan("70b3d57ed1000002")).Expect(t, 422, `{"message": "Device has already been claimed."}`)
	})
	t.Run("a new type of a key takes effect with the next frame, and stored readings are unchanged", func(t *testing.T) {
		decoder := acme.CreateDecoder("json", "")
		mapKey := func(kind string) {
			t.Helper()
			acme.Post("/iot/decoders/"+decoder+"/sensors", `{"sensor_type_id": "`+kind+`", "key": "v"}`).Mentions(t, 200, kind)
		}
		mapKey("temperature")
		post := func(minute int, value string) {
			t.Helper()
			acme.Post("/webhooks/generic/retyped?decoder_id="+decoder, fmt.Sprintf(`{"time": "2026-03-01T10:0%d:00Z", "v": %s}`, minute, value)).Mentions(t, 200, `"key":"v"`)
		}
		post(1, "20")
		id := acme.AwaitDevice("retyped")
		mapKey("humidity")
		relaytest.Equal(t, "latest before the frame", formatMeasured(acme.LatestReadings(id)), "Temperature 20°C")
		post(2, "60")
		relaytest.Equal(t, "latest", formatMeasured(acme.LatestReadings(id)), "Humidity 60%")
		relaytest.Equal(t, "readings", formatMeasured(acme.Readings(id, "")), "Humidity 60%, Temperature 20°C")
		acme.Get("/iot/devices/"+id+"/sensors").Mentions(t, 200, `"sensor_type_id":"humidity"`)
	})
	t.Run("a key with values of different kinds has one complete series", func(t *testing.T) {
		var want []string
		for minute, v := range []struct{ sent, rendered string }{
			{"21.5", "21.5"}, {`"ajar"`, "ajar"}, {"true", "1"}, {`"7"`, "7"}, {"-3", "-3"}, {"false", "0"}, {`""`, ""},
		} {
			body := fmt.Sprintf(`{"time": "2026-03-01T11:0%d:00Z", "door": %s}`, minute, v.sent)
			acme.Post("/webhooks/generic/fickle?decoder_id=sent", body).Mentions(t, 200, `"key":"door"`)
			want = append([]string{fmt.Sprintf("door=%s@2026-03-01 11:0%d:00", v.rendered, minute)}, want...)
		}
		id := acme.AwaitDevice("fickle")
		relaytest.Equal(t, "readings", e2e.FormatReadings(acme.Readings(id, "")), strings.Join(want, " "))
		relaytest.Equal(t, "latest", e2e.FormatReadings(acme.LatestReadings(id)), want[0])
	})
	t.Run("a sensor that was deleted from its decoder gets no new readings and keeps its old readings", func(t *testing.T) {
		decoder := acme.CreateDecoder("json", "")
		for _, key := range []string{"a", "b"} {
			acme.Post("/iot/decoders/"+decoder+"/sensors", `{"sensor_type_id": "state", "key": "`+key+`"}`).Mentions(t, 200)
		}
		acme.Post("/webhooks/generic/pruned?decoder_id="+decoder, `{"time": "2026-03-01T12:00:00Z", "a": 1, "b": 1}`).Mentions(t, 200)
		acme.Do("DELETE", "/iot/decoders/"+decoder+"/sensors/a", "").Expect(t, 200, `{"data": [{"sensor_type_id": "state", "key": "b"}]}`)
		acme.Post("/webhooks/generic/pruned", `{"time": "2026-03-01T12:01:00Z", "a": 2, "b": 2}`).Mentions(t, 200)
		id := acme.AwaitDevice("pruned")
		for _, want := range []string{"a=1@2026-03-01 12:00:00", "b=2@2026-03-01 12:01:00"} {
			if got := e2e.FormatReadings(acme.LatestReadings(id)); !strings.Contains(got, want) || strings.Contains(got, "a=2") {
				t.Errorf("latest readings = %s, want %s and no new reading of a", got, want)
			}
		}
		relaytest.Equal(t, "readings of a", e2e.FormatReadings(e2e.ReadingsOf(acme.Readings(id, ""), "a")), "a=1@2026-03-01 12:00:00")
		relaytest.Equal(t, "readings of b", e2e.FormatReadings(e2e.ReadingsOf(acme.Readings(id, ""), "b")), "b=2@2026-03-01 12:01:00 b=1@2026-03-01 12:00:00")
	})
	t.Run("a deleted device that sends again has no old readings", func(t *testing.T) {
		e2e.PostWebhook(t, acme, "/webhooks/lorawan?decoder_id=lpp&event=up", up("70b3d57ed1000003"))
		oldID := acme.AwaitDevice("70b3d57ed1000003")
		if got := acme.Readings(oldID, ""); len(got) != 2 {
			t.Fatalf("readings = %s, want 2", e2e.FormatReadings(got))
		}
		acme.Do("DELETE", "/iot/devices/"+oldID, "").Expect(t, 204, "")
		acme.Get("/iot/devices/"+oldID+"/readings").Expect(t, 404, "")
		acme.Get("/iot/devices/"+oldID+"/readings/latest").Expect(t, 404, "")
		acme.Get("/iot/devices/identifier/70b3d57ed1000003").Expect(t, 422, `{"message": "Invalid Device."}`)
		e2e.PostWebhook(t, acme, "/webhooks/lorawan?decoder_id=lpp&event=up", e2e.LaterUplink(t, "70b3d57ed1000003"))
		newID := acme.AwaitDevice("70b3d57ed1000003")
		want := "relative_humidity_4=60.5@2026-03-01 10:25:30 temperature_3=27.2@2026-03-01 10:25:30"
		relaytest.Equal(t, "latest", e2e.FormatReadings(acme.LatestReadings(newID)), want)
		if got := e2e.FormatReadings(acme.Readings(newID, "")); newID == oldID || strings.Contains(got, "10:15:30") || !strings.Contains(got, "10:25:30") {
			t.Errorf("device %s (before: %s): readings = %s, want a new device with the new readings", newID, oldID, got)
		}
	})
	t.Run("a decoder corrected over REST decodes the next frame", func(t *testing.T) {
		decoder := acme.CreateDecoder("expr", "temperature = bytes[9] * 1.0")
		acme.Post("/iot/decoders/"+decoder+"/sensors", `{"sensor_type_id": "temperature", "key": "temperature"}`).Mentions(t, 200)
		e2e.PostWebhook(t, acme, "/webhooks/lorawan?event=up&decoder_id="+decoder, up("70b3d57ed1000004"))
		id := acme.AwaitDevice("70b3d57ed1000004")
		relaytest.Equal(t, "readings before", e2e.FormatReadings(acme.Readings(id, "")), "")
		acme.Do("PATCH", "/iot/decoders/"+decoder, `{"source": "temperature = bytes[6] * 0.5", "useRawPayload": true}`).Mentions(t, 200, decoder)
		e2e.PostWebhook(t, acme, "/webhooks/lorawan?event=up", e2e.LaterUplink(t, "70b3d57ed1000004"))
		relaytest.Equal(t, "readings after", e2e.FormatReadings(acme.Readings(id, "")), "temperature=60.5@2026-03-01 10:25:30")
	})
	t.Run("raw frames are shown while frame logging is on", func(t *testing.T) {
		id := acme.Create("/iot/devices/lorawan", lorawan("70b3d57ed1000005"))
		acme.Get("/iot/devices/"+id+"/frames").Expect(t, 200, `{"data": []}`)
		acme.Do("PATCH", "/iot/devices/"+id, `{"frame_logging": "enabled"}`).Mentions(t, 200, `"frame_logging":"enabled"`)
		e2e.PostWebhook(t, acme, "/webhooks/lorawan?event=up", up("70b3d57ed1000005"))
		g.AwaitProcessed()
		e2e.PostWebhook(t, acme, "/webhooks/lorawan?event=up", strings.Replace(e2e.LaterUplink(t, "70b3d57ed1000005"), "A2cBEARoeQ==", "A2cB", 1))
		e2e.PostWebhook(t, acme, "/webhooks/lorawan?event=up", up("70b3d57ed1000005")) // a duplicate
		g.AwaitProcessed()
		var list struct {
			Data []struct {
				Sender, Kind, Payload, Time, Refused string
				FCnt                                 int64 `json:"f_cnt"`
				RSSI                                 float64
				Gateways                             int
			}
		}
		acme.Get("/iot/devices/"+id+"/frames").Decode(t, &list)
		if len(list.Data) != 2 {
			t.Fatalf("number of frames = %d, want 2", len(list.Data))
		}
		incomplete, complete := list.Data[0], list.Data[1]
		want := complete
		want.Payload, want.FCnt, want.RSSI, want.Gateways, want.Time, want.Sender, want.Refused = "03670110046879", 4711, -97, 2, timestamp, "chirpstack-v4", ""
		relaytest.Equal(t, "the complete frame", complete, want)
		relaytest.Equal(t, "the payload of the incomplete frame", incomplete.Payload, "036701")
		relaytest.Equal(t, "the counter of the incomplete frame", incomplete.FCnt, 4712)
		if !strings.Contains(incomplete.Refused, "cayenne_lpp") {
			t.Errorf("reason of the incomplete frame = %q, want cayenne_lpp in it", incomplete.Refused)
		}
		globex.Get("/iot/devices/"+id+"/frames").Expect(t, 404, "")
	})
}
