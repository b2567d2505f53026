package decoders

import "strings"

// Clip shortens a text to n bytes of valid UTF-8 and an ellipsis. A text that is not
// longer stays as it is.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
