package app

import (
	"strings"
	"testing"
)

func testQuarantine(t *testing.T, s *site) {
	g := start(t, s, fixture(t, "inventory.yaml"))
	acme := g.as("acme-all-0123456")
	for _, tc := range []struct{ name, path, body, reason string }{
		{"a frame its decoder cannot read", "/webhooks/lorawan?decoder_id=lpp&event=up", fixture(t, "chirpstack/up.json", "A2cBEARoeQ==", "A2cB"), "cayenne_lpp"},
		{"a frame with a decoder nobody has", "/webhooks/lorawan?decoder_id=none&event=up", fixture(t, "chirpstack/up.json", "70b3d57ed0001234", "70b3d57ed0000002"), "decoder none is not known"},
		{"an acknowledgement of a device nobody knows", "/webhooks/lorawan?event=ack", fixture(t, "chirpstack/ack.json", "70b3d57ed0001234", "70b3d57ed0000003"), "device 70b3d57ed0000003 is not known"},
		{"a body that means nothing to us", "/webhooks/lpwan", `{"hello": "world"}`, "deviceId"},
		{"a sender without a parser", "/webhooks/sensor-vendor", `<note>of a sender that speaks XML</note>`, `sender "xml" have no parser`},
	} {
		t.Run(tc.name+" gets its 2xx and stands in quarantine with the reason", func(t *testing.T) {
			hook(t, acme, tc.path, tc.body)
			eventually(t, "quarantine for "+tc.reason, func() (any, bool) {
				all := g.events("state=quarantined")
				for _, e := range all {
					if strings.Contains(e.Reason, tc.reason) && e.Kind == "uplink" && e.Raw == tc.body {
						return nil, true
					}
				}
				return all, false
			})
		})
	}
	t.Run("after its decoder was mended a replay stores the frame", func(t *testing.T) {
		const devEUI = "70b3d57ed0000009"
		hook(t, acme, "/webhooks/lorawan?decoder_id=torn&event=up", fixture(t, "chirpstack/up.json", "70b3d57ed0001234", devEUI))
		g.settled()
		set := g.events("state=quarantined&device=" + devEUI)
		if len(set) != 1 || set[0].Reason == "" {
			t.Fatalf("in quarantine: %+v", set)
		}
		id := acme.device(devEUI)
		same(t, "readings before", short(acme.readings(id, "")), "")
		mended := fixture(t, "inventory.yaml", "bytes[9] * 1.0", "bytes[6] * 0.5")
		g.admin().put("/admin/inventory", mended).mentions(t, 200)
		g.admin().post("/admin/events/replay", `{"state": "quarantined", "device": "`+devEUI+`", "dry_run": true}`).
			mentions(t, 200, `"count":1`, `"state":"quarantined"`, `"new_state":"done"`, `"added":1`, `"old":null,"new":60.5,"latest":true`)
		if len(g.events("state=quarantined&device="+devEUI)) != 1 {
			t.Error("a dry run changed something")
		}
		g.admin().post("/admin/events/replay", `{"ids": ["`+set[0].ID+`"]}`).is(t, 200, `{"count": 1}`)
		same(t, "readings after", short(acme.readings(id, "")), "temperature=60.5@2026-03-01 10:15:30")
		same(t, "latest after", short(acme.latest(id)), "temperature=60.5@2026-03-01 10:15:30")
		if left := g.events("state=quarantined&device=" + devEUI); len(left) != 0 {
			t.Errorf("still in quarantine: %+v", left)
		}
		g.admin().get("/admin/events?state=done").mentions(t, 200, set[0].ID)
	})
	t.Run("a replay of everything by accident is refused", func(t *testing.T) {
		g.admin().post("/admin/events/replay", `{}`).mentions(t, 422, "name ids or at least one filter")
	})
}
