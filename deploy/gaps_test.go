package deploy_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
)

// TestGapsNameTheirTests checks the columns "test" in docs/not-shown.md and docs/reliability.md:
// each row names a test, each package in a cell exists, and each name of a test is part of the
// name of a test function.
func TestGapsNameTheirTests(t *testing.T) {
	functions := testFunctions(t)
	for _, page := range []string{"not-shown.md", "reliability.md"} {
		raw, err := os.ReadFile(filepath.Join("..", "docs", page))
		relaytest.NoError(t, err)
		rows := testColumns(string(raw))
		if len(rows) < 30 {
			t.Errorf("docs/%s: only %d rows with a test were found", page, len(rows))
		}
		for _, row := range rows {
			for _, reason := range missingTests(row.test, functions) {
				t.Errorf("docs/%s: %s: %s", page, row.title, reason)
			}
		}
	}
}

// testRow is a row of a table whose last column has the heading "test".
type testRow struct{ title, test string }

func testColumns(text string) (rows []testRow) {
	inTable := false
	for line := range strings.Lines(text) {
		line = strings.Trim(strings.TrimSpace(line), "|")
		cells := strings.Split(line, " | ")
		lastCell := strings.TrimSpace(cells[len(cells)-1])
		switch {
		case len(cells) < 2 && !strings.HasPrefix(line, "---"):
			inTable = false
		case lastCell == "test":
			inTable = true
		case inTable && !strings.HasPrefix(line, "---"):
			rows = append(rows, testRow{strings.TrimSpace(cells[0]), lastCell})
		}
	}
	return rows
}

// missingTests returns a reason for each package or test that a cell names but that does not exist.
func missingTests(cell string, functions []string) (reasons []string) {
	if cell == "" {
		return []string{"no test is named"}
	}
	for _, m := range regexp.MustCompile("`([a-z0-9/]+)`").FindAllStringSubmatch(cell, -1) {
		if info, err := os.Stat(filepath.Join("..", m[1])); err != nil || !info.IsDir() {
			reasons = append(reasons, "the package "+m[1]+" does not exist")
		}
	}
	for _, name := range regexp.MustCompile(`\b[A-Z][a-z]*[A-Z][A-Za-z0-9]+`).FindAllString(regexp.MustCompile("`[^`]*`").ReplaceAllString(cell, ""), -1) {
		if !slices.ContainsFunc(functions, func(f string) bool { return strings.Contains(f, name) }) {
			reasons = append(reasons, "the test "+name+" does not exist")
		}
	}
	return reasons
}

// testFunctions lists the names of all test functions of the repository.
func testFunctions(t *testing.T) (names []string) {
	t.Helper()
	declaration := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains([]string{".git", ".tools", "node_modules", "bin", "data"}, d.Name()) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range declaration.FindAllSubmatch(raw, -1) {
			names = append(names, string(m[1]))
		}
		return nil
	})
	relaytest.NoError(t, err)
	return names
}
