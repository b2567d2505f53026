package openapi_test

import (
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/penstock/penstock/ingest/admin"
	"github.com/penstock/penstock/ingest/carrier"
	"github.com/penstock/penstock/ingest/cdr"
	"github.com/penstock/penstock/ingest/console"
	"github.com/penstock/penstock/ingest/iotapi"
	"github.com/penstock/penstock/ingest/ledgerapi"
	"github.com/penstock/penstock/ingest/openapi"
	"github.com/penstock/penstock/ingest/openapi/contracttest"
	"github.com/penstock/penstock/ingest/restv2"
	"github.com/penstock/penstock/ingest/restv3"
	"github.com/penstock/penstock/ingest/soap"
	"github.com/penstock/penstock/ingest/uplink"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestTheSurfacesAgree(t *testing.T) {
	for _, loose := range contracttest.Strict(merged(t)) {
		t.Error(loose)
	}
}

// merged is the document that a gateway serves.
func merged(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi.Merge(restv2.OpenAPI(), restv3.OpenAPI(), iotapi.OpenAPI(), ledgerapi.OpenAPI(), uplink.OpenAPI(), carrier.OpenAPI(),
		soap.OpenAPI(), cdr.OpenAPI(), admin.OpenAPI(), console.OpenAPI())
	relaytest.NoError(t, err)
	return doc
}

// Every example keeps to the schema beside it, and the whole is a valid document.
func TestTheExamplesKeepToTheirSchemas(t *testing.T) {
	doc := merged(t)
	encoded, err := doc.MarshalJSON()
	relaytest.NoError(t, err)
	if _, err := openapi.Load(encoded); err != nil {
		t.Errorf("an example that rotted; run make golden: %v", err)
	}
}
