package sms

import (
	"strings"
	"unicode"
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
	for code, r := range map[byte]rune{ // the extension table; page break is a form feed
		0x0A: '\f', 0x14: '^', 0x28: '{', 0x29: '}', 0x2F: '\\',
		0x3C: '[', 0x3D: '~', 0x3E: ']', 0x40: '|', 0x65: '€',
	} {
		a.ext[code] = r
		a.codes[r] = []byte{escape, code}
	}
	a.national = newNational(&a.char, &a.ext)
	return a
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

// Unpack spreads packed 7-bit text (TS 23.038, 6.1.2.1) to one septet per octet. before is
// the number of octets of user data header before data: the text begins at the next septet's
// border behind them.
//
// The number of septets follows from the octets only. Where seven bits are
// left over, they are taken for padding if they are zero, which could also be
// the character @, or a carriage return, as 6.1.2.3.1 pads.
func Unpack(data []byte, headerOctets int) []byte {
	const bits = 7
	offset := (bits - headerOctets*8%bits) % bits // the fill bits
	if offset > len(data)*8 {
		return nil
	}
	buf := make([]byte, 0, (len(data)*8-offset)/bits)
	for ; offset+bits <= len(data)*8; offset += bits {
		v := uint16(data[offset/8])
		if offset/8+1 < len(data) {
			v |= uint16(data[offset/8+1]) << 8
		}
		buf = append(buf, byte(v>>(offset%8))&0x7F)
	}
	if lastIndex := len(buf) - 1; offset == len(data)*8 && lastIndex >= 0 && (buf[lastIndex] == 0 || buf[lastIndex] == '\r') {
		buf = buf[:lastIndex]
	}
	return buf
}

// Pack packs septets, one in each octet, as on the air (TS 23.038, 6.1.2.1).
// headerOctets is the number of octets of user data header before them. Seven bits that are left over are a
// carriage return (6.1.2.3.1): zeros would be an @.
func Pack(septets []byte, headerOctets int) []byte {
	const bits = 7
	offset := (bits - headerOctets*8%bits) % bits // the fill bits
	end := offset + bits*len(septets)
	if end%8 == 1 && len(septets) > 0 {
		septets = append(septets[:len(septets):len(septets)], '\r')
	}
	buf := make([]byte, (end+7)/8)
	for _, c := range septets {
		v := uint16(c&0x7F) << (offset % 8)
		buf[offset/8] |= byte(v)
		if offset/8+1 < len(buf) {
			buf[offset/8+1] |= byte(v >> 8)
		}
		offset += bits
	}
	return buf
}

// Limits of an originator (TS 23.040, 9.1.2.5): digits of a number, characters of
// a name.
const (
	maxOriginatorDigits = 15
	maxOriginatorName   = 11
)

// IsOriginator reports whether phones can show a text as the originator of a
// message: 1 to 15 digits, with or without a plus sign, or 1 to 11 characters of the
// alphabet.
func (a *Alphabet) IsOriginator(text string) bool {
	if digits := NormalizeOriginator(text); digits != "" && isDigits(digits) {
		return len(digits) <= maxOriginatorDigits
	}
	return utf8.RuneCountInString(text) <= maxOriginatorName && strings.TrimSpace(text) != "" &&
		!strings.ContainsFunc(text, unicode.IsControl) && a.Fits(text)
}

// NormalizeOriginator returns a number without its plus sign, and any other
// originator as it is.
func NormalizeOriginator(originator string) string {
	if digits, ok := strings.CutPrefix(originator, "+"); ok && digits != "" && isDigits(digits) {
		return digits
	}
	return originator
}

func isDigits(s string) bool { return strings.Trim(s, "0123456789") == "" }
