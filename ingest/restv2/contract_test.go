package restv2

import (
	"testing"

	"github.com/penstock/penstock/ingest/openapi/contracttest"
)

func TestRoutesAreOperationsOfTheContract(t *testing.T) {
	contracttest.CheckSurface(t, OpenAPI(), New(Deps{}).Mount)
}
