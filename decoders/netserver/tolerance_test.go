package netserver

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonvalues"
	"github.com/penstock/penstock/relay/relaytest"
)

// receivedAt is the time of receipt of the posts.
var receivedAt = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

func parseAt(t *testing.T, path, body string) []decoders.Frame {
	t.Helper()
	frames, err := Parse(Post{Path: path, Body: []byte(body), ReceivedAt: receivedAt})
	relaytest.NoError(t, err)
	return frames
}

// describe describes frames as "kind key=value@time", with notes after "!".
func describe(frames []decoders.Frame) string {
	var parts []string
	for i := range frames {
		f := &frames[i]
		part := string(f.Kind)
		result := jsonvalues.Object(f)
		for _, r := range result.Readings {
			value := fmt.Sprint(r.Value)
			if r.IsText {
				value = r.Text
			}
			if part += " " + r.Key + "=" + value; !r.Time.IsZero() {
				part += r.Time.Format("@15:04:05")
			}
		}
		if f.Battery != nil {
			part += fmt.Sprint(" battery ", *f.Battery)
		}
		if f.Margin != nil {
			part += fmt.Sprint(" margin ", *f.Margin)
		}
		if best, ok := f.BestGateway(); ok && best.RSSI != nil {
			part += fmt.Sprint(" rssi ", *best.RSSI)
		}
		notes := append(f.Warnings, result.Warnings...)
		if f.TimeNote != "" {
			notes = append(notes, f.TimeNote)
		}
		if len(notes) > 0 {
			part += " ! " + strings.Join(notes, "; ")
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " / ")
}

func TestValuesOutsideTheEnvelopeAreRead(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"Sigfox: values and a link quality", `{"device":"2D30A3","time":1795694400,"temperature":215,"humidity":40,"lqi":"Good"}`, "uplink humidity=40 temperature=215"},
		{"Sigfox: values and a position", `{"device":"2D30A3","time":1795694400,"seqNumber":7,"temperature":215,"computedLocation":{"lat":51.9,"lng":4.4,"radius":100,"status":1}}`, "uplink temperature=215"},
		{"Sigfox: values and data", `{"device":"2D30A3","time":1795694400,"seqNumber":7,"data":"0102","temperature":21.5}`, "uplink temperature=21.5"},
		{"Sigfox: a value named temp and another value", `{"device":"2D30A3","time":1795694400,"seqNumber":7,"temp":21.5,"humidity":40}`, "uplink humidity=40 temp=21.5"},
		{"Sigfox: only the values of a status", `{"device":"2D30A3","time":1795694400,"seqNumber":7,"temp":21.5,"batt":3.1,"lqi":null}`, "status batt=3.1 temp=21.5"},
		{"Sigfox: a text and a link quality", `{"device":"2D30A3","time":1795694400,"seqNumber":7,"lqi":"Good","site":"north"}`, "service ! site: is not used: this callback has no data"},
		{"UbiBot: a value within an object", `{"channel_id":"1419","feeds":[{"created_at":"2026-11-20T09:34:15Z","field1":{"value":21.5},"field2":{"value":"7"},"field3":8}]}`,
			"uplink field1=21.5@09:34:15 field2=7@09:34:15 field3=8@09:34:15"},
		{"UbiBot: a list and an object without a value", `{"channel_id":"1419","feeds":[{"created_at":"2026-11-20T09:34:15Z","field1":[1],"field2":{"v":1}}]}`,
			"uplink ! feeds.field1: is not a number, a string, true or false, and is not used; feeds.field2: is not a number, a string, true or false, and is not used"},
		{"Disruptive: an object instead of a number", `{"event":{"eventType":"co2","targetName":"projects/p/devices/d","timestamp":"2026-11-26T11:00:00Z","data":{"co2":{"ppm":{"a":1},"updateTime":"2026-11-26T11:00:00Z"}}}}`,
			"uplink ! event.data.co2.ppm: is not a number, a string, true or false, and is not used"},
		{"ThingPark: the records of points", `{"DevEUI_uplink":{"DevEUI":"A84041D2C5182F01","FPort":"2","FCntUp":"7","Time":"2026-11-26T11:00:00Z","payload_hex":"01","points":{"temperature":{"unitId":"Cel","records":[{"eventTime":"2026-11-26T10:00:00Z","value":20.5},{"eventTime":"2026-11-26T10:10:00Z","value":21}]}}}}`,
			"uplink temperature=20.5@10:00:00 temperature=21@10:10:00"},
	} {
		t.Run(c.name, func(t *testing.T) {
			relaytest.Equal(t, "the frame", describe(parseAt(t, lpwan, c.body)), c.want)
		})
	}
}

// A history in a decoded object is read like a history that a codec returns.
func TestHistoriesInDecodedObjectsAreRead(t *testing.T) {
	const object = `{"temperature":20.5,"history":[{"timestamp":1764150000,"temperature":19.5},{"timestamp":1764150600,"temperature":19.0}]}`
	const want = "temperature=20.5 temperature=19.5@09:40:00 temperature=19@09:50:00"
	for name, body := range map[string]string{
		"ChirpStack v4":          `{"deviceInfo":{"devEui":"a84041d2c5182f01"},"time":"2026-11-26T11:00:00Z","fPort":2,"data":"AQ==","object":` + object + `}`,
		"ChirpStack v3":          `{"applicationID":"1","devEUI":"a84041d2c5182f01","publishedAt":"2026-11-26T11:00:00Z","fPort":2,"data":"AQ==","object":` + object + `}`,
		"ChirpStack v3 in text":  `{"applicationID":"1","devEUI":"qEBB0sUYLwE=","publishedAt":"2026-11-26T11:00:00Z","fPort":2,"data":"AQ==","objectJSON":` + fmt.Sprintf("%q", object) + `}`,
		"The Things Stack":       `{"end_device_ids":{"dev_eui":"A84041D2C5182F01"},"uplink_message":{"f_port":2,"frm_payload":"AQ==","received_at":"2026-11-26T11:00:00Z","decoded_payload":` + object + `}}`,
		"The Things Network v2":  `{"dev_id":"d","hardware_serial":"A84041D2C5182F01","port":2,"payload_raw":"AQ==","metadata":{"time":"2026-11-26T11:00:00Z"},"payload_fields":` + object + `}`,
		"Helium":                 `{"dev_eui":"A84041D2C5182F01","app_eui":"A84041D2C5182F01","uuid":"u","port":2,"payload":"AQ==","reported_at":1795690800000,"decoded":{"status":"success","payload":` + object + `}}`,
		"ThingPark":              `{"DevEUI_uplink":{"DevEUI":"A84041D2C5182F01","FPort":"2","Time":"2026-11-26T11:00:00Z","payload_hex":"01","payload":` + object + `}}`,
		"Milesight":              `{"eventID":"e","eventCreatedTime":"1795690800","eventType":"DEVICE_DATA","data":{"deviceProfile":{"devEUI":"A84041D2C5182F01"},"type":"PROPERTY","payload":` + object + `}}`,
		"a sender of plain JSON": `{"deviceId":"d",` + object[1:],
	} {
		t.Run(name, func(t *testing.T) {
			relaytest.Equal(t, "the frame", describe(parseAt(t, "lorawan", body)), "uplink "+want)
		})
	}
}

func TestInvalidTimesInAHistoryAreNoted(t *testing.T) {
	got := describe(parseAt(t, "generic", `{"deviceId":"d","history":[{"timestamp":"26/11/2026 12:00","t":1}]}`))
	relaytest.Equal(t, "the frame", got, `uplink history.0.t=1 history.0.timestamp=26/11/2026 12:00 ! history.0.timestamp: is not a time from 2000 to 2099, so the list is not read as a history: "26/11/2026 12:00"`)
}

// The clock of a gateway without a time server starts in the past, so another clock is used.
func TestAWrongClockOfAGatewayIsNotUsed(t *testing.T) {
	const wrongTime, rightTime = "2020-01-01T00:07:04Z", "2026-11-26T11:59:58Z"
	want := time.Date(2026, 11, 26, 11, 59, 58, 0, time.UTC)
	chirpStackV3 := `{"applicationID":"1","devEUI":"a84041d2c5182f01","fPort":2,"data":"AQ==",`
	chirpStackV4 := `{"deviceInfo":{"devEui":"a84041d2c5182f01"},"fPort":2,"data":"AQ==",`
	tts := `{"end_device_ids":{"dev_eui":"A84041D2C5182F01"},"uplink_message":{"frm_payload":"AQ==",`
	ttn := `{"dev_id":"d","hardware_serial":"A84041D2C5182F01","port":2,"payload_raw":"AQ==","metadata":{`
	for name, body := range map[string]string{
		"ChirpStack v3, the second gateway is right":     chirpStackV3 + `"publishedAt":"` + rightTime + `","rxInfo":[{"time":"` + wrongTime + `"},{"time":"` + rightTime + `"}]}`,
		"ChirpStack v3, no gateway is right":             chirpStackV3 + `"publishedAt":"` + rightTime + `","rxInfo":[{"time":"` + wrongTime + `"}]}`,
		"ChirpStack v3 without the server's time":        chirpStackV3 + `"rxInfo":[{"time":"` + rightTime + `"},{"time":"` + wrongTime + `"}]}`,
		"ChirpStack v4, the server repeats a wrong time": chirpStackV4 + `"time":"` + wrongTime + `","rxInfo":[{"gwTime":"` + wrongTime + `","nsTime":"2026-11-26T11:59:59Z"},{"gwTime":"` + rightTime + `","nsTime":"2026-11-26T11:59:59Z"}]}`,
		"ChirpStack v4, one gateway":                     chirpStackV4 + `"time":"` + wrongTime + `","rxInfo":[{"gwTime":"` + wrongTime + `","nsTime":"` + rightTime + `"}]}`,
		"ChirpStack v4 without a time":                   chirpStackV4 + `"rxInfo":[{"gwTime":"` + wrongTime + `"},{"gwTime":"` + rightTime + `"}]}`,
		"The Things Stack without its time":              tts + `"rx_metadata":[{"time":"` + wrongTime + `"},{"time":"` + rightTime + `"}]}}`,
		"The Things Network v2 without its time":         ttn + `"gateways":[{"time":"` + wrongTime + `"},{"time":"` + rightTime + `"}]}}`,
		"Helium without its time": `{"dev_eui":"A84041D2C5182F01","app_eui":"A84041D2C5182F01","uuid":"u","payload":"AQ==",` +
			`"hotspots":[{"reported_at":1577837224000},{"reported_at":1795694398000}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			relaytest.Equal(t, "the time", parseAt(t, "lorawan", body)[0].NetworkTime, want)
		})
	}
}

// Some servers write the members of all events, with null or zero in members of other events.
func TestMembersOfOtherEventsChangeNothing(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"ChirpStack v4", `{"deviceInfo":{"devEui":"a84041d2c5182f01"},"queueItemId":null,"acknowledged":null,"batteryLevel":0,"margin":0,"externalPowerSource":false,"gatewayId":null,"downlinkId":null,"level":null,"code":null,"location":null,"integrationName":null,
			"time":"2026-11-26T11:00:00Z","fPort":2,"data":"AQ==","rxInfo":[{"gatewayId":"a1","rssi":-97,"snr":5}]}`, "uplink rssi -97"},
		{"ChirpStack v4, a status", `{"deviceInfo":{"devEui":"a84041d2c5182f01"},"data":null,"fPort":null,"acknowledged":null,"batteryLevel":50,"margin":7,"time":"2026-11-26T11:00:00Z"}`, "status battery 50 margin 7"},
		{"ChirpStack v3", `{"applicationID":"1","devEUI":"a84041d2c5182f01","acknowledged":null,"margin":0,"batteryLevel":0,"error":null,"location":null,"gatewayID":null,"integrationName":null,"objectJSON":null,
			"publishedAt":"2026-11-26T11:00:00Z","rxInfo":[{"gatewayID":"a84041ffff1e2c40","rssi":-97,"loRaSNR":5}],"fPort":2,"data":"AQ==","object":{"t":1}}`, "uplink t=1 rssi -97"},
		{"The Things Stack", `{"end_device_ids":{"dev_eui":"A84041D2C5182F01"},"received_at":"2026-11-26T11:00:00Z","uplink_message":{"f_port":2,"frm_payload":"AQ==","received_at":"2026-11-26T11:00:00Z","app_s_key":null,"rx_metadata":[{"rssi":-97}]},
			"uplink_normalized":null,"join_accept":null,"downlink_ack":null,"downlink_nack":null,"downlink_sent":null,"downlink_failed":null,"downlink_queued":null,"location_solved":null,"service_data":null}`, "uplink rssi -97"},
		{"Everynet", `{"type":"uplink","meta":{"device":"a84041d2c5182f01","gateway":"g"},"params":{"rx_time":1795690800,"port":2,"payload":"AQ==","battery":0,"margin":0,"encrypted_payload":null,"message":null,"position":null,"radio":{"hardware":{"rssi":-97}}}}`, "uplink rssi -97"},
		{"ThingPark", `{"DevEUI_uplink":{"DevEUI":"A84041D2C5182F01","FPort":"2","Time":"2026-11-26T11:00:00Z","payload_hex":"01","AppSKey":"","PayloadEncryption":null,"rawJoinRequest":null,"payload":null,"points":null,"DriverCfg":null,"LrrRSSI":-97,"Lrrid":"g"}}`, "uplink rssi -97"},
		{"LORIOT", `{"cmd":"rx","EUI":"A84041D2C5182F01","ts":1795690800000,"fcnt":7,"port":2,"data":"01","encdata":null,"bat":255,"gws":null,"rssi":-97}`, "uplink rssi -97"},
		{"Kerlink", `{"id":"1","endDevice":{"devEui":"A84041D2C5182F01"},"fPort":2,"fCntUp":7,"fCntDown":null,"payload":"01","recvTime":1795690800000,"gwInfo":[{"rssi":-97}]}`, "uplink rssi -97"},
		{"Monnit", `{"gatewayMessage":null,"sensorMessages":[{"sensorID":"1","dataMessageGUID":"g","messageDate":"2026-11-26 11:00:00","dataType":"Temperature","dataValue":"21.5","batteryLevel":null,"voltage":null}]}`, "uplink Temperature=21.5"},
		{"Disruptive", `{"event":{"eventId":"e","eventType":"temperature","targetName":"projects/p/devices/d","timestamp":"2026-11-26T11:00:00Z","data":{"touch":null,"networkStatus":null,"batteryStatus":null,"labelsChanged":null,"temperature":{"value":21.5,"samples":null,"updateTime":"2026-11-26T11:00:00Z"}}}}`, "uplink temperature.value=21.5@11:00:00"},
		{"Sigfox", `{"device":"2D30A3","time":1795690800,"seqNumber":7,"data":null,"temperature":21.5,"downlinkAck":null,"severity":null,"info":null,"batt":null,"computedLocation":null,"duplicates":null,"lqi":null}`, "uplink temperature=21.5"},
		{"Milesight", `{"eventID":"e","eventCreatedTime":"1795690800","eventType":"DEVICE_DATA","data":{"deviceProfile":{"devEUI":null,"sn":"S1"},"type":"PROPERTY","tslID":null,"payload":{"t":1,"u":null}}}`, "uplink t=1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			relaytest.Equal(t, "the frame", describe(parseAt(t, "lorawan", c.body)), c.want)
		})
	}
}

// The id of a message is not the id of a device: each message would create a device.
func TestMessageIDsAreRefused(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"a network server's frame", `{"id":1595970491225,"deveui":"A1B2C3D4E5F60001","timestamp":"2026-11-26T11:00:00Z","fcnt":57,"port":2,"dataFrame":"CK43qhDwDXI=","rssi":-32}`, "a1b2c3d4e5f60001"},
		{"another spelling", `{"id":"m1","Dev_EUI":"A1-B2-C3-D4-E5-F6-00-01","temperature":21}`, "a1b2c3d4e5f60001"},
		{"within an object", `{"id":"m1","device":{"eui":"A1B2C3D4E5F60001","name":"x"},"temperature":21}`, "a1b2c3d4e5f60001"},
		{"a documented name has precedence", `{"id":"m1","deviceId":"boiler-1","eui":"A1B2C3D4E5F60001"}`, "boiler-1"},
		{"an id alone", `{"id":"boiler-1","temperature":21,"rssi":-70}`, "boiler-1"},
		{"a frame without a device", `{"id":"7","fcnt":57,"port":2,"dataFrame":"CK43qhDwDXI="}`, "! id"},
		{"a payload and its radio", `{"id":"7","payload":"0102","rssi":-70}`, "! id"},
		{"a time instead of an id", `{"id":1795690800123,"temperature":21}`, "! id"},
		{"a UUID and a serial number", `{"id":"550e8400-e29b-41d4-a716-446655440000","serial":"S1","temperature":21}`, "! id"},
		{"a number that is not a Sigfox id", `{"id":1595970491225,"seqNumber":7,"data":"0102"}`, "! device"},
		{"a Sigfox id", `{"id":"2D30A3","seqNumber":7,"data":"0102"}`, "2D30A3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			frames, err := Parse(Post{Path: "generic", Body: []byte(c.body), ReceivedAt: receivedAt})
			got := ""
			if e, ok := err.(*decoders.Error); ok {
				got = "! " + e.Field
			} else if len(frames) == 1 {
				got = frames[0].Identifier
			}
			relaytest.Equal(t, "the device", got, c.want)
		})
	}
}

func TestANullAlternativeOfAFieldChangesNothing(t *testing.T) {
	for _, c := range []struct{ name, path, body, null string }{
		{"ThingPark, the position's time", "/webhooks/lorawan",
			`{"DevEUI_uplink":{"Time":"2026-11-26T11:00:00Z","DevEUI":"1234567890ABCDEF","FPort":1,"FCntUp":4,"payload_hex":"01"%s}}`,
			`,"DevLocTime":null`},
		{"ChirpStack v3, another name of the time", "/webhooks/lorawan",
			`{"applicationID":"1","devEUI":"AQIDBAUGBwg=","txInfo":{"dr":5},"time":"2026-11-26T11:00:00Z","fCnt":1,"fPort":1,"data":"AQ=="%s}`,
			`,"publishedAt":null`},
		{"ChirpStack v3, another name of a gateway's id", "/webhooks/lorawan",
			`{"applicationID":"1","devEUI":"AQIDBAUGBwg=","txInfo":{"dr":5},"publishedAt":"2026-11-26T11:00:00Z","rxInfo":[{"gatewayID":"AQIDBAUGBwg=","rssi":-50%s}],"fCnt":1,"fPort":1,"data":"AQ=="}`,
			`,"mac":null`},
		{"Sigfox, another name of a value", "/webhooks/lpwan",
			`{"device":"2D30A3","time":1795690800,"seqNumber":1,"data":"01","duplicates":[{"bsId":"1A2B","rssi":-110%s}]}`,
			`,"id":null,"RSSI":null`},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := parseAt(t, c.path, fmt.Sprintf(c.body, ""))
			relaytest.Equal(t, "frames", parseAt(t, c.path, fmt.Sprintf(c.body, c.null)), want)
		})
	}
}

func TestThingParkUplinksHaveTheTimeOfTheirReception(t *testing.T) {
	frames := parseAt(t, "/webhooks/lorawan", `{"DevEUI_uplink":{"Time":"2026-11-26T11:00:00Z","DevLocTime":"2026-11-20T11:00:00Z",
		"DevEUI":"1234567890ABCDEF","FPort":1,"FCntUp":4,"payload_hex":"01"}}`)
	relaytest.Equal(t, "time", frames[0].NetworkTime, time.Date(2026, 11, 26, 11, 0, 0, 0, time.UTC))
}
