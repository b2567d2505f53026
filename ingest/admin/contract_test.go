package admin

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock/penstock/ingest/openapi"
	"github.com/penstock/penstock/ingest/openapi/contracttest"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestRoutesAreOperationsOfTheContract(t *testing.T) {
	contracttest.CheckSurface(t, OpenAPI(), New(Deps{Metrics: prometheus.NewRegistry(), Now: time.Now}).Mount)
}

func TestTheContractNamesEveryAcceptedValue(t *testing.T) {
	doc, err := openapi.Load(OpenAPI())
	relaytest.NoError(t, err)
	for name, want := range map[string]string{
		"kind":           fmt.Sprint(event.Kinds()),
		"state":          fmt.Sprint(event.States()),
		"delivery_state": fmt.Sprint(outbox.States()),
		"delivery_kind":  fmt.Sprint(outbox.Kinds()),
	} {
		if got := fmt.Sprint(doc.Components.Parameters[name].Value.Schema.Value.Enum); got != want {
			t.Errorf("%s: values in the contract = %s, want %s", name, got, want)
		}
	}
}
