package documents

import (
	"regexp"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/porttest"
)

// TestRulesPageKeepsItsPromises runs the ten recipes of docs/rules.md.
func TestRulesPageKeepsItsPromises(t *testing.T) {
	t.Parallel()
	// TestReadmeKeepsItsPromises may use the documented address of the endpoint at the same time.
	sink := porttest.Address(t)
	text := strings.NewReplacer("127.0.0.1:9099", sink, "./deploy/sink", "./deploy/sink -listen "+sink).Replace(e2e.RepositoryFile(t, "docs/rules.md"))
	_, recipes, found := strings.Cut(text, "\n## Recipes\n")
	if !found {
		t.Fatal("docs/rules.md has no recipes")
	}
	headings := regexp.MustCompile(`(?m)^### .*$`).FindAllString(recipes, -1)
	blocks := readConsole(t, text)
	if len(headings) != 10 || len(blocks) != 1+len(headings) {
		t.Fatalf("recipes in docs/rules.md = %d, blocks to run = %d, want 10 recipes and one block before them", len(headings), len(blocks))
	}
	newReader(t).runBlocks(blocks)
}
