package sms

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/penstock/penstock/decoders"
)

// escape announces a character of the extension table.
const escape = 0x1B

// Alphabet translates between UTF-8 and unpacked 7-bit text. It is read-only
// and safe for concurrent use.
type Alphabet struct {
	tables *tables
	codes  map[rune][]byte // of the default alphabet and its extension
}

// NewAlphabet returns the default alphabet and its extension, and the national language
// tables for decoding.
func NewAlphabet() *Alphabet {
	a := &Alphabet{tables: nationalTables(), codes: make(map[rune][]byte, 137)}
	for septet, r := range a.tables.locking[0] {
		if septet != escape {
			a.codes[r] = []byte{byte(septet)}
		}
	}
	for septet, r := range a.tables.single[0] {
		if r != 0 {
			a.codes[r] = []byte{escape, byte(septet)}
		}
	}
	return a
}

// Decode decodes 7-bit text, one septet in each octet. An escape before a septet
// without a character in the extension is ignored. An escape before an escape or at
// the end is a space (TS 23.038, 6.2.1.1). An octet above 0x7F is an error.
func (a *Alphabet) Decode(data []byte) (string, error) { return a.DecodeIn(Languages{}, data) }

// DecodeIn decodes like Decode, with national language tables. Unknown tables are replaced by the
// default ones. A septet without a character becomes U+FFFD.
func (a *Alphabet) DecodeIn(l Languages, data []byte) (string, error) {
	l = l.Known()
	char, ext := &a.tables.locking[l.Locking], &a.tables.single[l.Single]
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

// Encode encodes text as septets, one in each octet. A character that is missing from the
// alphabet is an error, and so is invalid UTF-8.
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
	_, err := a.Encode(text)
	return err == nil
}

// Unpack converts packed 7-bit text (TS 23.038, 6.1.2.1) to one septet in each octet.
// headerOctets is the length of the user data header before data. The text begins at the
// first septet boundary after the header.
//
// The number of septets is unknown. If data ends with seven unused bits, a last septet of 0
// is taken for padding, although it could be the character @, and so is a carriage
// return (6.1.2.3.1).
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

// Pack packs septets, one in each octet, for the radio interface (TS 23.038, 6.1.2.1).
// headerOctets is the length of the user data header before them. Seven unused bits at the
// end are filled with a carriage return (6.1.2.3.1), because zeros would be an @.
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

// The largest lengths of an originator (TS 23.040, 9.1.2.5).
const (
	maxOriginatorDigits = 15
	maxOriginatorName   = 11
)

// IsOriginator reports whether phones can show a text as the originator of a
// message: 1 to 15 digits, with or without a plus sign, or 1 to 11 characters of the
// alphabet, not all blank and none a control character.
func (a *Alphabet) IsOriginator(text string) bool {
	if digits := NormalizeOriginator(text); digits != "" && isDigits(digits) {
		return len(digits) <= maxOriginatorDigits
	}
	return utf8.RuneCountInString(text) <= maxOriginatorName && strings.TrimSpace(text) != "" &&
		!strings.ContainsFunc(text, unicode.IsControl) && a.Fits(text)
}

// NormalizeOriginator returns a number without its plus sign, and any other
// originator unchanged.
func NormalizeOriginator(originator string) string {
	if digits, ok := strings.CutPrefix(originator, "+"); ok && digits != "" && isDigits(digits) {
		return digits
	}
	return originator
}

func isDigits(s string) bool { return strings.Trim(s, "0123456789") == "" }
