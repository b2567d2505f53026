// Package admin tests the operator's interfaces: inventory, explain, traces, users, the
// shell, end to end.
package admin

import (
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }

// TestGateway runs every suite of this folder on every site.
func TestGateway(t *testing.T) {
	e2e.RunSuites(t, []e2e.Suite{
		{Name: "inventory", Run: testInventory},
		{Name: "inventory, refused", Run: testInventoryRefused},
		{Name: "inventory, pruned", Run: testPrune},
		{Name: "inventory of several documents", Run: testDocuments},
		{Name: "shell", Run: testShell},
	})
}
