package gsm

import (
	"strings"
	"unicode/utf8"

	"github.com/penstock/penstock/decoders"
)

// escape announces a character of the extension table.
const escape = 0x1B

// alphabet is the default alphabet in order of its codes; the escape stands at
// its place and is never looked up.
const alphabet = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞ\x1bÆæßÉ" +
	" !\"#¤%&'()*+,-./0123456789:;<=>?" +
	"¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§" +
	"¿abcdefghijklmnopqrstuvwxyzäöñüà"

// Alphabet translates between UTF-8 and unpacked 7-bit text. It is read-only
// and safe for concurrent use.
type Alphabet struct {
	char  [128]rune
	ext   [128]rune // 0 where the extension table has nothing
	codes map[rune][]byte
}

// NewAlphabet returns the default alphabet with its extension.
func NewAlphabet() *Alphabet {
	a := &Alphabet{codes: make(map[rune][]byte, 137)}
	code := byte(0)
	for _, r := range alphabet {
		a.char[code] = r
		if code != escape {
			a.codes[r] = []byte{code}
		}
		code++
	}
	for code, r := range extension() {
		a.ext[code] = r
		a.codes[r] = []byte{escape, code}
	}
	return a
}

// extension is the extension table; page break is a form feed.
func extension() map[byte]rune {
	return map[byte]rune{
		0x0A: '\f', 0x14: '^', 0x28: '{', 0x29: '}', 0x2F: '\\',
		0x3C: '[', 0x3D: '~', 0x3E: ']', 0x40: '|', 0x65: '€',
	}
}

// Decode reads 7-bit text, one septet per octet. An escape before a character
// that the extension lacks shows that character of the default alphabet, and
// an escape before an escape or at the end a space (TS 23.038, 6.2.1.1). An
// octet above 0x7F is an error.
func (a *Alphabet) Decode(data []byte) (string, error) {
	var b strings.Builder
	escaped := false
	for i, c := range data {
		switch {
		case c > 0x7F:
			return "", &decoders.Error{Format: "gsm7", Offset: i, Reason: "octet above 0x7F"}
		case !escaped && c == escape:
			escaped = true
			continue
		}
		b.WriteRune(a.lookup(c, escaped))
		escaped = false
	}
	if escaped {
		b.WriteByte(' ')
	}
	return b.String(), nil
}

func (a *Alphabet) lookup(c byte, escaped bool) rune {
	if escaped && c == escape {
		return ' '
	}
	if escaped && a.ext[c] != 0 {
		return a.ext[c]
	}
	return a.char[c]
}

// Encode writes text as septets, one per octet. A character that the alphabet
// lacks, or text that is not UTF-8, is an error.
func (a *Alphabet) Encode(text string) ([]byte, error) {
	out := make([]byte, 0, len(text))
	for i, r := range text {
		code, ok := a.codes[r]
		if !ok {
			return nil, &decoders.Error{Format: "gsm7", Offset: i, Reason: "not in the alphabet"}
		}
		out = append(out, code...)
	}
	return out, nil
}

// Fits reports whether the alphabet has every character of a text.
func (a *Alphabet) Fits(text string) bool {
	if !utf8.ValidString(text) {
		return false
	}
	for _, r := range text {
		if _, ok := a.codes[r]; !ok {
			return false
		}
	}
	return true
}
