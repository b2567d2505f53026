package jsonbody

import (
	"bytes"
	"encoding/base64"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Value is one value. An array or object is not parsed.
type Value struct {
	Kind    Kind
	raw     []byte
	escaped bool
}

// Value reads the next value.
func (r *Reader) Value() Value {
	kind := r.Kind()
	if kind != Object && kind != Array {
		return r.readScalar()
	}
	start := r.i
	r.Skip()
	if r.err != nil {
		return Value{}
	}
	return Value{Kind: kind, raw: r.b[start:r.i]}
}

// NewValue returns the value of a text whose syntax was checked, without the quotes of a
// string.
func NewValue(kind Kind, text []byte) Value {
	return Value{Kind: kind, raw: text, escaped: kind == String && bytes.IndexByte(text, '\\') >= 0}
}

// Raw returns the value's text, without the quotes of a string. It aliases
// the body.
func (v Value) Raw() []byte { return v.raw }

// Text returns a copy of a string, or the text of a number, true or false.
func (v Value) Text() (string, bool) {
	switch v.Kind {
	case String, Number, Bool:
		return v.text(), true
	}
	return "", false
}

// String returns a copy of a string, or "" for other kinds.
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

// Float returns a finite number from a number, or from a string of a decimal number.
func (v Value) Float() (float64, bool) {
	if v.Kind != Number && v.Kind != String || bytes.ContainsAny(v.raw, "_xX") {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(v.raw), 64)
	return f, err == nil && !math.IsInf(f, 0) && !math.IsNaN(f)
}

// Int returns a whole number up to 2^53 from a number or from a string.
func (v Value) Int() (int64, bool) {
	f, ok := v.Float()
	if !ok || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// Bool returns a boolean from true or false, or from a string with one of these words.
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

// Base64 decodes a string in the standard or the URL alphabet, padded or not. The result is nil
// for null and the empty string.
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
	if bytes.ContainsAny(raw, "-_") {
		enc = base64.RawURLEncoding
	}
	decoded := make([]byte, enc.DecodedLen(n))
	n, err := enc.Decode(decoded, raw)
	return decoded[:n], err == nil
}

// Any reads the next value as encoding/json does: map[string]any, []any,
// string, float64, bool or nil. A number beyond the range of float64 is an
// infinity, which the caller can refuse.
func (r *Reader) Any() any {
	switch r.Kind() {
	case Object:
		return r.Map()
	case Array:
		return r.readList()
	}
	return r.readScalar().decode()
}

// Map reads the next value if it is an object, or else returns nil.
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

func (r *Reader) readList() []any {
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
