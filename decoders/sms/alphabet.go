package sms

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
	char     table
	ext      table
	national *national
	codes    map[rune][]byte
}

// NewAlphabet returns the default alphabet with its extension, and the national
// language tables for what is decoded.
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
	a.national = newNational(&a.char, &a.ext)
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
func (a *Alphabet) Decode(data []byte) (string, error) { return a.DecodeIn(Languages{}, data) }

// DecodeIn is Decode with national language tables. Those that are not known are
// the default ones; a septet that no table has is U+FFFD.
func (a *Alphabet) DecodeIn(l Languages, data []byte) (string, error) {
	l = l.Known()
	char, ext := &a.national.locking[l.Locking], &a.national.single[l.Single]
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
		b.WriteRune(lookup(char, ext, c, escaped))
		escaped = false
	}
	if escaped {
		b.WriteByte(' ')
	}
	return b.String(), nil
}

func lookup(char, ext *table, c byte, escaped bool) rune {
	switch {
	case escaped && c == escape:
		return ' '
	case escaped && ext[c] != 0:
		return ext[c]
	case char[c] == 0:
		return utf8.RuneError
	}
	return char[c]
}

// Encode writes text as septets, one per octet. A character that the alphabet
// lacks, or text that is not UTF-8, is an error.
func (a *Alphabet) Encode(text string) ([]byte, error) {
	buf := make([]byte, 0, len(text))
	for i, r := range text {
		code, ok := a.codes[r]
		if !ok {
			return nil, &decoders.Error{Format: "gsm7", Offset: i, Reason: "not in the alphabet"}
		}
		buf = append(buf, code...)
	}
	return buf, nil
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
