// Package gateways tests several gateways on the same back ends, end to end.
package gateways

import (
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
