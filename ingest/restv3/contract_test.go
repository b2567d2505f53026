package restv3

import (
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/openapi"
	"github.com/penstock/penstock/ingest/openapi/contracttest"
	"github.com/penstock/penstock/relay/relaytest"
)

// What goes over the wire is held to the contract in cmd/penstock, where the
// whole gateway stands behind it.
func TestRoutesAreTheContractsOperations(t *testing.T) {
	doc, err := openapi.Load(OpenAPI())
	relaytest.NoError(t, err)
	app, auth := fiber.New(), httpd.NewAuth(nil, "", time.Now)
	New(Deps{}).Mount(app, auth)
	for _, difference := range contracttest.Routes(app, doc) {
		t.Error(difference)
	}
	for _, loose := range contracttest.Strict(doc) {
		t.Error(loose)
	}
}
