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

// TestAClockThatJumpsDeletesNothing sets the clock of a whole gateway forward by 40 days,
// back, and forward again.
func TestAClockThatJumpsDeletesNothing(t *testing.T) {
	t.Parallel()
	g := e2e.NewGateway(t, e2e.Embedded(), e2e.Fixture(t, "inventory.yaml"))
	d := relaytest.Must(g.Open())(t)
	set := app.SetClock(d)
	g.Serve(d)

	acme := g.As("acme-all-0123456")
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
		name          string
		passes, jumps time.Duration
		relied, kept  bool
	}{
		{"40 days forward", 0, 40 * day, false, true},
		{"back", 0, -40 * day, true, true},
		{"5 hours back", 0, -5 * time.Hour, false, true},
		{"5 hours forward", 0, 5 * time.Hour, true, true},
		{"40 days forward again", 0, 40 * day, false, true},
		{"and so for a day", day, 0, true, false},
	} {
		set(step.passes, step.jumps)
		relaytest.NoError(t, app.ExpireReadings(d))
		relaytest.NoError(t, app.SweepRecords(d))
		status, r := g.Ready()
		if said := strings.Contains(r.Backends["clock"].Error, "the clock has jumped"); status != http.StatusOK || said == step.relied {
			t.Errorf("%s: /readyz %d, the clock: %s", step.name, status, r.Backends["clock"].Error)
		}
		got := e2e.FormatReadings(acme.Readings(id, ""))
		if kept := strings.Contains(got, "temperature=11"); kept != step.kept {
			t.Errorf("%s: readings %q, kept %v, want %v", step.name, got, kept, step.kept)
		}
	}
}

// TestSilentConnectionsDoNotDelayTheEnd stops a gateway with connections that have sent nothing.
func TestSilentConnectionsDoNotDelayTheEnd(t *testing.T) {
	g := e2e.Start(t, e2e.Embedded(), `{"accounts": []}`)
	for range 3 {
		conn := relaytest.Must(net.Dial("tcp", strings.TrimPrefix(g.URL(), "http://")))(t)
		defer conn.Close()
	}
	g.As("").Get("/healthz").Is(t, 200, `{"status": "alive"}`)
	began := time.Now()
	relaytest.NoError(t, g.Stop())
	if took := time.Since(began); took > app.DrainTime/2 {
		t.Errorf("it took %s", took)
	}
}
