package iotapi

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/decoders/catalog"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/openapi"
	"github.com/penstock/penstock/ingest/openapi/contracttest"
	"github.com/penstock/penstock/relay/iot"
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

func TestTheContractHasTheWordsThatAreTaken(t *testing.T) {
	doc, err := openapi.Load(OpenAPI())
	relaytest.NoError(t, err)
	for schema, taken := range map[string]string{
		"Codec":      fmt.Sprint(slices.Sorted(slices.Values(catalog.Names()))),
		"DeviceType": fmt.Sprint(slices.Sorted(slices.Values(iot.DeviceTypes()))),
	} {
		var words []string
		for _, word := range doc.Components.Schemas[schema].Value.Enum {
			words = append(words, fmt.Sprint(word))
		}
		slices.Sort(words)
		if got := fmt.Sprint(words); got != taken {
			t.Errorf("%s: the contract has %s, the handlers take %s", schema, got, taken)
		}
	}
}
