package app

import (
	"fmt"
	"strings"
	"testing"
)

// made creates a device over REST and returns its id.
func (c caller) made(kind, body string) string {
	c.g.t.Helper()
	var made struct{ Data struct{ ID string } }
	a := c.post("/iot/devices/"+kind, body)
	if a.status != 201 {
		c.g.t.Fatalf("%s: %d %s", a.of, a.status, a.body)
	}
	a.into(c.g.t, &made)
	return made.Data.ID
}

// measured writes readings as "name value unit", in their order.
func measured(list []reading) string {
	texts := make([]string, len(list))
	for i, r := range list {
		texts[i] = r.Name + " " + r.Text + r.MetricUnits
		if r.Value != nil {
			texts[i] = fmt.Sprint(r.Name, " ", *r.Value, r.MetricUnits)
		}
	}
	return strings.Join(texts, ", ")
}

func testDevices(t *testing.T, s *site) {
	g := start(t, s, fixture(t, "inventory.yaml"))
	acme, globex := g.as("acme-all-0123456"), g.as("globex-all-0123456")
	const at = "2026-03-01 10:15:30"
	up := func(devEUI string) string { return fixture(t, "chirpstack/up.json", "70b3d57ed0001234", devEUI) }
	lorawan := func(identifier string) string {
		return `{"location_id": "yard", "decoder_id": "lpp", "identifier": "` + identifier + `", "name": "By hand"}`
	}
	t.Run("a device that was created takes its frames, however its EUI was written", func(t *testing.T) {
		id := acme.made("lorawan", lorawan("70:B3:D5:7E:D1:00:00:01"))
		hook(t, acme, "/webhooks/lorawan?event=up", up("70b3d57ed1000001"))
		same(t, "latest", short(acme.latest(id)), "relative_humidity_4=60.5@"+at+" temperature_3=27.2@"+at)
		acme.get("/iot/devices/identifier/70B3D57ED1000001").mentions(t, 200, id, `"name":"By hand"`, `"location_id":"yard"`)
	})
	t.Run("a device belongs to one account until it is deleted", func(t *testing.T) {
		id := acme.made("lorawan", lorawan("70b3d57ed1000002"))
		theirs := strings.Replace(lorawan("70-b3-d5-7e-d1-00-00-02"), "yard", "shop", 1)
		g.admin().put("/admin/inventory", `{"accounts": [{"name": "globex", "locations": [{"id": "shop", "name": "Shop"}]}]}`).mentions(t, 200)
		globex.post("/iot/devices/lorawan", theirs).is(t, 422, `{"message": "Device has already been claimed."}`)
		globex.do("DELETE", "/iot/devices/"+id, "").is(t, 422, `{"message": "Invalid Device."}`)
		acme.do("DELETE", "/iot/devices/"+id, "").is(t, 204, "")
		globex.made("lorawan", theirs)
		acme.post("/iot/devices/lorawan", lorawan("70b3d57ed1000002")).is(t, 422, `{"message": "Device has already been claimed."}`)
	})
	t.Run("a key's new type takes effect with the next frame, and history stays what it was", func(t *testing.T) {
		decoder := acme.decoder("json", "")
		mapped := func(kind string) {
			t.Helper()
			acme.post("/iot/decoders/"+decoder+"/sensors", `{"sensor_type_id": "`+kind+`", "key": "v"}`).mentions(t, 200, kind)
		}
		mapped("temperature")
		post := func(minute int, value string) {
			t.Helper()
			acme.post("/webhooks/generic/retyped?decoder_id="+decoder, fmt.Sprintf(`{"time": "2026-03-01T10:0%d:00Z", "v": %s}`, minute, value)).mentions(t, 200, `"key":"v"`)
		}
		post(1, "20")
		id := acme.device("retyped")
		mapped("humidity")
		same(t, "latest before the frame", measured(acme.latest(id)), "Temperature 20°C")
		post(2, "60")
		same(t, "latest", measured(acme.latest(id)), "Humidity 60%")
		same(t, "readings", measured(acme.readings(id, "")), "Humidity 60%, Temperature 20°C")
		acme.get("/iot/devices/"+id+"/sensors").mentions(t, 200, `"sensor_type_id":"humidity"`)
	})
	t.Run("a key whose values change their kind keeps one whole series", func(t *testing.T) {
		var want []string
		for minute, v := range []struct{ sent, shown string }{
			{"21.5", "21.5"}, {`"ajar"`, "ajar"}, {"true", "1"}, {`"7"`, "7"}, {"-3", "-3"}, {"false", "0"}, {`""`, ""},
		} {
			body := fmt.Sprintf(`{"time": "2026-03-01T11:0%d:00Z", "door": %s}`, minute, v.sent)
			acme.post("/webhooks/generic/fickle?decoder_id=sent", body).mentions(t, 200, `"key":"door"`)
			want = append([]string{fmt.Sprintf("door=%s@2026-03-01 11:0%d:00", v.shown, minute)}, want...)
		}
		id := acme.device("fickle")
		same(t, "readings", short(acme.readings(id, "")), strings.Join(want, " "))
		same(t, "latest", short(acme.latest(id)), want[0])
	})
	t.Run("a sensor deleted from its decoder is fed no more and keeps what it has", func(t *testing.T) {
		decoder := acme.decoder("json", "")
		for _, key := range []string{"a", "b"} {
			acme.post("/iot/decoders/"+decoder+"/sensors", `{"sensor_type_id": "state", "key": "`+key+`"}`).mentions(t, 200)
		}
		acme.post("/webhooks/generic/pruned?decoder_id="+decoder, `{"time": "2026-03-01T12:00:00Z", "a": 1, "b": 1}`).mentions(t, 200)
		acme.do("DELETE", "/iot/decoders/"+decoder+"/sensors/a", "").is(t, 200, `{"data": [{"sensor_type_id": "state", "key": "b"}]}`)
		acme.post("/webhooks/generic/pruned", `{"time": "2026-03-01T12:01:00Z", "a": 2, "b": 2}`).mentions(t, 200)
		id := acme.device("pruned")
		for _, key := range []string{"a=1@2026-03-01 12:00:00", "b=2@2026-03-01 12:01:00"} {
			if got := short(acme.latest(id)); !strings.Contains(got, key) || strings.Contains(got, "a=2") {
				t.Errorf("latest %s", got)
			}
		}
		same(t, "readings of a", short(only(acme.readings(id, ""), "a")), "a=1@2026-03-01 12:00:00")
		same(t, "readings of b", short(only(acme.readings(id, ""), "b")), "b=2@2026-03-01 12:01:00 b=1@2026-03-01 12:00:00")
	})
	t.Run("a device that comes back after its deletion begins anew", func(t *testing.T) {
		hook(t, acme, "/webhooks/lorawan?decoder_id=lpp&event=up", up("70b3d57ed1000003"))
		old := acme.device("70b3d57ed1000003")
		if got := acme.readings(old, ""); len(got) != 2 {
			t.Fatalf("readings: %s", short(got))
		}
		acme.do("DELETE", "/iot/devices/"+old, "").is(t, 204, "")
		acme.get("/iot/devices/"+old+"/readings").is(t, 404, "")
		acme.get("/iot/devices/"+old+"/readings/latest").is(t, 404, "")
		acme.get("/iot/devices/identifier/70b3d57ed1000003").is(t, 422, `{"message": "Invalid Device."}`)
		hook(t, acme, "/webhooks/lorawan?decoder_id=lpp&event=up", later(t, "70b3d57ed1000003"))
		fresh := acme.device("70b3d57ed1000003")
		want := "relative_humidity_4=60.5@2026-03-01 10:25:30 temperature_3=27.2@2026-03-01 10:25:30"
		same(t, "latest", short(acme.latest(fresh)), want)
		if got := short(acme.readings(fresh, "")); fresh == old || strings.Contains(got, "10:15:30") || !strings.Contains(got, "10:25:30") {
			t.Errorf("readings of %s, once %s: %s", fresh, old, got)
		}
	})
	t.Run("a decoder mended over REST decodes the next frame", func(t *testing.T) {
		decoder := acme.decoder("expr", "temperature = bytes[9] * 1.0")
		acme.post("/iot/decoders/"+decoder+"/sensors", `{"sensor_type_id": "temperature", "key": "temperature"}`).mentions(t, 200)
		hook(t, acme, "/webhooks/lorawan?event=up&decoder_id="+decoder, up("70b3d57ed1000004"))
		id := acme.device("70b3d57ed1000004")
		same(t, "readings before", short(acme.readings(id, "")), "")
		acme.do("PATCH", "/iot/decoders/"+decoder, `{"source": "temperature = bytes[6] * 0.5", "useRawPayload": true}`).mentions(t, 200, decoder)
		hook(t, acme, "/webhooks/lorawan?event=up", later(t, "70b3d57ed1000004"))
		same(t, "readings after", short(acme.readings(id, "")), "temperature=60.5@2026-03-01 10:25:30")
	})
	t.Run("raw frames are shown while frame logging is on", func(t *testing.T) {
		id := acme.made("lorawan", lorawan("70b3d57ed1000005"))
		acme.get("/iot/devices/"+id+"/frames").is(t, 200, `{"data": []}`)
		acme.do("PATCH", "/iot/devices/"+id, `{"frame_logging": "enabled"}`).mentions(t, 200, `"frame_logging":"enabled"`)
		hook(t, acme, "/webhooks/lorawan?event=up", up("70b3d57ed1000005"))
		g.settled()
		hook(t, acme, "/webhooks/lorawan?event=up", strings.Replace(later(t, "70b3d57ed1000005"), "A2cBEARoeQ==", "A2cB", 1))
		hook(t, acme, "/webhooks/lorawan?event=up", up("70b3d57ed1000005")) // a duplicate
		g.settled()
		var list struct {
			Data []struct {
				Sender, Kind, Payload, Time, Refused string
				FCnt                                 int64 `json:"f_cnt"`
				RSSI                                 float64
				Gateways                             int
			}
		}
		acme.get("/iot/devices/"+id+"/frames").into(t, &list)
		if len(list.Data) != 2 {
			t.Fatalf("%+v", list.Data)
		}
		torn, first := list.Data[0], list.Data[1]
		if first.Payload != "03670110046879" || first.FCnt != 4711 || first.RSSI != -97 || first.Gateways != 2 || first.Time != at || first.Sender != "chirpstack-v4" || first.Refused != "" {
			t.Errorf("%+v", first)
		}
		if torn.Payload != "036701" || torn.FCnt != 4712 || !strings.Contains(torn.Refused, "cayenne_lpp") {
			t.Errorf("%+v", torn)
		}
		globex.get("/iot/devices/"+id+"/frames").is(t, 404, "")
	})
}
