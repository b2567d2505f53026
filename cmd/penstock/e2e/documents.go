package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
)

// RepositoryFile reads a file of the repository, such as docs/rules.md.
func RepositoryFile(t *testing.T, name string) string {
	t.Helper()
	return string(relaytest.Must(os.ReadFile(filepath.Join(Root(t), filepath.FromSlash(name))))(t))
}

// APIPage reads a page of docs/api.
func APIPage(t *testing.T, name string) string {
	t.Helper()
	return RepositoryFile(t, "docs/api/"+name+".md")
}

// CodeBlock returns the first code block of a language in a page, such as docs/rules.md.
func CodeBlock(t *testing.T, page, language string) string {
	t.Helper()
	_, remaining, found := strings.Cut(RepositoryFile(t, page), "```"+language+"\n")
	block, _, closed := strings.Cut(remaining, "```")
	if !found || !closed {
		t.Fatalf("%s has no block of %s", page, language)
	}
	return block
}

// LinesMatch reports whether lines match a pattern, in which … stands for any text within a
// line, and a line that is only … stands for any number of lines.
func LinesMatch(pattern, got []string) bool {
	if len(pattern) == 0 {
		return len(got) == 0
	}
	if pattern[0] == "…" {
		for n := range len(got) + 1 {
			if LinesMatch(pattern[1:], got[n:]) {
				return true
			}
		}
		return false
	}
	return len(got) > 0 && LineMatches(pattern[0], got[0]) && LinesMatch(pattern[1:], got[1:])
}

// LineMatches reports whether a line matches a pattern, in which … stands for any text.
func LineMatches(pattern, got string) bool {
	parts := strings.Split(pattern, "…")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile(`^` + strings.Join(parts, `.*`) + `$`).MatchString(got)
}
