// Package sending tests messages that accounts send: over an SMSC, Kannel, SOAP and REST v2,
// end to end.
package sending

import (
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
