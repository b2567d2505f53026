package documents

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestRulesPageKeepsItsPromises runs the ten recipes of docs/rules.md as they stand
// there, on a running gateway.
func TestRulesPageKeepsItsPromises(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(e2e.Root(t), "docs", "rules.md"))
	relaytest.NoError(t, err)
	_, recipes, found := strings.Cut(string(text), "\n## Recipes\n")
	if !found {
		t.Fatal("docs/rules.md has no recipes")
	}
	headings := regexp.MustCompile(`(?m)^### .*$`).FindAllString(recipes, -1)
	blocks := readConsole(t, string(text))
	if len(headings) != 10 || len(blocks) != 1+len(headings) {
		t.Fatalf("docs/rules.md has %d recipes and %d blocks to run, want 10, and one that prepares them", len(headings), len(blocks))
	}
	r := newReader(t)
	for _, b := range blocks {
		for _, st := range b.steps {
			r.follow(st)
		}
	}
}
