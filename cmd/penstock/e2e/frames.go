package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
)

// Reading is a reading as the API lists it.
type Reading struct {
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

// PostWebhook posts to a webhook and expects status 200 with an empty body.
func PostWebhook(t *testing.T, c Client, path, body string) {
	t.Helper()
	c.Post(path, body).Expect(t, 200, "")
}

// AwaitDevice waits for a device to be imported and returns its id.
func (c Client) AwaitDevice(identifier string) string {
	c.Gateway.T.Helper()
	var found struct{ ID string }
	relaytest.Eventually(c.Gateway.T, "the device "+identifier+" is imported", func() (any, bool) {
		resp := c.Get("/iot/devices/identifier/" + identifier)
		if resp.Status == 200 {
			resp.Decode(c.Gateway.T, &found)
		}
		return resp, resp.Status == 200
	})
	return found.ID
}

// Readings waits until every accepted entry is processed, and lists the readings of a device.
func (c Client) Readings(device, query string) []Reading {
	c.Gateway.T.Helper()
	c.Gateway.AwaitProcessed()
	var list struct{ Data []Reading }
	c.Get("/iot/devices/"+device+"/readings?"+query).Decode(c.Gateway.T, &list)
	return list.Data
}

// LatestReadings waits until every accepted entry is processed, and lists the latest reading of each
// sensor of a device.
func (c Client) LatestReadings(device string) []Reading {
	c.Gateway.T.Helper()
	c.Gateway.AwaitProcessed()
	var list struct{ Data []Reading }
	c.Get("/iot/devices/"+device+"/readings/latest").Decode(c.Gateway.T, &list)
	return list.Data
}

// FormatReadings returns readings as "key=value@time", separated by spaces, in their order.
func FormatReadings(list []Reading) string {
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

// LaterUplink returns an uplink of a device, ten minutes and one fCnt after the uplink in
// chirpstack/up.json.
func LaterUplink(t *testing.T, devEUI string) string {
	t.Helper()
	return Fixture(t, "chirpstack/up.json", "70b3d57ed0001234", devEUI,
		"8b2f6c1e-", "9c3a7d2f-", "10:15:30.250Z", "10:25:30.250Z", `"fCnt": 4711`, `"fCnt": 4712`)
}

// ReadingsOf returns the readings with a key.
func ReadingsOf(list []Reading, key string) []Reading {
	var readings []Reading
	for _, r := range list {
		if r.Key == key {
			readings = append(readings, r)
		}
	}
	return readings
}

// CreateDecoder creates a decoder and returns its id.
func (c Client) CreateDecoder(codec, source string) string {
	c.Gateway.T.Helper()
	return c.CreateFrom("/iot/decoders", map[string]string{
		"name": "Probe", "description": "made by a test", "type": "lorawan", "codec": codec, "source": source,
	})
}

// ReadingsByTime returns the values of a device's readings by time. It fails the test if two
// readings have the same time.
func (c Client) ReadingsByTime(devEUI string) map[string]float64 {
	c.Gateway.T.Helper()
	var found struct{ ID string }
	if resp := c.Get("/iot/devices/identifier/" + devEUI); resp.Status == 200 {
		resp.Decode(c.Gateway.T, &found)
	}
	values := map[string]float64{}
	if found.ID == "" {
		return values
	}
	var list struct{ Data []Reading }
	c.Get("/iot/devices/"+found.ID+"/readings?limit=1000").Decode(c.Gateway.T, &list)
	if len(list.Data) == 1000 {
		c.Gateway.T.Fatal("a device has at least 1,000 readings, the limit of an answer: use more devices")
	}
	for _, r := range list.Data {
		if _, duplicate := values[r.ReadingDate]; duplicate {
			c.Gateway.T.Errorf("%s has two readings at %s", devEUI, r.ReadingDate)
		}
		if r.Value != nil {
			values[r.ReadingDate] = *r.Value
		}
	}
	return values
}
