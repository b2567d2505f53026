package strict

import (
	"fmt"
	"strings"
)

// maxMistakes is the maximum number of mistakes in a report.
const maxMistakes = 100

// Mistake is one thing that is wrong with a document.
type Mistake struct {
	Path string // of the field, for example accounts[0].credit; empty: the document
	Text string // what was expected
}

// String returns "path: text".
func (m Mistake) String() string {
	if m.Path == "" {
		return m.Text
	}
	return m.Path + ": " + m.Text
}

// Mistakes collects the mistakes of a document, in the document's order.
type Mistakes []Mistake

// Error returns one line per mistake.
func (m Mistakes) Error() string {
	lines := make([]string, len(m))
	for i, one := range m {
		lines[i] = one.String()
	}
	return strings.Join(lines, "\n")
}

// Add notes a mistake, unless the field has one already: what follows from a
// mistake is noise.
func (m *Mistakes) Add(path, format string, args ...any) {
	if m.Has(path) || len(*m) > maxMistakes {
		return
	}
	if len(*m) == maxMistakes {
		*m = append(*m, Mistake{Text: "more mistakes than are shown"})
		return
	}
	*m = append(*m, Mistake{Path: path, Text: fmt.Sprintf(format, args...)})
}

// AddIf is Add where a condition holds.
func (m *Mistakes) AddIf(wrong bool, path, format string, args ...any) {
	if wrong {
		m.Add(path, format, args...)
	}
}

// Has reports whether the field, or what it stands in, has a mistake already.
func (m Mistakes) Has(path string) bool {
	for _, one := range m {
		remaining, inside := strings.CutPrefix(path, one.Path)
		if one.Path != "" && inside && (remaining == "" || remaining[0] == '.' || remaining[0] == '[') {
			return true
		}
	}
	return false
}

// Err returns the mistakes as an error, or nil if there are none.
func (m Mistakes) Err() error {
	if len(m) == 0 {
		return nil
	}
	return m
}

// Nearest returns the known name that was probably meant: one that differs in
// at most two letters, and in at most half of them.
func Nearest(name string, known []string) (string, bool) {
	best, minimum := "", min(2, len(name)/2)+1
	for _, k := range known {
		if len(name) > 2*len(k)+2 {
			continue // a hostile name must not cost a long comparison
		}
		if d := distance(name, k); d < minimum {
			best, minimum = k, d
		}
	}
	return best, best != ""
}

// distance counts the letters to insert, remove or replace (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
