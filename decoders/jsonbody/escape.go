package jsonbody

import (
	"unicode/utf16"
	"unicode/utf8"
)

// Unescape resolves the escapes of a string whose syntax was checked. Half a
// surrogate pair becomes U+FFFD.
func Unescape(raw []byte) []byte {
	decoded := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		if raw[i] != '\\' || i+1 >= len(raw) {
			decoded = append(decoded, raw[i])
			i++
			continue
		}
		if raw[i+1] != 'u' {
			decoded = append(decoded, plainEscape(raw[i+1]))
			i += 2
			continue
		}
		c, n := unicodeEscape(raw[i:])
		decoded = utf8.AppendRune(decoded, c)
		i += n
	}
	return decoded
}

func plainEscape(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

// unicodeEscape reads \uXXXX, or two of them that are a surrogate pair, and
// returns how many bytes that took.
func unicodeEscape(raw []byte) (rune, int) {
	c, _ := hex4(raw[2:])
	if !utf16.IsSurrogate(c) {
		return c, 6
	}
	if len(raw) >= 12 && raw[6] == '\\' && raw[7] == 'u' {
		if low, ok := hex4(raw[8:]); ok {
			if pair := utf16.DecodeRune(c, low); pair != utf8.RuneError {
				return pair, 12
			}
		}
	}
	return utf8.RuneError, 6
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	var n rune
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		n = n<<4 | rune(c)
	}
	return n, true
}
