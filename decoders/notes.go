package decoders

import (
	"slices"
	"strings"
)

// Notes are sentences about the parts of a record that were accepted but not used. Their number
// and length are limited.
type Notes []string

const (
	maxNotes = 20  // of a record
	maxNote  = 300 // bytes
)

// Add adds notes, except empty and repeated ones. If there are too many, the last note reports
// that.
func (n *Notes) Add(notes ...string) {
	for _, text := range notes {
		text = Clip(strings.ToValidUTF8(text, "\uFFFD"), maxNote)
		switch {
		case text == "" || len(*n) == maxNotes || slices.Contains(*n, text):
		case len(*n) == maxNotes-1:
			*n = append(*n, "further notes are omitted")
		default:
			*n = append(*n, text)
		}
	}
}

// Clip shortens a text that is longer than n bytes to n bytes of valid UTF-8 and an ellipsis.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
