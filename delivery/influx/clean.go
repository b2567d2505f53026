package influx

import (
	"strings"
	"unicode/utf8"
)

// Line protocol cannot represent a line break or a backslash at the end of a name or tag, a #
// at the start of a line begins a comment, and control characters break InfluxQL. Such
// characters are written as characters of the Unicode block Control Pictures, so that they
// are readable in Grafana and can be converted back:
//
//	U+0000-U+001F, U+007F  ␀-␟, ␡ (ESC itself: ␛e)
//	\ before , = space " \ or the end  ␛/
//	# at the start         ␛#
//	a picture itself       ␛ before it
//
// Other characters stay unchanged; invalid UTF-8 becomes U+FFFD. Texts keep characters that
// are valid in quotes: line feeds, tabs, # and backslashes. Other control characters become
// pictures in texts too, because Flux would lose a carriage return.
const (
	pictures   = '\u2400'
	pictureDEL = '\u2421'
	pictureESC = '\u241b'
)

// isPlainByte reports whether a byte needs neither cleaning nor escaping anywhere.
func isPlainByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' ||
		c == '_' || c == '-' || c == '.' || c == ':' || c == '/'
}

func isPlain(s string) bool {
	for i := range len(s) {
		if !isPlainByte(s[i]) {
			return false
		}
	}
	return true
}

// clean returns a name or tag value as the server stores it, unescaped.
func clean(s string) string {
	if isPlain(s) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == '#' && i == 0:
			b.WriteString("␛#")
		case r == '\\' && (i+1 == len(s) || strings.IndexByte(",= \"\\", s[i+1]) >= 0):
			b.WriteString("␛/")
		default:
			writePicture(&b, r)
		}
	}
	return b.String()
}

// writePicture writes a rune, or its picture if it is a control character.
func writePicture(b *strings.Builder, r rune) {
	switch {
	case r == 0x1b:
		b.WriteString("␛e")
	case r < ' ':
		b.WriteRune(pictures + r)
	case r == 0x7f:
		b.WriteRune(pictureDEL)
	case r >= pictures && r <= pictureDEL:
		b.WriteRune(pictureESC)
		b.WriteRune(r)
	default:
		b.WriteRune(r)
	}
}

// cleanText returns a text as the server stores it, unescaped; unclean reverses
// it too.
func cleanText(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
		return s // the usual case
	}
	var b strings.Builder
	for _, r := range s {
		if r == '\n' || r == '\t' {
			b.WriteRune(r)
		} else {
			writePicture(&b, r)
		}
	}
	return b.String()
}

// unclean reverses clean and cleanText.
func unclean(s string) string {
	if isPlain(s) {
		return s
	}
	var b strings.Builder
	escaped := false
	for i, r := range s {
		switch {
		case escaped:
			switch r {
			case 'e':
				r = 0x1b
			case '/':
				r = '\\'
			}
			b.WriteRune(r)
			escaped = false
		case r == pictureESC && i+utf8.RuneLen(r) < len(s):
			escaped = true
		case r >= pictures && r < pictures+' ':
			b.WriteByte(byte(r - pictures))
		case r == pictureDEL:
			b.WriteByte(0x7f)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
