package frames

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// periodQuery returns the query for the readings of a period.
func periodQuery(startDate, endDate string) string {
	q := url.Values{}
	if startDate != "" {
		q.Set("startDate", startDate)
	}
	if endDate != "" {
		q.Set("endDate", endDate)
	}
	return q.Encode()
}

func testReadings(t *testing.T, s *e2e.Site) {
	g := e2e.Start(t, s, e2e.Fixture(t, "inventory.yaml"))
	acme := g.WithToken("acme-all-0123456")
	for n := range 5 {
		acme.Post("/webhooks/generic/shed?decoder_id=sent",
			fmt.Sprintf(`{"time": "2026-03-01T10:0%d:00Z", "temperature": %d}`, n, n)).Mentions(t, 200, `"key":"temperature"`)
	}
	acme.Post("/webhooks/generic/shed", `{"time": "2026-03-01T10:05:00Z", "door": "ajar"}`).Mentions(t, 200, `"text":"ajar"`, `"value":null`)
	id := acme.AwaitDevice("shed")
	reading := func(n int) string { return fmt.Sprintf("temperature=%d@2026-03-01 10:0%d:00", n, n) }
	const door = "door=ajar@2026-03-01 10:05:00"
	for _, tc := range []struct{ name, query, want string }{
		{"newest first", "", door + " " + reading(4) + " " + reading(3) + " " + reading(2) + " " + reading(1) + " " + reading(0)},
		{"up to the limit, newest first", "limit=2", door + " " + reading(4)},
		{"from a date on, inclusive", periodQuery("2026-03-01 10:03:00", ""), door + " " + reading(4) + " " + reading(3)},
		{"up to a date, inclusive", periodQuery("", "2026-03-01 10:01:00"), reading(1) + " " + reading(0)},
		{"between two dates, limited", periodQuery("2026-03-01 10:01:00", "2026-03-01 10:03:00") + "&limit=2", reading(3) + " " + reading(2)},
		{"for an empty period", periodQuery("2026-03-02 00:00:00", ""), ""},
	} {
		t.Run("readings are listed "+tc.name, func(t *testing.T) {
			relaytest.Equal(t, "readings", e2e.FormatReadings(acme.Readings(id, tc.query)), tc.want)
		})
	}
	t.Run("an empty list is an empty array", func(t *testing.T) {
		acme.Get("/iot/devices/"+id+"/readings?"+periodQuery("2026-03-02 00:00:00", "")).Expect(t, 200, `{"data": []}`)
	})
	for _, tc := range []struct{ name, query, field, text string }{
		{"a limit over 1000", "limit=1001", "limit", "The limit must be between 1 and 1000."},
		{"a limit of 0", "limit=0", "limit", "The limit must be between 1 and 1000."},
		{"a limit that is not a number", "limit=many", "limit", "The limit must be between 1 and 1000."},
		{"a date in another form", "startDate=01/03/2026", "startDate", "The startDate does not match the format YYYY-MM-DD HH:mm:ss."},
		{"a day that does not exist", periodQuery("", "2026-02-30 10:00:00"), "endDate", "The endDate does not match the format YYYY-MM-DD HH:mm:ss."},
	} {
		t.Run("refused: "+tc.name, func(t *testing.T) {
			acme.Get("/iot/devices/"+id+"/readings?"+tc.query).
				Expect(t, 422, fmt.Sprintf(`{"message": "The given data was invalid.", "errors": {%q: [%q]}}`, tc.field, tc.text))
		})
	}
	for _, tc := range []struct {
		name, path string
		status     int
		body       string
	}{
		{"an unknown device", "/iot/devices/none", 422, `{"message": "Invalid Device."}`},
		{"an unknown identifier", "/iot/devices/identifier/none", 422, `{"message": "Invalid Device."}`},
		{"the readings of an unknown device", "/iot/devices/none/readings", 404, ""},
		{"the latest readings of an unknown device", "/iot/devices/none/readings/latest", 404, ""},
		{"the sensors of an unknown device", "/iot/devices/none/sensors", 404, ""},
	} {
		t.Run("unknown: "+tc.name, func(t *testing.T) { acme.Get(tc.path).Expect(t, tc.status, tc.body) })
	}
	t.Run("sensors are found by a part of their name", func(t *testing.T) {
		acme.Get("/iot/devices/"+id+"/sensors?searchKey=DOO").Mentions(t, 200, `"key":"door"`, `"slope":1`, `"offset":0`, `"retention_days":null`)
		acme.Get("/iot/devices/"+id+"/sensors?searchKey=nothing").Expect(t, 200, `{"data": []}`)
	})
	t.Run("devices are listed with identifier and type", func(t *testing.T) {
		type device struct{ ID, Identifier, Type string }
		var list struct{ Data []device }
		acme.Get("/iot/devices").Decode(t, &list)
		relaytest.Equal(t, "the devices", list.Data, []device{{id, "shed", "other"}})
	})
	t.Run("a change of a sensor is checked", func(t *testing.T) {
		sensor := "/iot/sensors/" + acme.LatestReadings(id)[0].SensorID
		acme.Do("PATCH", sensor, `{"slope": "two"}`).Mentions(t, 422, `"slope"`, "The given data was invalid.")
		acme.Do("PATCH", sensor, `{"name": " "}`).Expect(t, 422, `{"message": "The given data was invalid.", "errors": {"name": ["The name field is required."]}}`)
		acme.Do("PATCH", "/iot/sensors/none.000000000000", `{"slope": 2}`).Expect(t, 404, "")
	})
}

func testDecoders(t *testing.T, s *e2e.Site) {
	g := e2e.Start(t, s, e2e.Fixture(t, "inventory.yaml"))
	acme := g.WithToken("acme-all-0123456")
	t.Run("a decoder is created and shown", func(t *testing.T) {
		var created struct{ Data map[string]any }
		resp := acme.Post("/iot/decoders", `{"name": "Probe", "description": "in the yard", "type": "lorawan", "useRawPayload": true, "loraWanMacVersion": "1.0.3"}`)
		if resp.Status != 201 {
			t.Errorf("status = %d, want 201", resp.Status)
		}
		resp.Decode(t, &created)
		id, _ := created.Data["id"].(string)
		bare := fmt.Sprintf(`{"id": %q, "name": "Probe", "description": "in the yard", "type": "lorawan"}`, id)
		resp.Expect(t, 201, `{"data": `+bare+`}`)
		acme.Get("/iot/decoders/"+id).Expect(t, 200, bare)
		acme.Get("/iot/decoders/"+id+"/sensors").Expect(t, 200, `{"data": []}`)
		acme.Get("/iot/decoders").Mentions(t, 200, `{"data":[`, `"id":"`+id+`"`, `"id":"lpp"`, `"id":"torn"`)
	})
	for _, tc := range []struct{ name, body, want string }{
		{
			"a decoder without fields", `{}`,
			`{"message": "The given data was invalid.", "errors": {"name": ["The name field is required."],
				"description": ["The description field is required."], "type": ["The type field is required."]}}`,
		},
		{
			"an unknown type", `{"name": "a", "description": "b", "type": "zigbee"}`,
			`{"message": "The given data was invalid.", "errors": {"type": ["The selected type is invalid."]}}`,
		},
		{"a name that is a number", `{"name": 5}`, `{"message": "The given data was invalid.", "errors": {"name": ["The name must be a string."]}}`},
		{"JSON that ends early", `{"name": `, `{"message": "Invalid JSON."}`},
		{"JSON of another shape", `[1]`, `{"message": "Invalid JSON."}`},
	} {
		t.Run("refused: "+tc.name, func(t *testing.T) { acme.Post("/iot/decoders", tc.body).Expect(t, 422, tc.want) })
	}
	t.Run("a source that does not compile is refused with the reason", func(t *testing.T) {
		acme.Post("/iot/decoders", `{"name": "a", "description": "b", "type": "other", "codec": "expr", "source": "x = ("}`).Mentions(t, 422, `"source"`)
	})
	t.Run("a body that is not declared as JSON is 415", func(t *testing.T) {
		acme.With("Content-Type", "text/plain").Post("/iot/decoders", `{}`).Mentions(t, 415, "application/json")
	})
	t.Run("sensors are added to a decoder", func(t *testing.T) {
		path := "/iot/decoders/" + acme.CreateDecoder("json", "") + "/sensors"
		acme.Post(path, `{"sensor_type_id": "temperature", "key": "t"}`).Expect(t, 200, `{"data": [{"sensor_type_id": "temperature", "key": "t"}]}`)
		acme.Post(path, `{"sensor_type_id": "humidity", "key": "t"}`).Expect(t, 200, `{"data": [{"sensor_type_id": "humidity", "key": "t"}]}`)
		acme.Get(path).Expect(t, 200, `{"data": [{"sensor_type_id": "humidity", "key": "t"}]}`)
		acme.Post(path, `{"sensor_type_id": "nothing", "key": "t"}`).
			Expect(t, 422, `{"message": "The given data was invalid.", "errors": {"sensor_type_id": ["The selected sensor type id is invalid."]}}`)
		acme.Post(path, `{"sensor_type_id": "humidity"}`).
			Expect(t, 422, `{"message": "The given data was invalid.", "errors": {"key": ["The key field is required."]}}`)
	})
	t.Run("an unknown decoder is 404 with an empty body", func(t *testing.T) {
		acme.Get("/iot/decoders/none").Expect(t, 404, "")
		acme.Get("/iot/decoders/none/sensors").Expect(t, 404, "")
		acme.Post("/iot/decoders/none/sensors", `{"sensor_type_id": "humidity", "key": "t"}`).Expect(t, 404, "")
	})
}
