package frames

import (
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/delivery/influx/influxtest"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestRadioDataIsStoredAsConfigured checks the stored radio data of a frame for each value of
// readings.radio_data, in InfluxDB and in the embedded store, and the answer about the device. Readings
// are always stored, and rules always have the complete radio data.
func TestRadioDataIsStoredAsConfigured(t *testing.T) {
	t.Parallel()
	db := influxtest.Shared(t)
	for _, tc := range []struct{ detail, fields, wantDevice string }{
		{"full", "f_cnt f_port frames gateways name rssi snr", `"gateways":2`},
		{"basic", "f_cnt frames rssi snr", `"rssi":-97,"snr":7.25,"gateways":null`},
		{"off", "", `"missing":["signal and battery: radio data is not stored (readings.radio_data is off)"]`},
	} {
		for _, s := range []*e2e.Site{{Name: "influxd", Influx: db}, {Name: "embedded"}} {
			t.Run(tc.detail+", "+s.Name, func(t *testing.T) {
				bucket := db.NewDatabase(t)
				g := e2e.Start(t, s, e2e.Fixture(t, "inventory.yaml"), "PENSTOCK_READINGS_RADIO_DATA="+tc.detail, "PENSTOCK_INFLUX_BUCKET="+bucket, "PENSTOCK_INFLUX_URL="+urlOf(s))
				acme := g.WithToken("acme-all-0123456")
				acme.Post("/iot/rules", `{"name":"Heard","on":"reading","when":"uplink.gateways == 2 && uplink.f_port == 2","actions":[{"action":"email","parameters":["a@example.com"]}]}`).Mentions(t, 201, `"Heard"`)
				acme.Post("/webhooks/lorawan?decoder_id=lpp&event=up", e2e.Fixture(t, "chirpstack/up.json")).Expect(t, 200, "")
				g.AwaitProcessed()
				device := acme.AwaitDevice("70b3d57ed0001234")
				relaytest.Equal(t, "the number of readings", len(acme.Readings(device, "")), 2)
				if s.Influx != nil {
					relaytest.Equal(t, "fields of the measurement uplink", fieldKeys(t, db, bucket), tc.fields)
				}
				g.Admin().Get("/admin/devices/"+device).Mentions(t, 200, tc.wantDevice)
				acme.Get("/iot/alarms").Mentions(t, 200, `"state":"raised"`)
			})
		}
	}
}

func urlOf(s *e2e.Site) string {
	if s.Influx == nil {
		return ""
	}
	return s.Influx.URL
}

// fieldKeys returns the names of the fields of the measurement uplink.
func fieldKeys(t *testing.T, db *influxtest.Server, bucket string) string {
	t.Helper()
	answer := db.Query(t, bucket, "SHOW FIELD KEYS FROM uplink")
	var names []string
	for _, name := range strings.Fields("battery f_cnt f_port frames gateways latitude longitude margin name rssi snr") {
		if strings.Contains(answer, `["`+name+`",`) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}
