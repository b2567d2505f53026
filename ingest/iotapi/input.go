package iotapi

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// decimalText is a number that may come as text, "-2.0943", or as a number.
type decimalText string

// UnmarshalJSON takes a JSON string or number.
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

// document is JSON that may come as such or as a text that holds it.
type document string

// UnmarshalJSON takes any JSON.
func (d *document) UnmarshalJSON(b []byte) error {
	if b[0] == '"' {
		return json.Unmarshal(b, (*string)(d))
	}
	*d = document(bytes.Clone(b))
	return nil
}
