package iotapi

import (
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

const (
	device = `{"id":"id1","name":"probe","identifier":"aabbcc001122","comment":"<on the quay>","longitude":"-2.0943","latitude":"57","altitude":null,` +
		`"type":"other","decoder_id":"d1","gateway_id":"id1","location_id":"loc1","frame_logging":"disabled","parameters":"{\"k\":1}",` +
		`"created_at":"2026-03-01 12:00:00","updated_at":"2026-03-01 12:00:00","last_seen_at":"2026-03-01 12:00:00"}`
	probe   = `{"id":"d1","name":"Probe","description":"A probe","type":"other"}`
	invalid = `"message":"The given data was invalid."`
)

// sensor returns the JSON of an unchanged sensor of the device id1.
func sensor(key, kind string) string {
	return `{"id":"` + iot.SensorID("id1", key) + `","device_id":"id1","key":"` + key + `","name":"` + key + `","slope":1,"offset":0,` +
		`"retention_days":null,"sensor_type_id":"` + kind + `","created_at":"2026-03-01 12:00:00","updated_at":"2026-03-01 12:00:00"}`
}

// reading returns the JSON of a reading of the device id1; fields are its further members.
func reading(key, fields string) string {
	return `{"sensor_id":"` + iot.SensorID("id1", key) + `","device_id":"id1","key":"` + key + `",` + fields + `}`
}

func TestDecoderListsUnmappedKeys(t *testing.T) {
	a := newAPI(t)
	a.fill()
	lastSeen := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	relaytest.NoError(t, a.db.Devices.AddUnmapped(t.Context(), map[iot.Ref]map[string]iot.UnmappedKey{{Account: 1, ID: "d1"}: {"wind": {Key: "wind", LastSeen: lastSeen, Count: 3}}}, lastSeen))
	want := "200 " + strings.TrimSuffix(probe, "}") + `,"unmapped":[{"key":"wind","last_seen":"2026-03-01 12:00:00","count":3}]}`
	relaytest.Equal(t, "the decoder", a.ask("GET /iot/decoders/d1", "acme", ""), want)
}

func TestReadOperationsAnswerAsSpecified(t *testing.T) {
	a := newAPI(t)
	a.fill()
	warm := reading("t", `"name":"Temperature","value":21.5,"reading_date":"2026-03-01 12:00:00","metric_units":"°C","imperial_units":"°F"`)
	open := reading("door", `"name":"State","value":null,"text":"open & shut","reading_date":"2026-03-01 12:00:00","metric_units":"","imperial_units":""`)
	for _, tc := range []struct{ name, line, body, want string }{
		{"all decoders", "GET /iot/decoders", "", `200 {"data":[` + probe + `]}`},
		{"a decoder is not wrapped in data", "GET /iot/decoders/d1", "", "200 " + probe},
		{"an unknown decoder has no body", "GET /iot/decoders/nobody", "", "404"},
		{"a decoder's sensors", "GET /iot/decoders/d1/sensors", "", `200 {"data":[{"sensor_type_id":"temperature","key":"t"},{"sensor_type_id":"state","key":"door"}]}`},
		{"an unknown decoder's sensors", "GET /iot/decoders/nobody/sensors", "", "404"},
		{"all devices", "GET /iot/devices", "", `200 {"data":[` + device + `]}`},
		{"a device is not wrapped in data", "GET /iot/devices/id1", "", "200 " + device},
		{"a device by its identifier", "GET /iot/devices/identifier/AA-BB-CC-00-11-22", "", "200 " + device},
		{"a device by its URL-encoded identifier", "GET /iot/devices/identifier/aa%3Abb%3Acc%3A00%3A11%3A22", "", "200 " + device},
		{"an unknown device", "GET /iot/devices/nobody", "", `422 {"message":"Invalid Device."}`},
		{"an unknown identifier", "GET /iot/devices/identifier/nobody", "", `422 {"message":"Invalid Device."}`},
		{"a device's sensors that match searchKey", "GET /iot/devices/id1/sensors?searchKey=DOO", "", `200 {"data":[` + sensor("door", "state") + `]}`},
		{"no sensor matches searchKey", "GET /iot/devices/id1/sensors?searchKey=x", "", `200 {"data":[]}`},
		{"an unknown device's sensors", "GET /iot/devices/nobody/sensors", "", "404"},
		{"readings, newest first", "GET /iot/devices/id1/readings", "", `200 {"data":[` + warm + `,` + open + `]}`},
		{"the latest readings", "GET /iot/devices/id1/readings/latest", "", `200 {"data":[` + open + `,` + warm + `]}`},
		{"an unknown device's readings", "GET /iot/devices/nobody/readings", "", "404"},
		{"an unknown device's latest readings", "GET /iot/devices/nobody/readings/latest", "", "404"},
		{"a limit above the maximum", "GET /iot/devices/id1/readings?limit=1001", "", `422 {"errors":{"limit":["The limit must be between 1 and 1000."]},` + invalid + `}`},
		{"a limit of 0", "GET /iot/devices/id1/readings?limit=0", "", `422 {"errors":{"limit":["The limit must be between 1 and 1000."]},` + invalid + `}`},
		{"a start date in another format", "GET /iot/devices/id1/readings?startDate=01.03.2026", "", `422 {"errors":{"startDate":["The startDate does not match the format YYYY-MM-DD HH:mm:ss."]},` + invalid + `}`},
		{"an unknown operation", "GET /iot/gateways", "", `404 {"message":"Not found."}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := a.ask(tc.line, "acme", tc.body); sorted(got) != sorted(tc.want) {
				t.Errorf("\n got %s\nwant %s", got, tc.want)
			}
		})
	}
}

// sorted returns an answer with its two list items in sorted order: readings of the same
// time and sensors created together have no defined order.
func sorted(s string) string {
	i := strings.Index(s, `{"sensor_id"`)
	if i < 0 {
		return s
	}
	head, list := s[:i], strings.TrimSuffix(s[i:], "]}")
	parts := strings.Split(list, "},{")
	if len(parts) == 2 {
		a, b := strings.Trim(parts[0], "{}"), strings.Trim(parts[1], "{}")
		list = min(a, b) + "|" + max(a, b)
	}
	return head + list
}

func TestDecodersAndSensorsAreCreated(t *testing.T) {
	a := newAPI(t)
	a.fill()
	for _, tc := range []struct{ name, line, body, want string }{
		{"a decoder", "POST /iot/decoders", `{"name":"A & B","description":"d","type":"lorawan","useRawPayload":true,"loraSupportClassB":true}`,
			`201 {"data":{"id":"id2","name":"A & B","description":"d","type":"lorawan"}}`},
		{"a decoder from query parameters", "POST /iot/decoders?name=Q&description=d&type=serial&loraSupportClassC=true", "",
			`201 {"data":{"id":"id3","name":"Q","description":"d","type":"serial"}}`},
		{"the body wins over the query", "POST /iot/decoders?name=Q&type=serial", `{"name":"Body","description":"d"}`,
			`201 {"data":{"id":"id4","name":"Body","description":"d","type":"serial"}}`},
		{"a decoder without fields", "POST /iot/decoders", `{}`,
			`422 {"errors":{"description":["The description field is required."],"name":["The name field is required."],"type":["The type field is required."]},` + invalid + `}`},
		{"a field of the wrong type", "POST /iot/decoders", `{"name":7}`, `422 {"errors":{"name":["The name must be a string."]},` + invalid + `}`},
		{"a flag of the wrong type", "POST /iot/decoders", `{"useRawPayload":"yes"}`, `422 {"errors":{"useRawPayload":["The useRawPayload must be true or false."]},` + invalid + `}`},
		{"a flag of the wrong type in the query", "POST /iot/decoders?name=n&useRawPayload=yes", "", `422 {"errors":{"useRawPayload":["The useRawPayload must be true or false."]},` + invalid + `}`},
		{"invalid JSON", "POST /iot/decoders", `{"name":`, `422 {"message":"Invalid JSON."}`},
		{"text after the JSON object", "POST /iot/decoders", `{"name":"a"}}`, `422 {"message":"Invalid JSON."}`},
		{"a JSON array", "POST /iot/decoders", `[]`, `422 {"message":"Invalid JSON."}`},
		{"a sensor", "POST /iot/decoders/d1/sensors", `{"sensor_type_id":"state","key":"a.b"}`,
			`200 {"data":[{"sensor_type_id":"temperature","key":"t"},{"sensor_type_id":"state","key":"door"},{"sensor_type_id":"state","key":"a.b"}]}`},
		{"a sensor from query parameters", "POST /iot/decoders/d1/sensors?sensor_type_id=temperature&key=a.b", "",
			`200 {"data":[{"sensor_type_id":"temperature","key":"t"},{"sensor_type_id":"state","key":"door"},{"sensor_type_id":"temperature","key":"a.b"}]}`},
		{"a sensor without fields", "POST /iot/decoders/d1/sensors", `{}`,
			`422 {"errors":{"key":["The key field is required."],"sensor_type_id":["The sensor type id field is required."]},` + invalid + `}`},
		{"a sensor of an unknown decoder", "POST /iot/decoders/nobody/sensors", `{"sensor_type_id":"state","key":"k"}`, "404"},
		{"a sensor is calibrated", "PATCH /iot/sensors/" + iot.SensorID("id1", "t"), `{"slope":1.8,"offset":32,"name":"T","retention_days":7}`,
			`200 {"data":` + strings.NewReplacer(`"name":"t"`, `"name":"T"`, `"slope":1`, `"slope":1.8`, `"offset":0`, `"offset":32`, `:null`, `:7`).Replace(sensor("t", "temperature")) + `}`},
		{"null changes nothing", "PATCH /iot/sensors/" + iot.SensorID("id1", "door"), `{"slope":null}`, `200 {"data":` + sensor("door", "state") + `}`},
		{"a sensor is changed by query parameters", "PATCH /iot/sensors/" + iot.SensorID("id1", "door") + "?offset=0&slope=1", "", `200 {"data":` + sensor("door", "state") + `}`},
		{"a slope that is not a number", "PATCH /iot/sensors/" + iot.SensorID("id1", "t"), `{"slope":"steep"}`, `422 {"errors":{"slope":["The slope must be a number."]},` + invalid + `}`},
		{"a fractional retention", "PATCH /iot/sensors/" + iot.SensorID("id1", "t"), `{"retention_days":1.5}`, `422 {"errors":{"retention_days":["The retention days must be an integer."]},` + invalid + `}`},
		{"a retention with an exponent", "PATCH /iot/sensors/" + iot.SensorID("id1", "door"), `{"retention_days":0e1}`, `200 {"data":` + sensor("door", "state") + `}`},
		{"a slope too small for a float64", "PATCH /iot/sensors/" + iot.SensorID("id1", "t"), `{"slope":1e-400}`, `422 {"errors":{"slope":["The slope must be a number."]},` + invalid + `}`},
		{"a slope too large for a float64", "PATCH /iot/sensors/" + iot.SensorID("id1", "t"), `{"slope":1e999}`, `422 {"errors":{"slope":["The slope must be a number."]},` + invalid + `}`},
		{"a retention of half a day", "PATCH /iot/sensors/" + iot.SensorID("id1", "t"), `{"retention_days":0.5}`, `422 {"errors":{"retention_days":["The retention days must be an integer."]},` + invalid + `}`},
		{"an unknown sensor", "PATCH /iot/sensors/nobody", `{"slope":1}`, "404"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := a.ask(tc.line, "acme", tc.body); got != tc.want {
				t.Errorf("\n got %s\nwant %s", got, tc.want)
			}
		})
	}
	for contentType, want := range map[string]string{
		"text/plain": "415 ", "application/jsonp": "415 ", "application/json-patch+json": "415 ",
		"application/json; charset=utf-8": "422 ", "Application/JSON ;x=y": "422 ",
	} {
		got := a.ask("POST /iot/decoders", "acme", `{"name":"n"}`, "Content-Type", contentType)
		answertest.HasPrefix(t, "the answer to "+contentType, got, want)
		if want == "415 " {
			relaytest.Equal(t, "the answer to "+contentType, got, `415 {"message":"Content-Type must be application/json."}`)
		}
	}
}

func TestReadingsAreQueriedByTimeAndLimit(t *testing.T) {
	a := newAPI(t)
	a.fill()
	a.ask("GET /iot/devices/id1/readings?startDate=2026-03-01%2011:00:00&endDate=2026-03-01+13:00:00&limit=5", "acme", "")
	q := a.readings.query
	relaytest.Equal(t, "the query", q, iot.Query{
		Account: 1, DeviceID: "id1", Types: []string{"state", "temperature"}, Limit: 5,
		From: time.Date(2026, 3, 1, 11, 0, 0, 0, time.UTC), To: time.Date(2026, 3, 1, 13, 0, 1, -1, time.UTC),
	})
}

func TestAccountCannotReadAnothersRecords(t *testing.T) {
	a := newAPI(t)
	a.fill()
	for line, want := range map[string]string{
		"GET /iot/decoders":                                          `200 {"data":[]}`,
		"GET /iot/decoders/d1":                                       "404",
		"GET /iot/decoders/d1/sensors":                               "404",
		"POST /iot/decoders/d1/sensors":                              "404",
		"GET /iot/devices":                                           `200 {"data":[]}`,
		"GET /iot/devices/id1":                                       `422 {"message":"Invalid Device."}`,
		"GET /iot/devices/identifier/aabbcc001122":                   `422 {"message":"Invalid Device."}`,
		"GET /iot/devices/id1/sensors":                               "404",
		"GET /iot/devices/id1/readings":                              "404",
		"GET /iot/devices/id1/readings/latest":                       "404",
		"GET /iot/devices/id1/readings/aggregate?type=max":           "404",
		"PATCH /iot/sensors/" + iot.SensorID("id1", "t"):             "404",
		"PATCH /iot/sensors/" + iot.SensorID("id1", "t") + "?name=x": "404",
	} {
		body := ""
		if !strings.HasPrefix(line, "GET") {
			body = `{"sensor_type_id":"state","key":"k","slope":5}`
		}
		if got := a.ask(line, "globex", body); got != want {
			t.Errorf("%s: got %s, want %s", line, got, want)
		}
	}
}

func TestRequestsWithoutPermissionAreRefused(t *testing.T) {
	a := newAPI(t)
	for token, want := range map[string]string{
		"": `401 {"message":"Unauthenticated."}`, "nobody": `401 {"message":"Unauthenticated."}`,
		"hook": `403 {"message":"This action is unauthorised."}`, "Bearer acme": `200 {"data":[]}`,
	} {
		if got := a.ask("GET /iot/devices", token, ""); got != want {
			t.Errorf("token %q: got %s, want %s", token, got, want)
		}
	}
	relaytest.NoError(t, a.db.Close())
	if got := a.ask("GET /iot/devices", "acme", ""); !strings.HasPrefix(got, "503 ") {
		t.Errorf("with the store closed: got %s, want status 503", got)
	}
}
