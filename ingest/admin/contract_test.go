package admin

import (
	"fmt"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/openapi"
	"github.com/penstock/penstock/ingest/openapi/contracttest"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/relaytest"
)

// What goes over the wire is held to the contract in cmd/penstock, where the
// whole gateway stands behind it.
func TestRoutesAreTheContractsOperations(t *testing.T) {
	doc, err := openapi.Load(OpenAPI())
	relaytest.NoError(t, err)
	app, auth := fiber.New(), httpd.NewAuth(nil, "", time.Now)
	New(Deps{Metrics: prometheus.NewRegistry()}).Mount(app, auth)
	for _, difference := range contracttest.Routes(app, doc) {
		t.Error(difference)
	}
	for _, loose := range contracttest.Strict(doc) {
		t.Error(loose)
	}
}

func TestTheContractHasTheWordsThatAreTaken(t *testing.T) {
	doc, err := openapi.Load(OpenAPI())
	relaytest.NoError(t, err)
	for name, taken := range map[string]string{
		"kind":           fmt.Sprint(event.Kinds()),
		"state":          fmt.Sprint([]event.State{event.Done, event.Quarantined, event.Unrouted, event.Pending}),
		"delivery_state": fmt.Sprint(outbox.States()),
		"delivery_kind":  fmt.Sprint(outbox.Kinds()),
	} {
		if got := fmt.Sprint(doc.Components.Parameters[name].Value.Schema.Value.Enum); got != taken {
			t.Errorf("%s: the contract has %s, the handlers take %s", name, got, taken)
		}
	}
}
