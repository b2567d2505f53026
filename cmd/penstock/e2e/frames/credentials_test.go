package frames

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

func testCredentials(t *testing.T, s *e2e.Site) {
	g := e2e.Start(t, s, e2e.Fixture(t, "inventory.yaml"))
	basic := func(password string) string {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte("anyone:"+password))
	}
	const (
		unauthenticated = `{"message": "Unauthenticated."}`
		unauthorised    = `{"message": "This action is unauthorised."}`
		forbidden       = `{"message": "Forbidden."}`
		sms             = `{"id": "1", "from": "447700900123", "to": "447800000001", "text": "hi"}`
	)
	for _, tc := range []struct {
		name, method, path, body string
		header, value            string
		status                   int
		answer                   string // not compared if the status is 200
	}{
		{"decoders accept a Bearer token", "GET", "/iot/decoders", "", "Authorization", "Bearer acme-all-0123456", 200, ""},
		{"decoders accept a bare token", "GET", "/iot/decoders", "", "Authorization", "acme-all-0123456", 200, ""},
		{"decoders accept a token without scopes", "GET", "/iot/decoders", "", "Authorization", "acme-customer-0123456", 200, ""},
		{"decoders refuse Basic", "GET", "/iot/decoders", "", "Authorization", basic("acme-all-0123456"), 401, unauthenticated},
		{"decoders refuse X-Auth-Token", "GET", "/iot/decoders", "", "X-Auth-Token", "acme-all-0123456", 401, unauthenticated},
		{"decoders need a token", "GET", "/iot/decoders", "", "", "", 401, unauthenticated},
		{"decoders need a known token", "GET", "/iot/decoders", "", "Authorization", "Bearer acme-al", 401, unauthenticated},
		{"decoders need the scope", "GET", "/iot/decoders", "", "Authorization", "Bearer acme-hook-0123456", 403, unauthorised},
		{"webhooks accept Bearer", "POST", "/webhooks/lorawan", `{}`, "Authorization", "Bearer acme-hook-0123456", 200, ""},
		{"webhooks accept a bare token", "POST", "/webhooks/lorawan", `{}`, "Authorization", "acme-hook-0123456", 200, ""},
		{"webhooks accept Basic with the token as password", "POST", "/webhooks/lorawan", `{}`, "Authorization", basic("acme-hook-0123456"), 200, ""},
		{"webhooks accept X-Auth-Token", "POST", "/webhooks/lorawan", `{}`, "X-Auth-Token", "acme-hook-0123456", 200, ""},
		{"webhooks need a token", "POST", "/webhooks/lorawan", `{}`, "", "", 401, unauthenticated},
		{"webhooks need a known token", "POST", "/webhooks/lorawan", `{}`, "Authorization", basic("nobody"), 401, unauthenticated},
		{"webhooks need their scope", "POST", "/webhooks/lorawan", `{}`, "Authorization", "Bearer acme-customer-0123456", 403, forbidden},
		{"carriers accept Bearer", "POST", "/inbound/sms/json", sms, "Authorization", "Bearer acme-all-0123456", 200, ""},
		{"carriers accept Basic", "POST", "/inbound/sms/json", sms, "Authorization", basic("acme-all-0123456"), 200, ""},
		{"carriers accept X-Auth-Token", "POST", "/inbound/sms/json", sms, "X-Auth-Token", "acme-all-0123456", 200, ""},
		{"carriers need a known token", "POST", "/inbound/sms/json", sms, "X-Auth-Token", "nobody", 401, unauthenticated},
		{"carriers need their scope", "POST", "/inbound/sms/json", sms, "Authorization", "Bearer acme-customer-0123456", 403, forbidden},
		{"the admin API accepts the admin token", "GET", "/admin/deliveries", "", "Authorization", "Bearer " + e2e.AdminToken, 200, ""},
		{"the admin API needs a token", "GET", "/admin/deliveries", "", "", "", 401, unauthenticated},
		{"the admin API refuses an account's token", "PUT", "/admin/inventory", "{}", "Authorization", "Bearer acme-all-0123456", 401, unauthenticated},
		{"the admin token belongs to no account", "GET", "/iot/devices", "", "Authorization", "Bearer " + e2e.AdminToken, 401, unauthenticated},
		{"health needs no token", "GET", "/healthz", "", "", "", 200, ""},
		{"readiness needs no token", "GET", "/readyz", "", "", "", 200, ""},
		{"metrics need no token", "GET", "/metrics", "", "", "", 200, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := g.WithToken("")
			if tc.header != "" {
				c = c.With(tc.header, tc.value)
			}
			resp := c.Do(tc.method, tc.path, tc.body)
			if tc.status == 200 && resp.Status == 200 {
				return
			}
			resp.Expect(t, tc.status, tc.answer)
		})
	}
}

func testIsolation(t *testing.T, s *e2e.Site) {
	g := e2e.Start(t, s, e2e.Fixture(t, "inventory.yaml"))
	acme, globex := g.WithToken("acme-all-0123456"), g.WithToken("globex-all-0123456")
	const devEUI = "70b3d57ed0001234"
	e2e.PostWebhook(t, acme, "/webhooks/lorawan?decoder_id=lpp&event=up", e2e.Fixture(t, "chirpstack/up.json"))
	device := acme.AwaitDevice(devEUI)
	sensor := acme.LatestReadings(device)[0].SensorID
	decoder := acme.CreateDecoder("json", "")

	for _, tc := range []struct {
		name, method, path, body string
		status                   int
		answer                   string
	}{
		{"a device", "GET", "/iot/devices/" + device, "", 422, `{"message": "Invalid Device."}`},
		{"a device by its identifier", "GET", "/iot/devices/identifier/" + devEUI, "", 422, `{"message": "Invalid Device."}`},
		{"a device's sensors", "GET", "/iot/devices/" + device + "/sensors", "", 404, ""},
		{"a device's readings", "GET", "/iot/devices/" + device + "/readings", "", 404, ""},
		{"a device's latest readings", "GET", "/iot/devices/" + device + "/readings/latest", "", 404, ""},
		{"a sensor to change", "PATCH", "/iot/sensors/" + sensor, `{"slope": 100}`, 404, ""},
		{"a decoder", "GET", "/iot/decoders/" + decoder, "", 404, ""},
		{"a decoder's sensors", "GET", "/iot/decoders/" + decoder + "/sensors", "", 404, ""},
		{"a decoder for a new sensor", "POST", "/iot/decoders/" + decoder + "/sensors", `{"sensor_type_id": "humidity", "key": "t"}`, 404, ""},
		{"any device in the list", "GET", "/iot/devices", "", 200, `{"data": []}`},
		{
			"any decoder in the list", "GET", "/iot/decoders", "", 200,
			`{"data": [{"id": "lpp", "name": "Globex's own", "description": "the same id in another account", "type": "lorawan"}]}`,
		},
	} {
		t.Run("another account does not find "+tc.name, func(t *testing.T) {
			globex.Do(tc.method, tc.path, tc.body).Expect(t, tc.status, tc.answer)
		})
	}
	t.Run("the sensor was not changed", func(t *testing.T) {
		acme.Get("/iot/devices/"+device+"/sensors").Mentions(t, 200, `"slope":1`)
	})
	t.Run("a frame with the devEUI of another account is quarantined", func(t *testing.T) {
		e2e.PostWebhook(t, globex, "/webhooks/lorawan?decoder_id=lpp&event=up", e2e.LaterUplink(t, devEUI))
		relaytest.Eventually(t, "quarantine", func() (any, bool) {
			events := g.Events("state=quarantined")
			return events, len(events) == 1 && strings.Contains(events[0].Reason, "already been claimed")
		})
		relaytest.Equal(t, "the readings of the owner", e2e.FormatReadings(e2e.ReadingsOf(acme.Readings(device, ""), "temperature_3")), "temperature_3=27.2@2026-03-01 10:15:30")
		globex.Get("/iot/devices").Expect(t, 200, `{"data": []}`)
	})
	t.Run("two accounts may use the same other identifier", func(t *testing.T) {
		acme.Post("/webhooks/generic/shed?decoder_id=sent", `{"temperature": 1}`).Mentions(t, 200, `"value":1`)
		decoderOfGlobex := globex.CreateDecoder("json", "")
		globex.Post("/iot/decoders/"+decoderOfGlobex+"/sensors", `{"sensor_type_id": "temperature", "key": "temperature"}`).Mentions(t, 200)
		globex.Post("/webhooks/generic/shed?decoder_id="+decoderOfGlobex, `{"temperature": 2}`).Mentions(t, 200, `"value":2`)
		if acme.AwaitDevice("shed") == globex.AwaitDevice("shed") {
			t.Error("two accounts share a device, want a device each")
		}
	})
	t.Run("a decoder of another account cannot be used", func(t *testing.T) {
		globex.Post("/webhooks/generic/barn?decoder_id="+decoder, `{"temperature": 1}`).Expect(t, 200, `{"data": [], "notes": ["decoder `+decoder+` is not known"]}`)
	})
}

// testReleasedIdentifier releases a device EUI that the wrong account has claimed before the owner.
func testReleasedIdentifier(t *testing.T, s *e2e.Site) {
	g := e2e.Start(t, s, e2e.Fixture(t, "inventory.yaml"))
	claimant, owner, admin := g.WithToken("acme-all-0123456"), g.WithToken("globex-all-0123456"), g.Admin()
	const devEUI, notation = "70b3d57ed0001234", "70-B3-D5-7E-D0-00-12-34"
	codec := owner.CreateDecoder("cayenne_lpp", "")
	owner.Post("/iot/decoders/"+codec+"/sensors", `{"sensor_type_id": "temperature", "key": "temperature_3"}`).Mentions(t, 200)
	e2e.PostWebhook(t, claimant, "/webhooks/lorawan?decoder_id=lpp&event=up", e2e.Fixture(t, "chirpstack/up.json"))
	claimedDevice := claimant.AwaitDevice(devEUI)
	e2e.PostWebhook(t, owner, "/webhooks/lorawan?decoder_id="+codec+"&event=up", e2e.LaterUplink(t, devEUI))
	relaytest.Eventually(t, "the owner's frame is quarantined", func() (any, bool) {
		events := g.Events("state=quarantined")
		return events, len(events) == 1 && strings.Contains(events[0].Reason, "already been claimed")
	})

	admin.Get("/admin/identifiers?q=70:B3:D5").Mentions(t, 200, `"identifier":"`+devEUI+`"`, `"account_name":"acme"`, `"device_id":"`+claimedDevice+`"`)
	admin.Do("DELETE", "/admin/identifiers/"+notation, "").Expect(t, 204, "")
	admin.Do("DELETE", "/admin/identifiers/"+devEUI, "").Mentions(t, 404)
	admin.Get("/admin/audit?operation=releaseIdentifier").Mentions(t, 200, `"target":"`+devEUI+`"`, `"device_id":"`+claimedDevice+`"`)
	// The wrong account continues to send. It must not claim the identifier again.
	e2e.PostWebhook(t, claimant, "/webhooks/lorawan?decoder_id=lpp&event=up", e2e.LaterUplink(t, devEUI))
	relaytest.Eventually(t, "the frame is stored at the wrong account", func() (any, bool) {
		readings := e2e.ReadingsOf(claimant.Readings(claimedDevice, ""), "temperature_3")
		return readings, len(readings) == 2
	})

	admin.Post("/admin/events/replay", `{"state": "quarantined"}`).Mentions(t, 200, `"count":1`)
	device := owner.AwaitDevice(devEUI)
	relaytest.Eventually(t, "the owner has the reading", func() (any, bool) {
		readings := e2e.ReadingsOf(owner.Readings(device, ""), "temperature_3")
		return e2e.FormatReadings(readings), len(readings) == 1
	})
	admin.Get("/admin/identifiers?q="+notation).Mentions(t, 200, `"account_name":"globex"`, `"device_id":"`+device+`"`)
	relaytest.Equal(t, "the readings of the wrong account", len(e2e.ReadingsOf(claimant.Readings(claimedDevice, ""), "temperature_3")), 2)
}
