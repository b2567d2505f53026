package app

import (
	"encoding/json"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
)

// reading is a record wherever readings are listed.
type reading struct {
	SensorID      string   `json:"sensor_id"`
	DeviceID      string   `json:"device_id"`
	Key           string   `json:"key"`
	Name          string   `json:"name"`
	Value         *float64 `json:"value"`
	Text          string   `json:"text"`
	ReadingDate   string   `json:"reading_date"`
	MetricUnits   string   `json:"metric_units"`
	ImperialUnits string   `json:"imperial_units"`
}

// hook posts to a webhook and wants the sender's success.
func hook(t *testing.T, c caller, path, body string) {
	t.Helper()
	c.post(path, body).is(t, 200, "")
}

// device waits for a device to be imported and returns its id.
func (c caller) device(identifier string) string {
	c.g.t.Helper()
	var found struct{ ID string }
	eventually(c.g.t, "the device "+identifier+" is there", func() (any, bool) {
		a := c.get("/iot/devices/identifier/" + identifier)
		if a.status == 200 {
			a.into(c.g.t, &found)
		}
		return a, a.status == 200
	})
	return found.ID
}

// readings lists a device's, once everything is processed.
func (c caller) readings(device, query string) []reading {
	c.g.t.Helper()
	c.g.settled()
	var list struct{ Data []reading }
	c.get("/iot/devices/"+device+"/readings?"+query).into(c.g.t, &list)
	return list.Data
}

func (c caller) latest(device string) []reading {
	c.g.t.Helper()
	c.g.settled()
	var list struct{ Data []reading }
	c.get("/iot/devices/"+device+"/readings/latest").into(c.g.t, &list)
	return list.Data
}

// short writes readings as "key=value@time", in their order.
func short(list []reading) string {
	texts := make([]string, len(list))
	for i, r := range list {
		value := r.Text
		if r.Value != nil {
			b, _ := json.Marshal(*r.Value)
			value = string(b)
		}
		texts[i] = r.Key + "=" + value + "@" + r.ReadingDate
	}
	return strings.Join(texts, " ")
}

func same(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %s\nwant %s", what, got, want)
	}
}

func testFrames(t *testing.T, s *site) {
	g := start(t, s, fixture(t, "inventory.yaml"))
	acme := g.as("acme-all-0123456")
	t.Run("a ChirpStack frame becomes readings and latest values", func(t *testing.T) {
		hook(t, acme, "/webhooks/lorawan?decoder_id=lpp&event=up", fixture(t, "chirpstack/up.json"))
		id := acme.device("70b3d57ed0001234")
		want := "relative_humidity_4=60.5@2026-03-01 10:15:30 temperature_3=27.2@2026-03-01 10:15:30"
		same(t, "latest", short(acme.latest(id)), want)
		if got := acme.readings(id, ""); len(got) != 2 {
			t.Errorf("readings: %s, want the same two", short(got))
		}
		first := only(acme.latest(id), "temperature_3")[0]
		if first.DeviceID != id || first.SensorID == "" || first.Name != "Temperature" || first.MetricUnits != "°C" || first.ImperialUnits != "°F" {
			t.Errorf("the record is incomplete: %+v", first)
		}
		acme.get("/iot/devices/"+id).mentions(t, 200, `"name":"Probe 7"`, `"type":"lorawan"`, `"decoder_id":"lpp"`, `"location_id":"arrivals"`)
	})
	t.Run("a frame of The Things Stack becomes readings and latest values", func(t *testing.T) {
		hook(t, acme, "/webhooks/community?decoder_id=lpp", fixture(t, "tts-up.json"))
		id := acme.device("70B3D57ED0005678")
		same(t, "latest", short(acme.latest(id)), "relative_humidity_4=40@2026-03-01 10:15:30 temperature_3=23@2026-03-01 10:15:30")
	})
	t.Run("every event of ChirpStack is answered 200 with nothing, and only uplinks store", func(t *testing.T) {
		const devEUI = "70b3d57ed000aaaa"
		for _, name := range chirpStackEvents(t) {
			body := fixture(t, "chirpstack/"+name+".json", "70b3d57ed0001234", devEUI)
			hook(t, acme, "/webhooks/lorawan?decoder_id=lpp&event="+name, body)
			g.settled() // the uplink makes the device known to the others
		}
		id := acme.device(devEUI)
		if got := acme.readings(id, ""); len(got) != 2 {
			t.Errorf("readings: %s, want those of the uplink", short(got))
		}
		acme.get("/iot/devices/identifier/"+devEUI).mentions(t, 200, id)
	})
	t.Run("a duplicate is stored once", func(t *testing.T) {
		body := fixture(t, "chirpstack/up.json", "70b3d57ed0001234", "70b3d57ed000bbbb")
		again := strings.Replace(body, `"A2cBEARoeQ=="`, `"A2cAAA=="`, 1) // the same id with another value
		for _, b := range []string{body, body, strings.Replace(again, "10:15:30.250Z", "10:15:31.250Z", 1)} {
			hook(t, acme, "/webhooks/lorawan?decoder_id=lpp&event=up", b)
		}
		got := short(acme.readings(acme.device("70b3d57ed000bbbb"), ""))
		if strings.Count(got, "temperature_3=27.2@2026-03-01 10:15:30") != 1 || strings.Contains(got, "10:15:31") {
			t.Errorf("readings: %s", got)
		}
	})
	t.Run("slope and offset take effect with the next frame", func(t *testing.T) {
		const devEUI = "70b3d57ed000cccc"
		hook(t, acme, "/webhooks/lorawan?decoder_id=lpp&event=up", fixture(t, "chirpstack/up.json", "70b3d57ed0001234", devEUI))
		id := acme.device(devEUI)
		sensor := only(acme.latest(id), "temperature_3")[0].SensorID
		acme.do("PATCH", "/iot/sensors/"+sensor, `{"slope": 2, "offset": -1.5}`).mentions(t, 200, `"slope":2`, `"offset":-1.5`)
		hook(t, acme, "/webhooks/lorawan?decoder_id=lpp&event=up", later(t, devEUI))
		same(t, "readings of the sensor", short(only(acme.readings(id, ""), "temperature_3")),
			"temperature_3=52.9@2026-03-01 10:25:30 temperature_3=27.2@2026-03-01 10:15:30")
		if sensor != only(acme.latest(id), "temperature_3")[0].SensorID {
			t.Error("the sensor has another id")
		}
	})
	t.Run("a key added to a decoder appears with the next frame", func(t *testing.T) {
		const devEUI = "70b3d57ed000dddd"
		decoder := acme.decoder("cayenne_lpp", "")
		acme.post("/iot/decoders/"+decoder+"/sensors", `{"sensor_type_id": "temperature", "key": "temperature_3"}`).mentions(t, 200)
		hook(t, acme, "/webhooks/lorawan?event=up&decoder_id="+url.QueryEscape(decoder), fixture(t, "chirpstack/up.json", "70b3d57ed0001234", devEUI))
		id := acme.device(devEUI)
		same(t, "latest before", short(acme.latest(id)), "temperature_3=27.2@2026-03-01 10:15:30")
		acme.post("/iot/decoders/"+decoder+"/sensors", `{"sensor_type_id": "humidity", "key": "relative_humidity_4"}`).
			is(t, 200, `{"data": [{"sensor_type_id": "temperature", "key": "temperature_3"}, {"sensor_type_id": "humidity", "key": "relative_humidity_4"}]}`)
		hook(t, acme, "/webhooks/lorawan?event=up", later(t, devEUI))
		same(t, "latest after", short(acme.latest(id)), "temperature_3=27.2@2026-03-01 10:25:30 relative_humidity_4=60.5@2026-03-01 10:25:30")
	})
	t.Run("nothing was quarantined by all this", func(t *testing.T) {
		for _, e := range g.events("state=quarantined") {
			t.Errorf("in quarantine: %+v", e)
		}
	})
	if s.influx != nil {
		t.Run("InfluxQL shows the points", func(t *testing.T) {
			db := fieldOf(g.env, "PENSTOCK_INFLUX_BUCKET=")
			if n := s.influx.Count(t, db, "temperature", "value"); n < 5 {
				t.Errorf("%d points of temperature", n)
			}
		})
	}
}

// fieldOf returns a setting of an environment.
func fieldOf(env []string, prefix string) string {
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, prefix); ok {
			return value
		}
	}
	return ""
}

// later is the uplink of ten minutes after, of a device.
func later(t *testing.T, devEUI string) string {
	t.Helper()
	return fixture(t, "chirpstack/up.json", "70b3d57ed0001234", devEUI,
		"8b2f6c1e-", "9c3a7d2f-", "10:15:30.250Z", "10:25:30.250Z", `"fCnt": 4711`, `"fCnt": 4712`)
}

func only(list []reading, key string) []reading {
	var out []reading
	for _, r := range list {
		if r.Key == key {
			out = append(out, r)
		}
	}
	return out
}

// chirpStackEvents are the kinds of event there are fixtures of, the uplink
// first: the others are about a device that is known.
func chirpStackEvents(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "chirpstack", "*.json"))
	if err != nil || len(files) != 8 {
		t.Fatalf("%d fixtures of ChirpStack's events: %v", len(files), err)
	}
	names := []string{"up"}
	for _, f := range files {
		if name := strings.TrimSuffix(filepath.Base(f), ".json"); name != "up" {
			names = append(names, name)
		}
	}
	return names
}

// decoder creates one and returns its id.
func (c caller) decoder(codec, source string) string {
	c.g.t.Helper()
	body, err := json.Marshal(map[string]string{
		"name": "Probe", "description": "made by a test", "type": "lorawan", "codec": codec, "source": source,
	})
	if err != nil {
		c.g.t.Fatal(err)
	}
	var made struct{ Data struct{ ID string } }
	c.post("/iot/decoders", string(body)).into(c.g.t, &made)
	if made.Data.ID == "" {
		c.g.t.Fatal("a decoder without an id")
	}
	return made.Data.ID
}
