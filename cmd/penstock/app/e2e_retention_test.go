package app

import (
	"strings"
	"testing"
	"time"
)

// testRetentionAtStart has readings become too old while the gateway does not run
// for an hour at a time.
func testRetentionAtStart(t *testing.T, s *site) {
	g := start(t, s, fixture(t, "inventory.yaml"))
	acme := g.as("acme-all-0123456")
	at := time.Now().UTC().AddDate(0, 0, -3)
	acme.post("/webhooks/generic/cellar?decoder_id=sent", `{"time":"`+at.Format(time.RFC3339)+`","temperature":11,"door":"shut"}`).mentions(t, 200, "shut")
	g.settled()
	id := acme.device("cellar")
	if got := short(acme.readings(id, "")); !strings.Contains(got, "temperature=11") {
		t.Fatalf("readings before: %s", got)
	}
	var list struct{ Data []struct{ ID, Key string } }
	acme.get("/iot/devices/"+id+"/sensors").into(t, &list)
	for _, sensor := range list.Data {
		if sensor.Key == "temperature" {
			acme.do("PATCH", "/iot/sensors/"+sensor.ID, `{"retention_days":1}`).mentions(t, 200, `"retention_days":1`)
		}
	}
	must(t, g.stop())
	g.run()
	eventually(t, "old readings are gone", func() (any, bool) {
		got := short(g.as("acme-all-0123456").readings(id, ""))
		return got, !strings.Contains(got, "temperature=") && strings.Contains(got, "door=")
	})
}
