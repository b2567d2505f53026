package jsonbody

import (
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// readScalar reads a string, number or literal.
func (r *Reader) readScalar() Value {
	start := r.i
	r.unread = false
	switch r.Kind() {
	case String:
		raw, escaped := r.scanString()
		return Value{Kind: String, raw: raw, escaped: escaped}
	case Number:
		return r.scanNumber()
	case Bool, Null:
		return r.scanLiteral()
	}
	r.i = max(start, r.i)
	r.fail("a value was expected")
	return Value{}
}

// scanString reads a string and returns it without its quotes.
func (r *Reader) scanString() (raw []byte, escaped bool) {
	r.i++
	start := r.i
	for {
		r.skipPlain()
		if r.i >= len(r.b) {
			r.fail("a string does not end")
			return nil, false
		}
		switch c := r.b[r.i]; {
		case c == '"':
			raw = r.b[start:r.i]
			r.i++
			return raw, escaped
		case c == '\\':
			escaped = true
			if !r.skipEscape() {
				r.fail("an invalid escape in a string")
				return nil, false
			}
		default:
			r.fail("a control character in a string")
			return nil, false
		}
	}
}

// skipPlain skips bytes up to the next quote, backslash or byte below 0x20. It examines eight bytes
// at a time: the lowest bit that is set in special is the high bit of the first such byte.
func (r *Reader) skipPlain() {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	b, i := r.b, r.i
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		quote, slash := w^(ones*'"'), w^(ones*'\\')
		if special := ((quote-ones)&^quote | (slash-ones)&^slash | (w-ones*0x20)&^w) & highs; special != 0 {
			r.i = i + bits.TrailingZeros64(special)/8
			return
		}
	}
	for i < len(b) && b[i] >= 0x20 && b[i] != '"' && b[i] != '\\' {
		i++
	}
	r.i = i
}

// skipEscape skips an escape sequence. It returns false if the sequence is invalid.
func (r *Reader) skipEscape() bool {
	if r.i+1 >= len(r.b) {
		return false
	}
	switch r.b[r.i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		r.i += 2
		return true
	case 'u':
		if _, ok := hex4(r.b[r.i+2:]); ok {
			r.i += 6
			return true
		}
	}
	return false
}

func (r *Reader) scanNumber() Value {
	start := r.i
	r.accept('-')
	ok := true
	if !r.accept('0') {
		ok = r.skipDigits()
	}
	if ok && r.accept('.') {
		ok = r.skipDigits()
	}
	if ok && (r.accept('e') || r.accept('E')) {
		if !r.accept('+') {
			r.accept('-')
		}
		ok = r.skipDigits()
	}
	if !ok {
		r.fail("a number is malformed")
		return Value{}
	}
	return Value{Kind: Number, raw: r.b[start:r.i]}
}

func (r *Reader) accept(c byte) bool {
	if r.i < len(r.b) && r.b[r.i] == c {
		r.i++
		return true
	}
	return false
}

func (r *Reader) skipDigits() bool {
	start := r.i
	for r.i < len(r.b) && r.b[r.i] >= '0' && r.b[r.i] <= '9' {
		r.i++
	}
	return r.i > start
}

func (r *Reader) scanLiteral() Value {
	word, kind := "null", Null
	switch r.b[r.i] {
	case 't':
		word, kind = "true", Bool
	case 'f':
		word, kind = "false", Bool
	}
	end := r.i + len(word)
	if end > len(r.b) || string(r.b[r.i:end]) != word {
		r.fail("a value was expected")
		return Value{}
	}
	raw := r.b[r.i:end]
	r.i = end
	return Value{Kind: kind, raw: raw}
}

// Unescape decodes the escapes of a string whose syntax was checked. Half of a
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
	if i := strings.IndexByte("bfnrt", c); i >= 0 {
		return "\b\f\n\r\t"[i]
	}
	return c
}

// unicodeEscape decodes an escape of four hexadecimal digits, or two escapes that form a
// surrogate pair, and returns the number of bytes read.
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
	var octets [2]byte
	if len(b) < 4 {
		return 0, false
	}
	_, err := hex.Decode(octets[:], b[:4])
	return rune(binary.BigEndian.Uint16(octets[:])), err == nil
}
