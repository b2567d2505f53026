package decoders

import "strings"

// NormalizeDevEUI gives a devEUI as 16 lower-case hex digits. It takes any case, with
// the separators of HexDigits, and refuses anything else.
func NormalizeDevEUI(s string) (string, bool) { return HexDigits(s, 16) }

// HexDigits gives the hex digits of an address of n digits in lower case. It takes any
// case, with colons, hyphens or spaces between the digits, or with dots between groups
// of two or four, so that "192.168.100.101" is not an address of 12 digits.
func HexDigits(s string, n int) (string, bool) {
	if !isPlainHex(s, n) {
		if strings.Contains(s, ".") {
			if !isDotted(s) {
				return "", false
			}
			s = strings.ReplaceAll(s, ".", "")
		}
		s = strings.ToLower(withoutSeparators(s))
	}
	if !isPlainHex(s, n) {
		return "", false
	}
	return s, true
}

// withoutSeparators removes colons, hyphens and blanks.
func withoutSeparators(s string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case ':', '-', ' ':
			return -1
		}
		return r
	}, s)
}

// isPlainHex reports whether s is n lower-case hex digits.
func isPlainHex(s string, n int) bool {
	if len(s) != n {
		return false
	}
	for i := range n {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// isDotted reports whether the dots of s divide it into groups of two, or into groups
// of four.
func isDotted(s string) bool {
	groups := strings.Split(strings.TrimSpace(s), ".")
	size := len(groups[0])
	for _, group := range groups {
		if len(group) != size || size != 2 && size != 4 {
			return false
		}
	}
	return true
}
