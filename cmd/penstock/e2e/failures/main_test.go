// Package failures tests kills, outages, faults, damage, overload, backup and recovery, end
// to end.
package failures

import (
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
