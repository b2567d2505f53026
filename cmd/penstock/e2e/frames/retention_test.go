package frames

import (
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// testRetentionAtStart checks that a gateway deletes old readings soon after its start. Otherwise a
// gateway that never runs for an hour would never delete old readings.
func testRetentionAtStart(t *testing.T, s *e2e.Site) {
	g := e2e.Start(t, s, e2e.Fixture(t, "inventory.yaml"))
	acme := g.WithToken("acme-all-0123456")
	readAt := time.Now().UTC().AddDate(0, 0, -3)
	acme.Post("/webhooks/generic/cellar?decoder_id=sent", `{"time":"`+readAt.Format(time.RFC3339)+`","temperature":11,"door":"shut"}`).Mentions(t, 200, "shut")
	g.AwaitProcessed()
	id := acme.AwaitDevice("cellar")
	if got := e2e.FormatReadings(acme.Readings(id, "")); !strings.Contains(got, "temperature=11") {
		t.Fatalf("readings before the restart = %s, want temperature=11", got)
	}
	var list struct{ Data []struct{ ID, Key string } }
	acme.Get("/iot/devices/"+id+"/sensors").Decode(t, &list)
	for _, sensor := range list.Data {
		if sensor.Key == "temperature" {
			acme.Do("PATCH", "/iot/sensors/"+sensor.ID, `{"retention_days":1}`).Mentions(t, 200, `"retention_days":1`)
		}
	}
	relaytest.NoError(t, g.Stop())
	g.Run()
	relaytest.Eventually(t, "old readings are deleted", func() (any, bool) {
		got := e2e.FormatReadings(g.WithToken("acme-all-0123456").Readings(id, ""))
		return got, !strings.Contains(got, "temperature=") && strings.Contains(got, "door=")
	})
}
