// Package console tests the console in Chromium, end to end.
package console

import (
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
