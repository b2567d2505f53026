package strict

import (
	"fmt"
	"strings"
)

// maxMistakes is the maximum number of mistakes in a report.
const maxMistakes = 100

// Mistake is a mistake in a document.
type Mistake struct {
	Path string // of the field, for example accounts[0].credit; empty for the document
	Text string // the expected value: "expected a mapping, got a list"
}

// String returns "path: text".
func (m Mistake) String() string {
	if m.Path == "" {
		return m.Text
	}
	return m.Path + ": " + m.Text
}

// Mistakes collects the mistakes of a document in the order in which they are found.
type Mistakes []Mistake

// Error returns one line per mistake.
func (m Mistakes) Error() string {
	lines := make([]string, len(m))
	for i, mistake := range m {
		lines[i] = mistake.String()
	}
	return strings.Join(lines, "\n")
}

// Add adds a mistake, unless the field or one that contains it has a mistake already: the
// second one often only follows from the first.
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

// AddIf adds a mistake if isMistake is true.
func (m *Mistakes) AddIf(isMistake bool, path, format string, args ...any) {
	if isMistake {
		m.Add(path, format, args...)
	}
}

// Has reports whether the field, or one that contains it, has a mistake.
func (m Mistakes) Has(path string) bool {
	for _, mistake := range m {
		remaining, isWithin := strings.CutPrefix(path, mistake.Path)
		if mistake.Path != "" && isWithin && (remaining == "" || remaining[0] == '.' || remaining[0] == '[') {
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

// Nearest returns the most similar known name; ok is false if each differs in more than two
// letters, or in more than half of them.
func Nearest(name string, known []string) (nearest string, ok bool) {
	minimum := min(2, len(name)/2) + 1
	for _, k := range known {
		if len(name) > 2*len(k)+2 {
			continue // a hostile name must not cost a long comparison
		}
		if d := distance(name, k); d < minimum {
			nearest, minimum = k, d
		}
	}
	return nearest, nearest != ""
}

// distance returns the Levenshtein distance: the number of letters to insert, remove or
// replace.
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
