package documents

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestGuidesKeepTheirPromises runs the commands of docs/guides, each page from an empty
// data directory.
func TestGuidesKeepTheirPromises(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob(filepath.Join(e2e.Root(t), "docs", "guides", "*.md"))
	relaytest.NoError(t, err)
	ran := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		relaytest.NoError(t, err)
		blocks := readConsole(t, string(text))
		if len(blocks) == 0 {
			continue
		}
		ran++
		t.Run(strings.TrimSuffix(filepath.Base(page), ".md"), func(t *testing.T) {
			r := newReader(t)
			for _, b := range blocks {
				for _, st := range b.steps {
					r.follow(st)
				}
			}
		})
	}
	if ran < 4 {
		t.Errorf("only %d pages of docs/guides have commands to run", ran)
	}
}
