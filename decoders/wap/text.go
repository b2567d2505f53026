package wap

import (
	"strings"
	"unicode/utf8"
)

// checkAddress refuses an address (RFC 3986) that is empty or holds anything
// but printable ASCII.
func checkAddress(format, field, url string) error {
	if url == "" {
		return refuse(format, field, 0, "is empty")
	}
	for i := range len(url) {
		if url[i] <= ' ' || url[i] > '~' {
			return refuse(format, field, i, "is not printable ASCII")
		}
	}
	return nil
}

// checkText refuses a text that is not UTF-8 or has characters that are none in
// XML (XML 1.0, 2.2) or end a string; breaks says whether lines and tabs may be.
func checkText(format, field, text string, breaks bool) error {
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD"):
			return refuse(format, field, i, "is not UTF-8")
		case breaks && (r == '\t' || r == '\n' || r == '\r'):
			continue
		case r < ' ' || r == 0x7F || r == 0xFFFE || r == 0xFFFF:
			return refuse(format, field, i, "control character")
		}
	}
	return nil
}
