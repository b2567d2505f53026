package jsonbody

import "strconv"

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
	return r.scalar().any()
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

func (v Value) any() any {
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
