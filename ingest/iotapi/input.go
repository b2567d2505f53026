package iotapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/penstock/penstock/decoders/decimal"
)

// unknownFields returns the paths of the fields of a JSON value that its type does not
// have, in order. Names are the same regardless of case, as for encoding/json.
func unknownFields(raw []byte, t reflect.Type, at string) (paths []string) {
	switch t = baseType(t); t.Kind() {
	case reflect.Struct:
		var fields map[string]json.RawMessage
		_ = json.Unmarshal(raw, &fields) // a value of another type has been refused
		for name, value := range fields {
			path := strings.TrimPrefix(at+"."+name, ".")
			if f, ok := fieldNamed(t, name); ok {
				paths = append(paths, unknownFields(value, f.Type, path)...)
			} else {
				paths = append(paths, path)
			}
		}
	case reflect.Slice:
		var list []json.RawMessage
		_ = json.Unmarshal(raw, &list)
		for i, value := range list {
			paths = append(paths, unknownFields(value, t.Elem(), fmt.Sprintf("%s[%d]", at, i))...)
		}
	}
	slices.Sort(paths)
	return paths
}

// fieldNamed returns the field of a struct with a JSON name.
func fieldNamed(t reflect.Type, name string) (reflect.StructField, bool) {
	for i := range t.NumField() {
		known, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if strings.EqualFold(known, name) {
			return t.Field(i), true
		}
	}
	return reflect.StructField{}, false
}

// number is a JSON number. Unlike float64 it does not read 1e-400 as 0.
type number float64

// UnmarshalJSON accepts a JSON number.
func (n *number) UnmarshalJSON(b []byte) error {
	v, ok := decimal.Float(string(b))
	if !ok {
		return &json.UnmarshalTypeError{Type: reflect.TypeFor[float64]()}
	}
	*n = number(v)
	return nil
}

// integer is a whole JSON number, which may have an exponent: 3e1.
type integer int

// UnmarshalJSON accepts a whole JSON number.
func (n *integer) UnmarshalJSON(b []byte) error {
	v, ok := decimal.Int(string(b))
	if !ok {
		return &json.UnmarshalTypeError{Type: reflect.TypeFor[int]()}
	}
	*n = integer(v)
	return nil
}

// decimalText is a number given as a JSON string, "-2.0943", or a JSON number.
type decimalText string

// UnmarshalJSON accepts a JSON string or number.
func (t *decimalText) UnmarshalJSON(b []byte) error {
	if b[0] == '"' {
		return json.Unmarshal(b, (*string)(t))
	}
	var n json.Number
	if json.Unmarshal(b, &n) != nil {
		return &json.UnmarshalTypeError{Type: reflect.TypeFor[float64]()}
	}
	*t = decimalText(n)
	return nil
}

// document is a JSON value, given directly or as a string that contains it.
type document string

// UnmarshalJSON accepts any JSON.
func (d *document) UnmarshalJSON(b []byte) error {
	if b[0] == '"' {
		return json.Unmarshal(b, (*string)(d))
	}
	*d = document(bytes.Clone(b))
	return nil
}
