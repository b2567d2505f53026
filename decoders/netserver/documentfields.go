package netserver

import (
	"encoding/hex"
	"fmt"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// The reasons in notes about fields.
const (
	notText    = "is not a string"
	notNumber  = "is not a number"
	notBoolean = "is not true or false"
	notObject  = "is not an object"
	notBase64  = "is not base64"
	notHex     = "is not hex"
	notTime    = "is not a time: "
	notDevEUI  = "is not a devEUI of 16 hex digits"
	noDevice   = "names no device"
	noValue    = "is not a number, a text, true or false, and is not used"
)

// isPresent reports whether a value is neither missing nor null.
func isPresent(v jsonbody.Value) bool { return v.Kind > jsonbody.Null }

// Text reads an optional string; a number is taken by its digits.
func (d document) Text(path string) string {
	v := d.Value(path)
	s, ok := v.Text()
	if !ok && isPresent(v) {
		d.Warn(path, notText)
	}
	return s
}

// Required reads a string that the frame cannot do without.
func (d document) Required(path string) string {
	s := d.Text(path)
	if s == "" {
		d.Refuse(path, "is missing")
	}
	return s
}

// Number reads an optional number; nil when there is none.
func (d document) Number(path string) *float64 {
	v := d.Value(path)
	if n, ok := v.Float(); ok {
		return new(n)
	}
	if isPresent(v) {
		d.Warn(path, notNumber)
	}
	return nil
}

// Int reads an optional whole number within bounds.
func (d document) Int(path string, minimum, limit int64) (n int64, ok bool) {
	v := d.Value(path)
	if n, ok = v.Int(); ok && n >= minimum && n <= limit {
		return n, true
	}
	if isPresent(v) {
		d.Warn(path, fmt.Sprintf("is not a whole number from %d to %d", minimum, limit))
	}
	return 0, false
}

// FPort reads an optional port.
func (d document) FPort(path string) (port int, ok bool) {
	n, ok := d.Int(path, 0, 255)
	return int(n), ok
}

// FCnt reads an optional frame counter.
func (d document) FCnt(path string) (n int64, ok bool) { return d.Int(path, 0, 1<<32-1) }

// Bool reads an optional true or false.
func (d document) Bool(path string) bool {
	v := d.Value(path)
	b, ok := v.Bool()
	if !ok && isPresent(v) {
		d.Warn(path, notBoolean)
	}
	return b
}

// Flag reads true and false in the forms of senders whose values are all
// strings or all numbers. Anything else is false.
func (d document) Flag(path string) bool { return flagged(d.Value(path)) }

func flagged(v jsonbody.Value) bool {
	switch string(v.Raw()) {
	case "true", "True", "TRUE", "1":
		return true
	}
	return false
}

// Base64 reads a payload; what is there and cannot be read is essential.
func (d document) Base64(path string) []byte {
	v := d.Value(path)
	if v.Kind == jsonbody.Missing {
		return nil
	}
	b, ok := v.Base64()
	if !ok {
		d.RefuseField(path, notBase64)
		return nil
	}
	return b
}

// Hex reads a payload in hex digits of any case; what is there and cannot be
// read is essential.
func (d document) Hex(path string) []byte {
	v := d.Value(path)
	b, err := hex.DecodeString(v.String())
	if err != nil || v.Kind != jsonbody.String && isPresent(v) {
		d.RefuseField(path, notHex)
		return nil
	}
	if len(b) == 0 {
		return nil
	}
	return b
}

// Time reads an optional time in any form that a sender is known to use. One
// that does not parse is noted.
func (d document) Time(path string) time.Time {
	v := d.Value(path)
	t, ok := anyTime(v)
	if !ok && isPresent(v) && len(v.Raw()) > 0 {
		d.notes.untimed(d.at(path), d.field(path), notTime+quoteClipped(v.Raw()))
	}
	return t
}

// Timestamp reads an optional time of senders that speak protobuf: RFC 3339. One that
// does not parse is noted.
func (d document) Timestamp(path string) time.Time {
	v := d.Value(path)
	if !isPresent(v) || len(v.Raw()) == 0 {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, v.String())
	if err != nil {
		d.notes.untimed(d.at(path), d.field(path), "is not an RFC 3339 time: "+quoteClipped(v.Raw()))
		return time.Time{}
	}
	return t.UTC()
}

// Object reads an optional object of decoded values.
func (d document) Object(path string) map[string]any {
	v := d.Value(path)
	object, ok := v.Any().(map[string]any)
	if !ok && isPresent(v) {
		d.Warn(path, notObject)
	}
	return object
}

// DevEUI gives the frame the devEUI that it is about, which it cannot do
// without.
func (d document) DevEUI(f *decoders.Frame, path string) {
	v := d.Value(path)
	s, _ := v.Text()
	eui, ok := decoders.NormalizeDevEUI(s)
	switch {
	case ok:
		f.Identifier, f.IsDevEUI = eui, true
	case v.Kind == jsonbody.Missing:
		d.Refuse(path, noDevice)
	default:
		d.RefuseField(path, notDevEUI)
	}
}

// Identifier gives the frame an identifier, and refuses it under the path when there
// is none.
func (d document) Identifier(f *decoders.Frame, path, id string) {
	if f.Identifier = id; id == "" {
		d.Refuse(path, noDevice)
	}
}

// Device is Identifier for one that may be a devEUI.
func (d document) Device(f *decoders.Frame, path, id string) {
	d.Identifier(f, path, id)
	if eui, ok := decoders.NormalizeDevEUI(id); ok {
		f.Identifier, f.IsDevEUI = eui, true
	}
}

// Place reads a position from its coordinates.
func (d document) Place(lat, lon string) *decoders.Position {
	return place(d.coordinate(lat), d.coordinate(lon))
}

// coordinate reads degrees; senders write "unknown", "" or null for
// what they do not know, and none of these is worth a warning.
func (d document) coordinate(path string) *float64 {
	n, ok := d.Value(path).Float()
	if !ok {
		return nil
	}
	return &n
}

// Position reads the position at a path under its usual names.
func (d document) Position(path string) *decoders.Position {
	return d.In(path).Place("latitude|lat", "longitude|lng|lon")
}
