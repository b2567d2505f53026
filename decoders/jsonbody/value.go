package jsonbody

import (
	"bytes"
	"encoding/base64"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Value is one value that was read. Of an array or object it holds the text.
type Value struct {
	Kind    Kind
	raw     []byte
	escaped bool
}

// Value reads the next value.
func (r *Reader) Value() Value {
	kind := r.Kind()
	if kind != Object && kind != Array {
		return r.scalar()
	}
	start := r.i
	r.Skip()
	if r.err != nil {
		return Value{}
	}
	return Value{Kind: kind, raw: r.b[start:r.i]}
}

// NewValue returns a value of a text whose syntax was checked: without the quotes of a
// string.
func NewValue(kind Kind, text []byte) Value {
	return Value{Kind: kind, raw: text, escaped: kind == String && bytes.IndexByte(text, '\\') >= 0}
}

// Raw returns the value's text, without the quotes of a string. It aliases
// the body.
func (v Value) Raw() []byte { return v.raw }

// Text returns a string's content, or the digits of a number, or true or
// false. It is a copy.
func (v Value) Text() (string, bool) {
	switch v.Kind {
	case String, Number, Bool:
		return v.text(), true
	}
	return "", false
}

// String returns a string's content and "" for every other kind.
func (v Value) String() string {
	if v.Kind != String {
		return ""
	}
	return v.text()
}

func (v Value) text() string {
	raw := v.raw
	if v.escaped {
		raw = Unescape(raw)
	}
	if !utf8.Valid(raw) {
		return strings.ToValidUTF8(string(raw), "\uFFFD")
	}
	return string(raw)
}

// Float returns a finite number, given as a number or as a string of one in decimal digits.
func (v Value) Float() (float64, bool) {
	if v.Kind != Number && v.Kind != String || bytes.ContainsAny(v.raw, "_xX") {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(v.raw), 64)
	return f, err == nil && !math.IsInf(f, 0) && !math.IsNaN(f)
}

// Int returns a whole number, given as a number or as a string of one. A
// fraction or a number beyond 2^53 is none.
func (v Value) Int() (int64, bool) {
	f, ok := v.Float()
	if !ok || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// Bool returns true and false, given as such or as a string.
func (v Value) Bool() (value, ok bool) {
	if v.Kind != Bool && v.Kind != String {
		return false, false
	}
	switch string(v.raw) {
	case "true":
		return true, true
	case "false":
		return false, true
	}
	return false, false
}

// Base64 decodes a string, in the standard or the URL alphabet, padded or not. Null and the
// empty string mean no bytes, without a failure.
func (v Value) Base64() ([]byte, bool) {
	if v.Kind == Null {
		return nil, true
	}
	if v.Kind != String {
		return nil, false
	}
	raw := v.raw
	if v.escaped {
		raw = Unescape(raw)
	}
	return decodeBase64(raw)
}

func decodeBase64(raw []byte) ([]byte, bool) {
	n := len(raw)
	for n > 0 && len(raw)-n < 2 && raw[n-1] == '=' {
		n--
	}
	raw = raw[:n]
	if n == 0 {
		return nil, true
	}
	enc := base64.RawStdEncoding
	for _, c := range raw {
		if c == '-' || c == '_' {
			enc = base64.RawURLEncoding
			break
		}
	}
	decoded := make([]byte, enc.DecodedLen(n))
	n, err := enc.Decode(decoded, raw)
	return decoded[:n], err == nil
}

// Any reads the next value as encoding/json would: map[string]any, []any,
// string, float64, bool or nil. A number that float64 cannot hold is an
// infinity, for the reader of the value to refuse by name.
func (r *Reader) Any() any {
	switch r.Kind() {
	case Object:
		return r.Map()
	case Array:
		return r.list()
	}
	return r.scalar().decode()
}

// Map reads the next value, which is nil unless it is an object.
func (r *Reader) Map() map[string]any {
	var key []byte
	if !r.Object() {
		return nil
	}
	m := make(map[string]any)
	for r.Next(&key) {
		name := Value{Kind: String, raw: key}.text()
		m[name] = r.Any()
	}
	return m
}

func (r *Reader) list() []any {
	l := []any{}
	for ok := r.Array(); ok && r.More(); {
		l = append(l, r.Any())
	}
	return l
}

// Any returns the value as Reader.Any does.
func (v Value) Any() any {
	if v.Kind == Object || v.Kind == Array {
		r := New(v.raw)
		return r.Any()
	}
	return v.decode()
}

func (v Value) decode() any {
	switch v.Kind {
	case String:
		return v.text()
	case Number:
		f, _ := strconv.ParseFloat(string(v.raw), 64)
		return f
	case Bool:
		return v.raw[0] == 't'
	}
	return nil
}
