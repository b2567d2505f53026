package iotapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

// created returns the answer to the creation of a device; position holds the members
// longitude, latitude, altitude and, for Bluetooth, mac_address.
func created(id, name, identifier, kind, parameters, position string) string {
	return `201 {"data":{"id":"` + id + `","name":"` + name + `","identifier":"` + identifier + `","comment":"","type":"` + kind +
		`","decoder_id":"d1","gateway_id":"` + id + `","location_id":"loc1","frame_logging":"disabled","parameters":"` + parameters +
		`","created_at":"2026-03-01 12:00:00","updated_at":"2026-03-01 12:00:00",` + position + `}}`
}

func invalidFields(fields string) string { return `422 {"errors":{` + fields + `},` + invalid + `}` }

const claimed = `422 {"message":"Device has already been claimed."}`

func TestDevicesAreCreated(t *testing.T) {
	a := newAPI(t)
	a.fill()
	const noPosition = `"longitude":null,"latitude":null,"altitude":null`
	const common = `"location_id":"loc1","decoder_id":"d1","name":"n"`
	for _, tc := range []struct{ name, line, body, want string }{
		{"a Bluetooth device", "POST /iot/devices/bluetooth", `{"mac_address":"00:1A:7d:DA:71:13","longitude":"-2.0943","latitude":57.1497,"altitude":"12","parser_params":{"k": 1},` + common + `}`,
			created("id2", "n", "001a7dda7113", "bluetooth", `{\"k\":1}`, `"longitude":-2.0943,"latitude":57.1497,"altitude":12,"mac_address":"001a7dda7113"`)},
		{"a LoRaWAN device", "POST /iot/devices/lorawan", `{"identifier":"24:E1:24:13:6B:50:22:17","altitude":"","parser_params":"{\"k\":1}",` + common + `}`,
			created("id3", "n", "24e124136b502217", "lorawan", `{\"k\":1}`, noPosition)},
		{"a device of the type other", "POST /iot/devices/other", `{"identifier":"Tank 7",` + common + `}`, created("id4", "n", "Tank 7", "other", "", noPosition)},
		{"a device from query parameters", "POST /iot/devices/other?location_id=loc1&decoder_id=d1&identifier=q&name=n&longitude=1.5&parser_params=%7B%22k%22:%5B%5D%7D", "",
			created("id5", "n", "q", "other", `{\"k\":[]}`, `"longitude":1.5,"latitude":null,"altitude":null`)},
		{"the body wins over the query", "POST /iot/devices/other?identifier=q&name=m", `{"identifier":"r",` + common + `}`, created("id6", "n", "r", "other", "", noPosition)},
		{"a MAC address with hyphens", "POST /iot/devices/bluetooth", `{"mac_address":"00-1a-7d-da-71-13",` + common + `}`, claimed},
		{"a MAC address with dots", "POST /iot/devices/bluetooth", `{"mac_address":"001a.7dda.7113",` + common + `}`, claimed},
		{"a device EUI without colons", "POST /iot/devices/lorawan", `{"identifier":"24E124136B502217",` + common + `}`, claimed},
		{"another device type's identifier", "POST /iot/devices/other", `{"identifier":"24e124136b502217",` + common + `}`, claimed},
		{"an identifier in use", "POST /iot/devices/other", `{"identifier":"Tank 7",` + common + `}`, claimed},
		{"a Bluetooth device without fields", "POST /iot/devices/bluetooth", `{}`,
			invalidFields(`"decoder_id":["The decoder id field is required."],"location_id":["The location id field is required."],"mac_address":["The mac address field is required."],"name":["The name field is required."]`)},
		{"a device of the type other without fields", "POST /iot/devices/other", `{"identifier":""}`,
			invalidFields(`"decoder_id":["The decoder id field is required."],"identifier":["The identifier field is required."],"location_id":["The location id field is required."],"name":["The name field is required."]`)},
		{"an unknown location and decoder", "POST /iot/devices/other", `{"identifier":"x","location_id":"loc9","decoder_id":"d9","name":"n"}`,
			invalidFields(`"decoder_id":["The selected decoder id is invalid."],"location_id":["The selected location id is invalid."]`)},
		{"an invalid device EUI", "POST /iot/devices/lorawan", `{"identifier":"24e124",` + common + `}`, invalidFields(`"identifier":["The identifier must be a device EUI, 16 hexadecimal digits."]`)},
		{"an invalid MAC address", "POST /iot/devices/bluetooth", `{"mac_address":"00:1A:7D:DA:71",` + common + `}`, invalidFields(`"mac_address":["The mac address must be a MAC address, 12 hexadecimal digits."]`)},
		{"invalid coordinates", "POST /iot/devices/other", `{"identifier":"x","longitude":"west","latitude":"90.5","altitude":1e7,` + common + `}`,
			invalidFields(`"altitude":["The altitude must be between -1000000 and 1000000."],"latitude":["The latitude must be between -90 and 90."],"longitude":["The longitude must be a number."]`)},
		{"an array as longitude", "POST /iot/devices/other", `{"longitude":[1]}`, invalidFields(`"longitude":["The longitude must be a number."]`)},
		{"a number as name", "POST /iot/devices/other", `{"name":7}`, invalidFields(`"name":["The name must be a string."]`)},
		{"an array as parameters", "POST /iot/devices/other", `{"identifier":"x","parser_params":[1],` + common + `}`, invalidFields(`"parser_params":["The parser params must be a JSON object."]`)},
		{"invalid JSON", "POST /iot/devices/lorawan", `{"identifier":`, `422 {"message":"Invalid JSON."}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := a.ask(tc.line, "acme", tc.body); got != tc.want {
				t.Errorf("\n got %s\nwant %s", got, tc.want)
			}
		})
	}
	if got := a.ask("GET /iot/devices/identifier/24%3Ae1%3A24%3A13-6B-50-22%2017", "acme", ""); !strings.HasPrefix(got, `200 {"id":"id3"`) {
		t.Errorf("the device of an identifier with separators: got %s, want id3", got)
	}
	got := a.ask("POST /iot/devices/lorawan", "globex", `{"identifier":"24e124136b502217",`+common+`}`)
	answertest.HasPrefix(t, "the answer for another account's location and decoder", got, "422 ")
	answertest.NotContains(t, "the answer for another account's location and decoder", got, "claimed")
}

func TestDevicesAndDecodersAreChanged(t *testing.T) {
	a := newAPI(t)
	a.fill()
	changed := func(pairs ...string) string {
		return `200 {"data":` + strings.NewReplacer(pairs...).Replace(device) + `}`
	}
	for _, tc := range []struct{ name, line, body, want string }{
		{"no fields", "PATCH /iot/devices/id1", `{}`, changed()},
		{"null changes nothing", "PATCH /iot/devices/id1", `{"name":null,"longitude":null,"parser_params":null}`, changed()},
		{"a name", "PATCH /iot/devices/id1", `{"name":"quay"}`, changed(`"probe"`, `"quay"`)},
		{"a name from the query", "PATCH /iot/devices/id1?name=probe", "", changed()},
		{"coordinates and frame logging", "PATCH /iot/devices/id1", `{"longitude":"","altitude":-3.25,"frame_logging":"enabled"}`,
			changed(`"-2.0943"`, `null`, `"altitude":null`, `"altitude":"-3.25"`, `disabled`, `enabled`)},
		{"coordinates and frame logging are reset", "PATCH /iot/devices/id1", `{"longitude":"-2.0943","altitude":"","frame_logging":"disabled"}`, changed()},
		{"parameters", "PATCH /iot/devices/id1", `{"parser_params":{"k":2}}`, changed(`{\"k\":1}`, `{\"k\":2}`)},
		{"an unknown decoder", "PATCH /iot/devices/id1", `{"decoder_id":"d9"}`, invalidFields(`"decoder_id":["The selected decoder id is invalid."]`)},
		{"an unknown frame_logging value", "PATCH /iot/devices/id1", `{"frame_logging":"on"}`, invalidFields(`"frame_logging":["The selected frame logging is invalid."]`)},
		{"a boolean as frame_logging", "PATCH /iot/devices/id1", `{"frame_logging":true}`, invalidFields(`"frame_logging":["The frame logging must be a string."]`)},
		{"a change of an unknown device", "PATCH /iot/devices/nobody", `{"name":"n"}`, "404"},
		{"a decoder's name", "PATCH /iot/decoders/d1", `{"name":"P"}`, `200 {"data":{"id":"d1","name":"P","description":"A probe","type":"other"}}`},
		{"a decoder's type", "PATCH /iot/decoders/d1?type=serial&name=Probe", "", `200 {"data":{"id":"d1","name":"Probe","description":"A probe","type":"serial"}}`},
		{"an expression that does not compile", "PATCH /iot/decoders/d1", `{"codec":"expr","source":"a = 1.0\n\nlevel = bytes[0] +* 2"}`,
			invalidFields(`"source":["expr: level: line 3, column 19: unexpected token Operator(\"*\")"]`)},
		{"a script that does not compile", "PATCH /iot/decoders/d1", `{"codec":"javascript","source":"function Decoder(bytes) {\n  return {a: };\n}"}`,
			invalidFields(`"source":["javascript: line 2, column 14: Unexpected token }"]`)},
		{"a script that throws when it is loaded", "PATCH /iot/decoders/d1", `{"codec":"javascript","source":"\n  nothing.x"}`,
			invalidFields(`"source":["javascript: line 2, column 3: ReferenceError: nothing is not defined"]`)},
		{"a flag of the wrong type", "PATCH /iot/decoders/d1", `{"useRawPayload":"yes"}`, invalidFields(`"useRawPayload":["The useRawPayload must be true or false."]`)},
		{"a change of an unknown decoder", "PATCH /iot/decoders/nobody", `{"name":"n"}`, "404"},
		{"a decoder's sensor is deleted", "DELETE /iot/decoders/d1/sensors/t", "", `200 {"data":[{"sensor_type_id":"state","key":"door"}]}`},
		{"a deleted decoder sensor", "DELETE /iot/decoders/d1/sensors/t", "", "404"},
		{"a sensor of an unknown decoder", "DELETE /iot/decoders/nobody/sensors/t", "", "404"},
		{"a key with a slash is mapped", "POST /iot/decoders/d1/sensors", `{"sensor_type_id":"state","key":"a/b c.ä"}`,
			`200 {"data":[{"sensor_type_id":"state","key":"door"},{"sensor_type_id":"state","key":"a/b c.ä"}]}`},
		{"a key with a slash is deleted", "DELETE /iot/decoders/d1/sensors/a%2Fb%20c.%C3%A4", "", `200 {"data":[{"sensor_type_id":"state","key":"door"}]}`},
		{"the last sensor is deleted", "DELETE /iot/decoders/d1/sensors/door", "", `200 {"data":[]}`},
		{"a device is deleted", "DELETE /iot/devices/id1", "", "204"},
		{"a deleted device", "DELETE /iot/devices/id1", "", `422 {"message":"Invalid Device."}`},
		{"a deleted device's readings", "GET /iot/devices/id1/readings", "", "404"},
		{"a deleted device's latest readings", "GET /iot/devices/id1/readings/latest", "", "404"},
		{"a deleted device's sensors", "GET /iot/devices/id1/sensors", "", "404"},
		{"a deleted device's identifier", "GET /iot/devices/identifier/aabbcc001122", "", `422 {"message":"Invalid Device."}`},
		{"a deleted device's sensor", "PATCH /iot/sensors/" + iot.SensorID("id1", "t"), `{"slope":2}`, "404"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := a.ask(tc.line, "acme", tc.body); got != tc.want {
				t.Errorf("\n got %s\nwant %s", got, tc.want)
			}
		})
	}
	if got := a.ask("GET /iot/devices", "acme", ""); got != `200 {"data":[]}` {
		t.Errorf("the devices: got %s, want none", got)
	}
}

func TestEventMarkersAreAdded(t *testing.T) {
	a := newAPI(t)
	a.fill()
	const path = "POST /iot/devices/id1/event-markers"
	marker := func(status int, id, comment, createdAt string) string {
		return fmt.Sprintf(`%d {"data":{"id":%q,"comment":%q,"created_at":%q}}`, status, id, comment, createdAt)
	}
	for _, tc := range []struct{ name, line, body, want string }{
		{"a marker without a time", path, `{"event_marker_id":"e1","comment":"moved <&>"}`, marker(201, "e1", "moved <&>", "2026-03-01 12:00:00")},
		{"an existing marker is replaced", path, `{"event_marker_id":"e1","comment":"moved","date_published":"2026-02-28 23:59:59"}`, marker(200, "e1", "moved", "2026-02-28 23:59:59")},
		{"a marker from query parameters", path + "?event_marker_id=e2&comment=c&date_published=2026-02-28%2001:00:00", "", marker(201, "e2", "c", "2026-02-28 01:00:00")},
		{"a time with a zone", path, `{"event_marker_id":"e3","comment":"c","date_published":"2026-02-28T01:00:00+02:00"}`, marker(201, "e3", "c", "2026-02-27 23:00:00")},
		{"a marker without fields", path, `{}`, invalidFields(`"comment":["The comment field is required."],"event_marker_id":["The event marker id field is required."]`)},
		{"a time in another format", path, `{"event_marker_id":"e4","comment":"c","date_published":"28/02/2026"}`, invalidFields(`"date_published":["The date published does not match the format YYYY-MM-DD HH:mm:ss."]`)},
		{"a day that does not exist", path, `{"event_marker_id":"e4","comment":"c","date_published":"2026-02-29 00:00:00"}`, invalidFields(`"date_published":["The date published does not match the format YYYY-MM-DD HH:mm:ss."]`)},
		{"a number as id", path, `{"event_marker_id":4}`, invalidFields(`"event_marker_id":["The event marker id must be a string."]`)},
		{"an unknown device", "POST /iot/devices/nobody/event-markers", `{"event_marker_id":"e","comment":"c"}`, "404"},
		{"all markers, newest first", "GET /iot/devices/id1/event-markers", "",
			`200 {"data":[{"id":"e1","comment":"moved","created_at":"2026-02-28 23:59:59"},{"id":"e2","comment":"c","created_at":"2026-02-28 01:00:00"},{"id":"e3","comment":"c","created_at":"2026-02-27 23:00:00"}]}`},
		{"a page of markers", "GET /iot/devices/id1/event-markers?page=2&per_page=2", "", `200 {"data":[{"id":"e3","comment":"c","created_at":"2026-02-27 23:00:00"}]}`},
		{"a page after the last", "GET /iot/devices/id1/event-markers?page=2", "", `200 {"data":[]}`},
		{"an unknown parameter", "GET /iot/devices/id1/event-markers?ids=e1&device_id=id1", "", invalidFields(`"ids":["This parameter is unknown: the operation takes page, per_page."]`)},
		{"page and per_page out of range", "GET /iot/devices/id1/event-markers?page=0&per_page=501", "", invalidFields(`"page":["The page must be between 1 and 2147483647."],"per_page":["The per page must be between 1 and 500."]`)},
		{"markers of an unknown device", "GET /iot/devices/nobody/event-markers", "", "404"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(a.ask(tc.line, "acme", tc.body)); got != tc.want {
				t.Errorf("\n got %s\nwant %s", got, tc.want)
			}
		})
	}
}

// Records of another account are answered like records that do not exist.
func TestAccountCannotChangeAnothersRecords(t *testing.T) {
	a := newAPI(t)
	a.fill()
	before := a.ask("GET /iot/devices", "acme", "") + a.ask("GET /iot/decoders/d1/sensors", "acme", "")
	for line, want := range map[string]string{
		"PATCH /iot/decoders/d1":              "404",
		"DELETE /iot/decoders/d1/sensors/t":   "404",
		"PATCH /iot/devices/id1":              "404",
		"DELETE /iot/devices/id1":             `422 {"message":"Invalid Device."}`,
		"POST /iot/devices/id1/event-markers": "404",
		"GET /iot/devices/id1/event-markers":  "404",
		"GET /iot/devices/id1/frames":         "404",
		"PATCH /iot/devices/id1?name=theirs":  "404",
	} {
		body := ""
		if strings.HasPrefix(line, "P") {
			body = `{"name":"theirs","event_marker_id":"e","comment":"c"}`
		}
		if got := a.ask(line, "globex", body); got != want {
			t.Errorf("%s: got %s, want %s", line, got, want)
		}
	}
	if after := a.ask("GET /iot/devices", "acme", "") + a.ask("GET /iot/decoders/d1/sensors", "acme", ""); after != before {
		t.Errorf("before %s\nafter  %s", before, after)
	}
}

// An identifier may equal a path segment or need URL encoding.
func TestDevicesAreFoundByAnyIdentifier(t *testing.T) {
	a := newAPI(t)
	a.fill()
	for i, name := range []string{"readings", "sensors", "frames", "event-markers", "identifier", "a/b", "50%", "ä ö", "other", "?x=1"} {
		escaped := strings.NewReplacer("/", "%2F", "%", "%25", " ", "%20", "?", "%3F", "ä", "%C3%A4", "ö", "%C3%B6").Replace(name)
		body := fmt.Sprintf(`{"location_id":"loc1","decoder_id":"d1","identifier":%q,"name":"n"}`, name)
		want := fmt.Sprintf(`{"id":"id%d"`, i+2)
		if got := a.ask("POST /iot/devices/other", "acme", body); !strings.HasPrefix(got, `201 {"data":`+want) {
			t.Errorf("create %s: got %s, want the device %s", name, got, want)
		}
		if got := a.ask("GET /iot/devices/identifier/"+escaped, "acme", ""); !strings.HasPrefix(got, "200 "+want) {
			t.Errorf("find %s: got %s, want the device %s", name, got, want)
		}
	}
}

func TestLocationsAreCreatedAndAssigned(t *testing.T) {
	a := newAPI(t)
	a.fill()
	for _, tc := range []struct{ line, token, body, want string }{
		{"GET /iot/locations", "acme", "", `200 {"data":[{"id":"loc1","name":"","imported":true}]}`},
		{"POST /iot/locations", "acme", `{"name":"Yard"}`, `201 {"data":{"id":"id2","name":"Yard","imported":false}}`},
		{"POST /iot/locations?name=Gate", "globex", "", `201 {"data":{"id":"id3","name":"Gate","imported":false}}`},
		{"POST /iot/locations", "acme", `{}`, invalidFields(`"name":["The name field is required."]`)},
		{"POST /iot/locations", "acme", `{"name":"Gate","imported":true}`, invalidFields(`"imported":["The location loc1 already receives imported devices."]`)},
		{"PATCH /iot/devices/id1", "acme", `{"location_id":"id2"}`, `200 {"data":` + strings.Replace(device, "loc1", "id2", 1) + `}`},
		{"PATCH /iot/devices/id1", "acme", `{"location_id":"id3"}`, invalidFields(`"location_id":["The selected location id is invalid."]`)},
		{"PATCH /iot/devices/id1", "acme", `{"location_id":""}`, invalidFields(`"location_id":["The selected location id is invalid."]`)},
		{"GET /iot/locations", "globex", "", `200 {"data":[{"id":"id3","name":"Gate","imported":false}]}`},
	} {
		relaytest.Equal(t, tc.line+" "+tc.body, a.ask(tc.line, tc.token, tc.body), tc.want)
	}
}

func TestOnlyUnusedDecoderIsDeleted(t *testing.T) {
	a := newAPI(t)
	a.fill()
	for _, tc := range []struct{ line, token, body, want string }{
		{"DELETE /iot/decoders/d1", "acme", "", invalidFields(`"decoder_id":["Number of devices that use the decoder: 1."]`)},
		{"PATCH /iot/devices/id1", "acme", `{"decoder_id":""}`, `200 {"data":` + strings.Replace(device, `"decoder_id":"d1"`, `"decoder_id":""`, 1) + `}`},
		{"DELETE /iot/decoders/d1", "globex", "", "404"},
		{"DELETE /iot/decoders/d1", "acme", "", "204"},
		{"DELETE /iot/decoders/d1", "acme", "", "404"},
		{"GET /iot/decoders", "acme", "", `200 {"data":[]}`},
	} {
		relaytest.Equal(t, tc.line+" "+tc.body, a.ask(tc.line, tc.token, tc.body), tc.want)
	}
}

func TestDecodersAreCreatedFromTemplates(t *testing.T) {
	a := newAPI(t)
	var list struct{ Data []map[string]any }
	body := strings.TrimPrefix(a.ask("GET /iot/decoders/templates", "acme", ""), "200 ")
	relaytest.NoError(t, json.Unmarshal([]byte(body), &list))
	for _, template := range list.Data {
		delete(template, "id")
		template["type"] = "other"
		request, err := json.Marshal(template)
		relaytest.NoError(t, err)
		answertest.Contains(t, string(request), a.ask("POST /iot/decoders", "acme", string(request)), "201 ")
	}
	relaytest.Equal(t, "the number of templates", len(list.Data), 5)
}
