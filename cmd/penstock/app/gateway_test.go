package app_test

import (
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/cmd/penstock/app"
	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestJumpOfTheClockDeletesNoReadings sets the clock of a gateway forward by 40 days, back, and
// forward again.
func TestJumpOfTheClockDeletesNoReadings(t *testing.T) {
	t.Parallel()
	g := e2e.NewGateway(t, e2e.Embedded(), e2e.Fixture(t, "inventory.yaml"))
	opened := relaytest.Must(g.Open())(t)
	advance := app.SetClock(opened)
	g.Serve(opened)

	acme := g.WithToken("acme-all-0123456")
	acme.Post("/webhooks/generic/cellar?decoder_id=sent", `{"temperature":11,"door":"shut"}`).Mentions(t, 200, "shut")
	g.AwaitProcessed()
	id := acme.AwaitDevice("cellar")
	var list struct{ Data []struct{ ID, Key string } }
	acme.Get("/iot/devices/"+id+"/sensors").Decode(t, &list)
	for _, sensor := range list.Data {
		acme.Do("PATCH", "/iot/sensors/"+sensor.ID, `{"retention_days":30}`).Mentions(t, 200, `"retention_days":30`)
	}
	const day = 24 * time.Hour
	for _, step := range []struct {
		name            string
		elapses, jumps  time.Duration
		trusted, stored bool
	}{
		{"40 days forward", 0, 40 * day, false, true},
		{"40 days back", 0, -40 * day, true, true},
		{"5 hours back", 0, -5 * time.Hour, false, true},
		{"5 hours forward", 0, 5 * time.Hour, true, true},
		{"40 days forward again", 0, 40 * day, false, true},
		{"a day later", day, 0, true, false},
	} {
		advance(step.elapses, step.jumps)
		relaytest.NoError(t, app.ExpireReadings(opened))
		relaytest.NoError(t, app.SweepRecords(opened))
		status, r := g.Ready()
		if reported := strings.Contains(r.Backends["clock"].Error, "the clock has jumped"); status != http.StatusOK || reported == step.trusted {
			t.Errorf("%s: status of /readyz = %d, error of the clock = %q, want status 200 and trusted = %v",
				step.name, status, r.Backends["clock"].Error, step.trusted)
		}
		got := e2e.FormatReadings(acme.Readings(id, ""))
		if stored := strings.Contains(got, "temperature=11"); stored != step.stored {
			t.Errorf("%s: readings = %q, stored = %v, want %v", step.name, got, stored, step.stored)
		}
	}
}

// TestSilentConnectionsDoNotDelayTheShutdown stops a gateway with connections that have sent nothing.
func TestSilentConnectionsDoNotDelayTheShutdown(t *testing.T) {
	g := e2e.Start(t, e2e.Embedded(), `{"accounts": []}`)
	for range 3 {
		conn := relaytest.Must(net.Dial("tcp", strings.TrimPrefix(g.URL(), "http://")))(t)
		defer conn.Close()
	}
	g.WithToken("").Get("/healthz").Expect(t, 200, `{"status": "alive"}`)
	began := time.Now()
	relaytest.NoError(t, g.Stop())
	if took := time.Since(began); took > app.DrainTime/2 {
		t.Errorf("the shutdown took %s, want at most %s", took, app.DrainTime/2)
	}
}
