package failures

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestEmptiedPostgreSQLIsRecovered drops all tables while the gateway runs, restarts the gateway and
// recovers.
func TestEmptiedPostgreSQLIsRecovered(t *testing.T) {
	t.Parallel()
	sink := e2e.NewSink(t, nil)
	address := dbtest.Shared(t).NewDatabase(t)
	host := relaytest.Must(url.Parse(address))(t).Host
	g := e2e.NewGateway(t, e2e.Embedded(), e2e.Fixture(t, "load.yaml", "SINK", sink.URL), "PENSTOCK_DATABASE_URL="+address)
	g.UnsavedOutcomes = true
	g.Run()
	acme := g.WithToken("acme-all-0123456")
	acme.PostInboundText("m1", "447800000001", "before")
	sink.Await(t, "/load", 1)
	g.AwaitProcessed()

	dropTables(t, address)
	for target, body := range map[string]string{
		"/inbound/sms/json":                             `{"id":"m2","from":"447700900123","to":"447800000001","text":"while it is empty"}`,
		"/webhooks/lorawan?decoder_id=counter&event=up": e2e.Fixture(t, "chirpstack/up.json", "A2cBEARoeQ==", "AWQAAAAq"),
	} {
		relaytest.Eventually(t, target+" is accepted", func() (any, bool) { // a sender repeats a post that is answered 503
			resp := acme.Post(target, body)
			return resp.Body, resp.Status == 200
		})
	}
	relaytest.Eventually(t, "/readyz names the server and the reason", func() (any, bool) {
		status, r := g.Ready()
		reason := r.Backends["records"].Error
		return r, status == 503 && strings.Contains(reason, host) && strings.Contains(reason, "it was emptied or replaced") && strings.Contains(reason, "penstock recover")
	})
	if n := len(sink.Requests("/load")); n != 1 {
		t.Errorf("requests before the recovery = %d, want 1", n)
	}

	_ = g.Stop() // the entries that could not be saved are in the journal
	g.Run()      // creates the tables and applies the inventory
	acme.PostInboundText("m3", "447800000001", "before it is recovered")
	relaytest.Eventually(t, "processing has stopped", func() (any, bool) {
		status, r := g.Ready()
		return r, status == 503 && strings.HasPrefix(r.Backends["gateways"].Error, "the database is empty. Processing has stopped")
	})
	g.RunCommand("", "recover").Mentions(t, 0, "1 event was processed again; processing continues",
		"records that did not come through the journal (REST, SOAP, the admin API) may be missing if they were written between the beginning and 20")
	g.AwaitReady()
	relaytest.Eventually(t, "every message is delivered, with one webhook-id", func() (any, bool) {
		ids := make(map[string]string) // by text
		for _, request := range sink.Requests("/load") {
			text, id := request.Query.Get("m"), request.Header.Get("Webhook-Id")
			if ids[text] != "" && ids[text] != id {
				t.Fatalf("%q has the webhook-ids %s and %s", text, ids[text], id)
			}
			ids[text] = id
		}
		return ids, len(ids) == 3
	})
	device := acme.AwaitDevice("70b3d57ed0001234")
	relaytest.Eventually(t, "the frame has its reading", func() (any, bool) {
		got := e2e.FormatReadings(acme.LatestReadings(device))
		return got, strings.Contains(got, "generic_1=42")
	})
}

// dropTables drops all tables of a database.
func dropTables(t *testing.T, address string) {
	t.Helper()
	database := relaytest.Must(db.Connect(t.Context(), db.Options{URL: address}))(t)
	defer func() { _ = database.Close() }()
	for _, statement := range []string{"DROP SCHEMA public CASCADE", "CREATE SCHEMA public"} {
		relaytest.Eventually(t, statement, func() (any, bool) {
			err := database.Run(context.WithoutCancel(t.Context()), "test", statement)
			return err, err == nil
		})
	}
}
