package deploy_test

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/penstock/penstock/relay/relaytest"
)

// Every relative link of a Markdown file leads to an existing file and heading.
func TestRelativeLinksLeadToFilesAndHeadings(t *testing.T) {
	files := markdown(t, "..")
	if len(files) < 30 {
		t.Fatalf("only %d Markdown files were found", len(files))
	}
	for _, file := range files {
		for _, problem := range brokenLinks(t, file) {
			t.Error(problem)
		}
	}
}

// Every folder and Go file that a table of docs/architecture.md names exists. A file is named
// by its path, or after its folder in the same row.
func TestFilesInTablesOfTheArchitectureExist(t *testing.T) {
	raw, err := os.ReadFile("../docs/architecture.md")
	relaytest.NoError(t, err)
	missing, n := missingInTables(string(raw), "..")
	for _, name := range missing {
		t.Errorf("docs/architecture.md: %s does not exist", name)
	}
	if n < 50 {
		t.Errorf("only %d files were found in its tables", n)
	}
}

// missingInTables lists the files and folders of tables that do not exist below root, and
// returns the number of files that the tables name.
func missingInTables(text, root string) (missing []string, files int) {
	exists := func(path string) bool {
		_, err := os.Stat(filepath.Join(root, path))
		return err == nil
	}
	for _, row := range regexp.MustCompile(`(?m)^\|.*\|$`).FindAllString(text, -1) {
		folder := ""
		for _, m := range regexp.MustCompile("`([a-z0-9_./]+)`").FindAllStringSubmatch(row, -1) {
			name, isFile := m[1], strings.HasSuffix(m[1], ".go")
			inFolder := folder != "" && exists(filepath.Join(folder, name))
			switch {
			case isFile:
				files++
				if !inFolder && !(strings.Contains(name, "/") && exists(name)) {
					missing = append(missing, filepath.Join(folder, name))
				}
			case exists(name) && !inFolder:
				folder = name
			case strings.Contains(name, "/") && !inFolder:
				missing = append(missing, name)
			}
		}
	}
	return missing, files
}

func TestMissingFilesOfTablesAreFound(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"a/b/x.go", "a/c/y.go"} {
		relaytest.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700))
		relaytest.NoError(t, os.WriteFile(filepath.Join(root, name), nil, 0o600))
	}
	for row, want := range map[string]string{
		"| read | `a/b`: `x.go`; `a/c`: `y.go` |": "",
		"| read | `a/b`: `x.go`, `y.go` |":        "a/b/y.go",
		"| `a/c` | `x.go` |":                      "a/c/x.go",
		"| read | `a/b/x.go`, `a/b/y.go` |":       "a/b/y.go",
		"| read | `x.go` |":                       "x.go",
		"| `a` | `b`, `c/y.go`, `d/y.go` |":       "a/d/y.go",
		"| `a/d` | a folder |":                    "a/d",
	} {
		missing, _ := missingInTables(row, root)
		relaytest.Equal(t, row, strings.Join(missing, " "), want)
	}
}

// Every path of a Go file that a Markdown file names exists.
func TestDocumentsNameGoFilesThatExist(t *testing.T) {
	path := regexp.MustCompile("`((?:cmd|config|decoders|delivery|deploy|ingest|relay)/[^`\\s]+\\.go)`")
	n := 0
	for _, file := range markdown(t, "..") {
		raw, err := os.ReadFile(file)
		relaytest.NoError(t, err)
		for _, m := range path.FindAllStringSubmatch(string(raw), -1) {
			n++
			if _, err := os.Stat(filepath.Join("..", m[1])); err != nil {
				t.Errorf("%s: %s does not exist", file, m[1])
			}
		}
	}
	if n < 10 {
		t.Errorf("only %d paths were found", n)
	}
}

// Every row of a table has as many cells as the row above it, because GitHub drops or shifts other
// rows.
func TestRowsHaveTheCellsOfTheirTable(t *testing.T) {
	code := regexp.MustCompile("(?ms)^ *```.*?^ *```")
	for _, file := range markdown(t, "..") {
		raw, err := os.ReadFile(file)
		relaytest.NoError(t, err)
		cells := 0
		for line := range strings.Lines(code.ReplaceAllString(string(raw), "")) {
			if !strings.HasPrefix(strings.TrimSpace(line), "|") {
				cells = 0
				continue
			}
			n := strings.Count(line, "|") - strings.Count(line, `\|`)
			if cells != 0 && n != cells {
				t.Errorf("%s: a row has %d bars, want %d as in the row above: %s", file, n, cells, line)
			}
			cells = n
		}
	}
}

// markdown lists the Markdown files below a folder, except in folders of tools and of built files.
func markdown(t *testing.T, root string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains([]string{".git", ".tools", "node_modules", "bin", "data"}, d.Name()) {
			return filepath.SkipDir
		}
		if !d.IsDir() && strings.HasSuffix(path, ".md") {
			files = append(files, path)
		}
		return nil
	})
	relaytest.NoError(t, err)
	return files
}

// brokenLinks lists the links of a file that lead to no file or to no heading.
func brokenLinks(t *testing.T, file string) (problems []string) {
	t.Helper()
	for _, m := range regexp.MustCompile(`\]\(([^()\s]+)\)`).FindAllStringSubmatch(prose(t, file), -1) {
		u, err := url.Parse(m[1])
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s: %s: %v", file, m[1], err))
			continue
		}
		if u.Scheme != "" || u.Host != "" {
			continue
		}
		target := file
		if u.Path != "" {
			target = filepath.Join(filepath.Dir(file), u.Path)
		}
		if _, err := os.Stat(target); err != nil {
			problems = append(problems, fmt.Sprintf("%s: %s leads to no file", file, m[1]))
		} else if u.Fragment != "" && !slices.Contains(anchors(t, target), u.Fragment) {
			problems = append(problems, fmt.Sprintf("%s: %s leads to no heading", file, m[1]))
		}
	}
	return problems
}

// prose returns a Markdown file without its blocks of code, and with the word code for a span of code
// at the end of a link text.
func prose(t *testing.T, file string) string {
	t.Helper()
	raw, err := os.ReadFile(file)
	relaytest.NoError(t, err)
	text := regexp.MustCompile("(?ms)^ *```.*?^ *```").ReplaceAllString(string(raw), "")
	return regexp.MustCompile("`[^`\n]*`\\]").ReplaceAllString(text, "code]")
}

// anchors returns the anchors that GitHub gives to the headings of a file.
func anchors(t *testing.T, file string) (names []string) {
	t.Helper()
	raw, err := os.ReadFile(file)
	relaytest.NoError(t, err)
	text := regexp.MustCompile("(?ms)^ *```.*?^ *```").ReplaceAllString(string(raw), "")
	times := map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)^#{1,6} +(.*?) *$`).FindAllStringSubmatch(text, -1) {
		name := anchor(m[1])
		if n := times[name]; n > 0 {
			names = append(names, fmt.Sprintf("%s-%d", name, n))
		} else {
			names = append(names, name)
		}
		times[name]++
	}
	return names
}

func anchor(heading string) string {
	heading = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(heading, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

func TestBrokenLinksAreFound(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "page.md")
	const text = "# The page\n## A `b` & c\n## A `b` & c\n[1](page.md#a-b--c-1) [2](#the-page) [3](https://x.example/y)\n" +
		"[4](other.md) [5](#nothing) [`code`](page.md#gone)\n```\n[6](in-code.md)\n```\n"
	relaytest.NoError(t, os.WriteFile(page, []byte(text), 0o600))
	got := strings.Join(brokenLinks(t, page), "\n")
	for _, want := range []string{"other.md leads to no file", "#nothing leads to no heading", "page.md#gone leads to no heading"} {
		if !strings.Contains(got, want) {
			t.Errorf("broken links = %s, want them to contain: %s", got, want)
		}
	}
	if n := strings.Count(got, "leads"); n != 3 {
		t.Errorf("%d broken links, want 3:\n%s", n, got)
	}
}
