package decoders

import (
	"slices"
	"strings"
)

// Notes say what of a record was accepted but not used, each in one sentence that names
// the member. Their number and length are bounded.
type Notes []string

const (
	maxNotes = 20  // of a record
	maxNote  = 300 // bytes
)

// Add adds notes, except those that are empty or there already. The last one reports that
// more are left out.
func (n *Notes) Add(notes ...string) {
	for _, text := range notes {
		text = Clip(strings.ToValidUTF8(text, "\uFFFD"), maxNote)
		switch {
		case text == "" || len(*n) == maxNotes || slices.Contains(*n, text):
		case len(*n) == maxNotes-1:
			*n = append(*n, "further notes are left out")
		default:
			*n = append(*n, text)
		}
	}
}

// Clip shortens a text to n bytes of valid UTF-8 and an ellipsis. A text that is not
// longer stays as it is.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
