package documents

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestGuidesKeepTheirPromises runs the commands of docs/guides. Each page begins with an empty data
// directory.
func TestGuidesKeepTheirPromises(t *testing.T) {
	t.Parallel()
	pages := 0
	for _, page := range relaytest.Must(filepath.Glob(filepath.Join(e2e.Root(t), "docs", "guides", "*.md")))(t) {
		blocks := readConsole(t, string(relaytest.Must(os.ReadFile(page))(t)))
		if len(blocks) == 0 {
			continue
		}
		pages++
		t.Run(strings.TrimSuffix(filepath.Base(page), ".md"), func(t *testing.T) {
			newReader(t).runBlocks(blocks)
		})
	}
	if pages < 4 {
		t.Errorf("pages of docs/guides with commands = %d, want at least 4", pages)
	}
}
