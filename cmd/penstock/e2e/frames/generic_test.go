package frames

import (
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

func testGeneric(t *testing.T, s *e2e.Site) {
	g := e2e.Start(t, s, e2e.Fixture(t, "inventory.yaml"))
	acme := g.WithToken("acme-all-0123456")
	for _, tc := range []struct{ name, path, body, want string }{
		{
			"a flat map with the device in the body", "?decoder_id=sent",
			`{"deviceId": "shed-1", "time": "2026-03-01T10:00:00Z", "temperature": 21.5, "door": "open"}`,
			"temperature=21.5@2026-03-01 10:00:00 door=open@2026-03-01 10:00:00",
		},
		{
			"nested values by their dotted key", "?decoder_id=sent",
			`{"id": "shed-2", "timestamp": 1772359200, "air": {"humidity": 55}, "temperature": true}`,
			"air.humidity=55@2026-03-01 10:00:00 temperature=1@2026-03-01 10:00:00",
		},
		{
			"a flat map with the device in the path, not in the body", "/shed-3?decoder_id=sent",
			`{"deviceId": "not-this", "time": "2026-03-01T10:00:00Z", "temperature": -4}`,
			"temperature=-4@2026-03-01 10:00:00",
		},
		{
			"a name of several words and a slash, escaped in the path", "/shed%203%2Fleft?decoder_id=sent",
			`{"time": "2026-03-01T10:00:00Z", "temperature": 12}`,
			"temperature=12@2026-03-01 10:00:00",
		},
		{
			"a list of maps", "?decoder_id=sent",
			`[{"device_id": "shed-4", "time": "2026-03-01T10:00:00Z", "temperature": 1}, {"device_id": "shed-4", "time": "2026-03-01T10:01:00Z", "temperature": 2}]`,
			"temperature=1@2026-03-01 10:00:00 temperature=2@2026-03-01 10:01:00",
		},
		{
			"SenML with the device in the path", "/shed-5?decoder_id=sent",
			`[{"bt": 1772359200, "n": "temperature", "v": 7.5, "u": "Cel"}, {"n": "temperature", "v": 8.5, "t": 60}]`,
			"temperature=7.5@2026-03-01 10:00:00 temperature=8.5@2026-03-01 10:01:00",
		},
		{
			"SenML with the device in its base name", "?decoder_id=sent",
			`[{"bn": "urn:dev:mac:0024befffe804ff1:", "bt": 1772359200, "n": "temperature", "v": 9}]`,
			"temperature=9@2026-03-01 10:00:00",
		},
	} {
		t.Run("the answer lists the updated sensors: "+tc.name, func(t *testing.T) {
			var list struct{ Data []e2e.Reading }
			acme.Post("/webhooks/generic"+tc.path, tc.body).Decode(t, &list)
			sortByKey(list.Data, tc.want)
			relaytest.Equal(t, "sensors updated", e2e.FormatReadings(list.Data), tc.want)
		})
	}
	t.Run("a device in the path takes precedence over deviceId in the body", func(t *testing.T) {
		acme.AwaitDevice("shed-3")
		acme.AwaitDevice("shed%203%2Fleft")
		acme.Get("/iot/devices/identifier/not-this").Expect(t, 422, `{"message": "Invalid Device."}`)
	})
	t.Run("a map without a device is accepted, updates nothing and is quarantined", func(t *testing.T) {
		acme.Post("/webhooks/generic?decoder_id=sent", `{"temperature": 3}`).Mentions(t, 200, `{"data":[],"notes":["generic: deviceId: is missing, `)
		relaytest.Eventually(t, "quarantine", func() (any, bool) {
			events := g.Events("state=quarantined&source=generic")
			return events, len(events) == 1 && strings.Contains(events[0].Reason, "deviceId")
		})
	})
}

// sortByKey sorts readings in the order of want, because the keys of a JSON object have no order.
func sortByKey(list []e2e.Reading, want string) {
	for i := range list {
		for j := i + 1; j < len(list); j++ {
			if strings.Index(want, e2e.FormatReadings(list[j:j+1])) < strings.Index(want, e2e.FormatReadings(list[i:i+1])) {
				list[i], list[j] = list[j], list[i]
			}
		}
	}
}
