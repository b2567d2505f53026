package iotapi

import (
	"fmt"
	"slices"
	"testing"

	"github.com/penstock/penstock/decoders/catalog"
	"github.com/penstock/penstock/ingest/openapi"
	"github.com/penstock/penstock/ingest/openapi/contracttest"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestRoutesAreOperationsOfTheContract(t *testing.T) {
	contracttest.CheckSurface(t, OpenAPI(), New(Deps{}).Mount)
}

func TestContractListsEveryAcceptedValue(t *testing.T) {
	doc, err := openapi.Load(OpenAPI())
	relaytest.NoError(t, err)
	for schema, accepted := range map[string]string{
		"Codec":      fmt.Sprint(slices.Sorted(slices.Values(catalog.Names()))),
		"DeviceType": fmt.Sprint(slices.Sorted(slices.Values(iot.DeviceTypes()))),
	} {
		var words []string
		for _, word := range doc.Components.Schemas[schema].Value.Enum {
			words = append(words, fmt.Sprint(word))
		}
		slices.Sort(words)
		if got := fmt.Sprint(words); got != accepted {
			t.Errorf("%s: the contract lists %s, the handlers accept %s", schema, got, accepted)
		}
	}
}
