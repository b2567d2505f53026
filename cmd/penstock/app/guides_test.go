package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGuidesKeepTheirPromises runs the commands of docs/guides, each page from an empty
// data directory.
func TestGuidesKeepTheirPromises(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob(filepath.Join("..", "..", "..", "docs", "guides", "*.md"))
	must(t, err)
	ran := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		must(t, err)
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
