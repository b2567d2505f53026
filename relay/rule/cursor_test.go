package rule

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzParseCursor checks that a valid cursor is equal to the result of formatCursor and contains only
// characters that a database accepts.
func FuzzParseCursor(f *testing.F) {
	for _, seed := range []string{"", "!", formatCursor(1, "01J0000000000000000000000A"), formatCursor(-5, "a\x00b"), formatCursor(7, "a b"), formatCursor(7, "\xff")} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		raised, id, err := parseCursor(cursor)
		if err != nil || cursor == "" {
			return
		}
		if formatCursor(raised, id) != cursor || !utf8.ValidString(id) || strings.ContainsAny(id, "\x00 ") {
			t.Errorf("parseCursor(%q) = %d, %q", cursor, raised, id)
		}
	})
}
