// Package documents tests the README, the guides and the pages of docs end to end.
package documents

import (
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
