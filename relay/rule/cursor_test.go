package rule

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzParseCursor checks that formatCursor returns a valid cursor unchanged, and that the cursor's id is
// valid UTF-8 without NUL and blanks.
func FuzzParseCursor(f *testing.F) {
	for _, seed := range []string{"", "!", formatCursor(1, "01J0000000000000000000000A"), formatCursor(-5, "a\x00b"), formatCursor(7, "a b"), formatCursor(7, "\xff")} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		raisedAt, id, err := parseCursor(cursor)
		if err != nil || cursor == "" {
			return
		}
		if formatCursor(raisedAt, id) != cursor || !utf8.ValidString(id) || strings.ContainsAny(id, "\x00 ") {
			t.Errorf("parseCursor(%q) = %d, %q, want an error", cursor, raisedAt, id)
		}
	})
}
