package documents

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	document "github.com/penstock/penstock/config/inventory"
	"github.com/penstock/penstock/decoders/catalog"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/inventory"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestInventoryPage checks the example of docs/inventory.md.
func TestInventoryPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(e2e.Root(t), "docs", "inventory.md"))
	relaytest.NoError(t, err)
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(page)
	if block == nil {
		t.Fatal("docs/inventory.md has no example")
	}
	d, err := document.Parse(block[1], document.Options{
		CheckSource: func(codec, source string) error { _, err := catalog.Compile(codec, source, false); return err }, CheckFilter: inbound.CheckFilter, CheckEndpoint: inbound.CheckEndpoint, CheckRule: inventory.CheckRule,
	})
	if err != nil || len(d.Accounts) != 1 || len(d.Accounts[0].Tokens) != 3 || len(d.Accounts[0].Rules) != 1 {
		t.Errorf("%v: %+v", err, d)
	}
}
