package netserver

import (
	"errors"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
)

func TestDetectByTheShapeOfTheBody(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       Sender
	}{
		{"ChirpStack v4 with a nested devEUI", `{"time":"x","deviceInfo":{"tenantId":"","devEui":"a84041d2c5182f01"}}`, ChirpStackV4},
		{"deviceInfo without devEui is generic", `{"deviceInfo":{"name":"x"}}`, Generic},
		{"ChirpStack v3 with a base64 devEUI", `{"applicationID":"12","devEUI":"qEBB0sUYLwE=","fPort":1}`, ChirpStackV3},
		{"a Milesight gateway with a numeric application", `{"applicationID":1,"devEUI":"24e124e100000001","data":"AQ=="}`, ChirpStackV3},
		{"The Things Stack", `{"end_device_ids":{"device_id":"a"},"uplink_message":{}}`, TheThingsStack},
		{"TTN v2", `{"app_id":"a","dev_id":"b","hardware_serial":"00","payload_raw":"AQ=="}`, TTNv2},
		{"TTN v2 without a serial", `{"dev_id":"b","payload_raw":"AQ=="}`, TTNv2},
		{"Helium's Console", `{"app_eui":"70","dev_eui":"1D","reported_at":1,"payload":"AQ=="}`, Helium},
		{"ThingPark with its wrapper", `{"DevEUI_uplink":{"DevEUI":"20","payload_hex":"01"}}`, ThingPark},
		{"ThingPark's alarms", `{"BS_alarm":{}}`, ThingPark},
		{"KPN's flat ThingPark", `{"DevEUI":"20","payload_hex":"01"}`, ThingPark},
		{"Swisscom's ThingPark", `{"data":{"DevEUI":"20","FPort":1},"uplinkMetrics":{}}`, ThingPark},
		{"LORIOT", `{"cmd":"rx","EUI":"1000000000000001","data":"01"}`, LORIOT},
		{"CRA's envelope", `{"type":"D","data":"{\"cmd\":\"rx\"}","tech":"L"}`, CRA},
		{"CRA's envelope with data that is not a string is generic", `{"type":"D","data":{},"tech":"L"}`, Generic},
		{"Everynet", `{"type":"uplink","meta":{"device":"00"},"params":{}}`, Everynet},
		{"Netmore's list", `[{"devEui":"70","sensorType":"cube","payload":"b0"}]`, Netmore},
		{"KPN's SenML", `[{"bn":"urn:dev:DEVEUI:0059AC0000000001:","n":"payload","vs":"01"}]`, KPN},
		{"SenML with a base name", `[{"bn":"urn:dev:ow:1:","n":"a","v":1}]`, SenML},
		{"SenML without a base name", `[{"n":"a","vb":true}]`, SenML},
		{"a list of items with n but without a value is generic", `[{"n":"a","id":"b"}]`, Generic},
		{"Kerlink", `{"id":"5d","endDevice":{"devEui":"34"},"payload":"00"}`, Kerlink},
		{"Monnit's data", `{"gatewayMessage":{},"sensorMessages":[]}`, Monnit},
		{"Monnit's rules", `{"subject":"x","reading":"y","rule":"z"}`, MonnitRule},
		{"Disruptive Technologies", `{"event":{"eventId":"a","targetName":"projects/p/devices/d","eventType":"touch"},"labels":{}}`, Disruptive},
		{"UbiBot", `{"channel_id":"1","feeds":[]}`, UbiBot},
		{"Milesight's platform", `{"eventType":"DEVICE_DATA","data":{"deviceProfile":{}}}`, MilesightDP},
		{"a batch of Milesight's platform", `[{"eventType":"DEVICE_DATA","data":{"deviceProfile":{}}}]`, MilesightDP},
		{"a test message of Milesight's platform", `{"eventVersion":"1.0","eventType":"WEBHOOK_TEST","data":"hello"}`, MilesightDP},
		{"AWS IoT Core", `{"WirelessDeviceId":"a","PayloadData":"AQ=="}`, AWSIoTCore},
		{"Sigfox in JSON", `{"device":"1A2345","data":"92","seqNumber":"1492"}`, Sigfox},
		{"keys are case-sensitive", `{"ENDDEVICE":{"devEui":"34"},"DeviceInfo":{"devEui":"1"}}`, Generic},
		{"values are not keys", `{"a":"end_device_ids","b":["DevEUI_uplink"]}`, Generic},
		{"ThingPark in XML", `<?xml version="1.0"?><DevEUI_uplink xmlns="x"></DevEUI_uplink>`, ThingPark},
		{"another XML document", `<note/>`, "xml"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := Post{Body: []byte(c.body)}
			if got := Detect(p); got != c.want {
				t.Errorf("Detect: got %q, want %q", got, c.want)
			}
			if got, err := Inspect(p); got != c.want || err != nil {
				t.Errorf("Inspect: got %q, %v, want %q", got, err, c.want)
			}
			_, err := Parse(p)
			var unsupported *UnsupportedError
			if row := rowOf(c.want); errors.As(err, &unsupported) == row.hasParser() {
				t.Errorf("Parse: got %v, the sender has a parser: %t", err, row.hasParser())
			}
		})
	}
}

func TestSendersThatDoNotPostJSON(t *testing.T) {
	form := "application/x-www-form-urlencoded; charset=utf-8"
	for _, c := range []struct {
		name string
		post Post
		want Sender
	}{
		{"Sigfox posts forms", Post{ContentType: form, Body: []byte("device=1A2345&data=92&seqNumber=7")}, Sigfox},
		{"Sigfox sends its values in the query", Post{Query: url.Values{"id": {"1A2345"}, "seqNumber": {"7"}}}, Sigfox},
		{"a form for the path lpwan is Sigfox's", Post{ContentType: form, Path: "lpwan", Body: []byte("dev=1&d=2")}, Sigfox},
		{"another form has an unknown sender", Post{ContentType: form, Path: "generic", Body: []byte("dev=1&d=2")}, "form"},
		{"JSON declared as a form is JSON", Post{ContentType: form, Body: []byte(`{"id":"a"}`)}, Generic},
		{"JSON declared as binary is JSON", Post{ContentType: "application/octet-stream", Body: []byte(`{"id":"a"}`)}, Generic},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, err := Inspect(c.post); got != c.want || err != nil {
				t.Errorf("Inspect: got %q, %v, want %q", got, err, c.want)
			}
			if got := Detect(c.post); got != c.want {
				t.Errorf("Detect: got %q, want %q", got, c.want)
			}
		})
	}
}

func TestInspectRefusesInvalidBodies(t *testing.T) {
	for name, body := range map[string]string{
		"an empty body":                    "",
		"blanks":                           " \n",
		"a truncated body":                 `{"deviceInfo":{"devEui":"a84041d2c5182f01"},"data":"AQ`,
		"an error after the sender's key":  `{"end_device_ids":{}, nonsense}`,
		"an error in a list's second item": `[{"bn":"a","n":"b","v":1},{]`,
		"plain text":                       "temperature=4",
		"too many levels":                  strings.Repeat(`{"deviceInfo":`, 100000),
	} {
		t.Run(name, func(t *testing.T) {
			p := Post{Body: []byte(body), ContentType: "application/json"}
			if s, err := Inspect(p); !isSyntax(err) {
				t.Errorf("Inspect: got %q, %v, want a syntax error", s, err)
			}
			if frames, err := Parse(p); !isSyntax(err) || len(frames) > 0 {
				t.Errorf("Parse: got %d frames, %v, want a syntax error", len(frames), err)
			}
		})
	}
}

// Requests are inspected concurrently, so a hostile body must not allocate a multiple of its size.
func TestInspectAllocatesLittle(t *testing.T) {
	for name, body := range map[string]string{
		"an object of a million members": `{` + strings.Repeat(`"a":1,`, 1e6) + `"b":{}}`,
		"a list of a million numbers":    `{"devEui":[` + strings.Repeat(`1,`, 1e6) + `1]}`,
		"a million objects in a list":    `[{"l":[` + strings.Repeat(`{"a":{}},`, 1e6) + `1]}]`,
	} {
		t.Run(name, func(t *testing.T) {
			p := Post{Body: []byte(body)}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Inspect(p)
			runtime.ReadMemStats(&after)
			relaytest.NoError(t, err)
			if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 1<<18 {
				t.Errorf("Inspect allocates %d bytes, want at most %d", allocated, 1<<18)
			}
		})
	}
}

func TestAListMayHaveAThousandFrames(t *testing.T) {
	item := `{"t":1}`
	p := Post{DeviceID: "d", Body: []byte("[" + strings.Repeat(item+",", maxFrames) + item + "]")}
	frames, err := Parse(p)
	if len(frames) != maxFrames || err == nil {
		t.Errorf("got %d frames and error %v, want %d and an error", len(frames), err, maxFrames)
	}
}
