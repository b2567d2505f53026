package documents

import (
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	document "github.com/penstock/penstock/config/inventory"
	"github.com/penstock/penstock/decoders/catalog/catalogtest"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/inventory"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestExampleOfTheInventoryPageParses parses the example of docs/inventory.md.
func TestExampleOfTheInventoryPageParses(t *testing.T) {
	t.Parallel()
	d, err := document.Parse([]byte(e2e.CodeBlock(t, "docs/inventory.md", "yaml")), document.Options{
		CheckSource: func(codec, source string) error { _, err := catalogtest.Compile(codec, source, false); return err }, CheckFilter: inbound.CheckFilter, CheckEndpoint: inbound.CheckEndpoint, CheckRule: inventory.CheckRule,
	})
	relaytest.NoError(t, err)
	if len(d.Accounts) != 1 {
		t.Fatalf("accounts in the example = %d, want 1", len(d.Accounts))
	}
	relaytest.Equal(t, "the number of tokens", len(d.Accounts[0].Tokens), 3)
	relaytest.Equal(t, "the number of rules", len(d.Accounts[0].Rules), 1)
}
