// Package rules tests rules and alarms, end to end.
package rules

import (
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }

// TestGateway runs every suite of this folder on every site.
func TestGateway(t *testing.T) {
	e2e.RunSuites(t, []e2e.Suite{
		{Name: "rules", Run: testRules},
	})
}
