// Package frames tests devices, decoders, readings and the webhooks of network servers end to end.
package frames

import (
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestMain(m *testing.M) { e2e.Main(m) }

// TestGateway runs every suite of this folder.
func TestGateway(t *testing.T) {
	e2e.RunSuites(t, e2e.Suites{
		"frames":                           testFrames,
		"the generic webhook":              testGeneric,
		"posts of many readings":           testPosts,
		"frames reported in several posts": testSupplements,
		"lost frames":                      testLoss,
		"quarantine":                       testQuarantine,
		"a decoder that is corrected":      testCorrectedDecoder,
		"a codec that never ends":          testEndlessCodec,
		"a codec's clock":                  testCodecClock,
		"retention at the start":           testRetentionAtStart,
		"a codec of a megabyte":            testLongSource,
		"readings":                         testReadings,
		"decoders":                         testDecoders,
		"devices":                          testDevices,
		"credentials":                      testCredentials,
		"isolation of accounts":            testIsolation,
		"a claim by the wrong account":     testReleasedIdentifier,
	}, "frames", "readings", "posts of many readings", "frames reported in several posts", "lost frames", "retention at the start")
}

func testFrames(t *testing.T, s *e2e.Site) {
	g := e2e.Start(t, s, e2e.Fixture(t, "inventory.yaml"))
	acme := g.WithToken("acme-all-0123456")
	t.Run("a ChirpStack frame becomes readings and latest values", func(t *testing.T) {
		e2e.PostWebhook(t, acme, "/webhooks/lorawan?decoder_id=lpp&event=up", e2e.Fixture(t, "chirpstack/up.json"))
		id := acme.AwaitDevice("70b3d57ed0001234")
		want := "relative_humidity_4=60.5@2026-03-01 10:15:30 temperature_3=27.2@2026-03-01 10:15:30"
		relaytest.Equal(t, "latest", e2e.FormatReadings(acme.LatestReadings(id)), want)
		if got := acme.Readings(id, ""); len(got) != 2 {
			t.Errorf("readings = %s, want the same 2", e2e.FormatReadings(got))
		}
		reading := e2e.ReadingsOf(acme.LatestReadings(id), "temperature_3")[0]
		complete := reading
		complete.DeviceID, complete.Name, complete.MetricUnits, complete.ImperialUnits = id, "Temperature", "°C", "°F"
		relaytest.Equal(t, "the record", reading, complete)
		if reading.SensorID == "" {
			t.Error("sensor_id is empty")
		}
		acme.Get("/iot/devices/"+id).Mentions(t, 200, `"name":"Probe 7"`, `"type":"lorawan"`, `"decoder_id":"lpp"`, `"location_id":"arrivals"`)
	})
	t.Run("a frame of The Things Stack becomes readings and latest values", func(t *testing.T) {
		e2e.PostWebhook(t, acme, "/webhooks/community?decoder_id=lpp", e2e.Fixture(t, "tts-up.json"))
		id := acme.AwaitDevice("70B3D57ED0005678")
		relaytest.Equal(t, "latest", e2e.FormatReadings(acme.LatestReadings(id)), "relative_humidity_4=40@2026-03-01 10:15:30 temperature_3=23@2026-03-01 10:15:30")
	})
	t.Run("every event of ChirpStack is answered 200 with an empty body, and only uplinks are stored", func(t *testing.T) {
		const devEUI = "70b3d57ed000aaaa"
		for _, name := range chirpStackEvents(t) {
			body := e2e.Fixture(t, "chirpstack/"+name+".json", "70b3d57ed0001234", devEUI)
			e2e.PostWebhook(t, acme, "/webhooks/lorawan?decoder_id=lpp&event="+name, body)
			g.AwaitProcessed() // the uplink creates the device before the other events
		}
		id := acme.AwaitDevice(devEUI)
		if got := acme.Readings(id, ""); len(got) != 2 {
			t.Errorf("readings = %s, want the 2 readings of the uplink", e2e.FormatReadings(got))
		}
		acme.Get("/iot/devices/identifier/"+devEUI).Mentions(t, 200, id)
	})
	t.Run("a duplicate is stored once", func(t *testing.T) {
		body := e2e.Fixture(t, "chirpstack/up.json", "70b3d57ed0001234", "70b3d57ed000bbbb")
		sameID := strings.Replace(body, `"A2cBEARoeQ=="`, `"A2cAAA=="`, 1) // the same id with another value
		for _, b := range []string{body, body, strings.Replace(sameID, "10:15:30.250Z", "10:15:31.250Z", 1)} {
			e2e.PostWebhook(t, acme, "/webhooks/lorawan?decoder_id=lpp&event=up", b)
		}
		got := e2e.FormatReadings(acme.Readings(acme.AwaitDevice("70b3d57ed000bbbb"), ""))
		if strings.Count(got, "temperature_3=27.2@2026-03-01 10:15:30") != 1 || strings.Contains(got, "10:15:31") {
			t.Errorf("readings = %s, want the first frame once", got)
		}
	})
	t.Run("slope and offset take effect with the next frame", func(t *testing.T) {
		const devEUI = "70b3d57ed000cccc"
		e2e.PostWebhook(t, acme, "/webhooks/lorawan?decoder_id=lpp&event=up", e2e.Fixture(t, "chirpstack/up.json", "70b3d57ed0001234", devEUI))
		id := acme.AwaitDevice(devEUI)
		sensor := e2e.ReadingsOf(acme.LatestReadings(id), "temperature_3")[0].SensorID
		acme.Do("PATCH", "/iot/sensors/"+sensor, `{"slope": 2, "offset": -1.5}`).Mentions(t, 200, `"slope":2`, `"offset":-1.5`)
		e2e.PostWebhook(t, acme, "/webhooks/lorawan?decoder_id=lpp&event=up", e2e.LaterUplink(t, devEUI))
		relaytest.Equal(t, "readings of the sensor", e2e.FormatReadings(e2e.ReadingsOf(acme.Readings(id, ""), "temperature_3")),
			"temperature_3=52.9@2026-03-01 10:25:30 temperature_3=27.2@2026-03-01 10:15:30")
		if sensor != e2e.ReadingsOf(acme.LatestReadings(id), "temperature_3")[0].SensorID {
			t.Error("the id of the sensor changed")
		}
	})
	t.Run("a key added to a decoder appears with the next frame", func(t *testing.T) {
		const devEUI = "70b3d57ed000dddd"
		decoder := acme.CreateDecoder("cayenne_lpp", "")
		acme.Post("/iot/decoders/"+decoder+"/sensors", `{"sensor_type_id": "temperature", "key": "temperature_3"}`).Mentions(t, 200)
		e2e.PostWebhook(t, acme, "/webhooks/lorawan?event=up&decoder_id="+url.QueryEscape(decoder), e2e.Fixture(t, "chirpstack/up.json", "70b3d57ed0001234", devEUI))
		id := acme.AwaitDevice(devEUI)
		relaytest.Equal(t, "latest before", e2e.FormatReadings(acme.LatestReadings(id)), "temperature_3=27.2@2026-03-01 10:15:30")
		acme.Post("/iot/decoders/"+decoder+"/sensors", `{"sensor_type_id": "humidity", "key": "relative_humidity_4"}`).
			Expect(t, 200, `{"data": [{"sensor_type_id": "temperature", "key": "temperature_3"}, {"sensor_type_id": "humidity", "key": "relative_humidity_4"}]}`)
		e2e.PostWebhook(t, acme, "/webhooks/lorawan?event=up", e2e.LaterUplink(t, devEUI))
		relaytest.Equal(t, "latest after", e2e.FormatReadings(acme.LatestReadings(id)), "temperature_3=27.2@2026-03-01 10:25:30 relative_humidity_4=60.5@2026-03-01 10:25:30")
	})
	t.Run("no event is quarantined", func(t *testing.T) {
		for _, e := range g.Events("state=quarantined") {
			t.Errorf("event %s from %s is quarantined: %s", e.ID, e.Source, e.Reason)
		}
	})
	if s.Influx != nil {
		t.Run("InfluxQL finds the points", func(t *testing.T) {
			db := g.Setting("PENSTOCK_INFLUX_BUCKET")
			if n := s.Influx.Count(t, db, "temperature", "value"); n < 5 {
				t.Errorf("points of temperature = %d, want at least 5", n)
			}
		})
	}
}

// chirpStackEvents returns the kinds of events that have fixtures. The uplink is first, because the other
// events need an existing device.
func chirpStackEvents(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(e2e.File(t, filepath.Join("chirpstack", "*.json")))
	if err != nil || len(files) != 8 {
		t.Fatalf("fixtures of ChirpStack's events = %d, want 8: %v", len(files), err)
	}
	names := []string{"up"}
	for _, f := range files {
		if name := strings.TrimSuffix(filepath.Base(f), ".json"); name != "up" {
			names = append(names, name)
		}
	}
	return names
}
