package frames

import (
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

func testQuarantine(t *testing.T, s *e2e.Site) {
	g := e2e.Start(t, s, e2e.Fixture(t, "inventory.yaml"))
	acme := g.WithToken("acme-all-0123456")
	for _, tc := range []struct{ name, path, body, reason string }{
		{"a frame that its decoder cannot read", "/webhooks/lorawan?decoder_id=lpp&event=up", e2e.Fixture(t, "chirpstack/up.json", "A2cBEARoeQ==", "A2cB"), "cayenne_lpp"},
		{"a frame with an unknown decoder", "/webhooks/lorawan?decoder_id=none&event=up", e2e.Fixture(t, "chirpstack/up.json", "70b3d57ed0001234", "70b3d57ed0000002"), "decoder none is not known"},
		{"an acknowledgement of an unknown device", "/webhooks/lorawan?event=ack", e2e.Fixture(t, "chirpstack/ack.json", "70b3d57ed0001234", "70b3d57ed0000003"), "device 70b3d57ed0000003 is not known"},
		{"a body without a device", "/webhooks/lpwan", `{"hello": "world"}`, "deviceId"},
		{"a sender without a parser", "/webhooks/sensor-vendor", `<note>of a sender that speaks XML</note>`, `sender "xml" are not supported`},
	} {
		t.Run(tc.name+" is answered 200 and quarantined with the reason", func(t *testing.T) {
			e2e.PostWebhook(t, acme, tc.path, tc.body)
			relaytest.Eventually(t, "quarantine for "+tc.reason, func() (any, bool) {
				events := g.Events("state=quarantined")
				for _, e := range events {
					if strings.Contains(e.Reason, tc.reason) && e.Kind == "uplink" && e.Raw == tc.body {
						return nil, true
					}
				}
				return events, false
			})
		})
	}
	t.Run("a replay stores the frame after a correction of its decoder", func(t *testing.T) {
		const devEUI = "70b3d57ed0000009"
		e2e.PostWebhook(t, acme, "/webhooks/lorawan?decoder_id=torn&event=up", e2e.Fixture(t, "chirpstack/up.json", "70b3d57ed0001234", devEUI))
		g.AwaitProcessed()
		events := g.Events("state=quarantined&device=" + devEUI)
		if len(events) != 1 || events[0].Reason == "" {
			t.Fatalf("number of quarantined events = %d, want 1 with a reason", len(events))
		}
		id := acme.AwaitDevice(devEUI)
		relaytest.Equal(t, "readings before", e2e.FormatReadings(acme.Readings(id, "")), "")
		corrected := e2e.Fixture(t, "inventory.yaml", "bytes[9] * 1.0", "bytes[6] * 0.5")
		g.Admin().Put("/admin/inventory", corrected).Mentions(t, 200)
		g.Admin().Post("/admin/events/replay", `{"state": "quarantined", "device": "`+devEUI+`", "dry_run": true}`).
			Mentions(t, 200, `"count":1`, `"state":"quarantined"`, `"new_state":"done"`, `"added":1`, `"old":null,"new":60.5,"latest":true`)
		if len(g.Events("state=quarantined&device="+devEUI)) != 1 {
			t.Error("the dry run changed the quarantined events")
		}
		g.Admin().Post("/admin/events/replay", `{"ids": ["`+events[0].ID+`"]}`).Mentions(t, 200, `"count":1,`)
		relaytest.Equal(t, "readings after", e2e.FormatReadings(acme.Readings(id, "")), "temperature=60.5@2026-03-01 10:15:30")
		relaytest.Equal(t, "latest after", e2e.FormatReadings(acme.LatestReadings(id)), "temperature=60.5@2026-03-01 10:15:30")
		relaytest.Equal(t, "the number of quarantined events after the replay", len(g.Events("state=quarantined&device="+devEUI)), 0)
		g.Admin().Get("/admin/events?state=done").Mentions(t, 200, events[0].ID)
	})
	t.Run("a replay without a filter is refused", func(t *testing.T) {
		g.Admin().Post("/admin/events/replay", `{}`).Mentions(t, 422, "Give ids or at least one filter")
	})
}
