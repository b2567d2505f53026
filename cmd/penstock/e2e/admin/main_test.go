// Package admin tests the interfaces for operators end to end: inventory, explain, traces, users and
// commands.
package admin

import (
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }

// TestGateway runs every suite of this folder.
func TestGateway(t *testing.T) {
	e2e.RunSuites(t, e2e.Suites{
		"inventory":                      testInventory,
		"inventory, refused":             testInventoryRefused,
		"inventory, pruned":              testPrune,
		"inventory of several documents": testDocuments,
		"shell":                          testShell,
	}, "inventory of several documents")
}
