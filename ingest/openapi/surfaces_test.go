package openapi_test

import (
	"testing"

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
)

func TestTheSurfacesAgree(t *testing.T) {
	doc, err := openapi.Merge(restv2.OpenAPI(), restv3.OpenAPI(), iotapi.OpenAPI(), ledgerapi.OpenAPI(), uplink.OpenAPI(), carrier.OpenAPI(),
		soap.OpenAPI(), cdr.OpenAPI(), admin.OpenAPI(), console.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	for _, loose := range contracttest.Strict(doc) {
		t.Error(loose)
	}
}
