package netserver

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"math"
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

// optional reads the value at a path; one that is there and cannot be read is noted.
func optional[T any](d document, path, problem string, read func(jsonbody.Value) (T, bool)) (T, bool) {
	v := d.Value(path)
	x, ok := read(v)
	if !ok && isPresent(v) {
		d.Warn(path, problem)
	}
	return x, ok
}

// Text reads an optional string; a number is taken by its digits.
func (d document) Text(path string) string {
	s, _ := optional(d, path, notText, jsonbody.Value.Text)
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
	n, ok := optional(d, path, notNumber, jsonbody.Value.Float)
	if !ok {
		return nil
	}
	return new(n)
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
	b, _ := optional(d, path, notBoolean, jsonbody.Value.Bool)
	return b
}

// Flag reads true and false in the forms of senders whose values are all
// strings or all numbers. Anything else is false.
func (d document) Flag(path string) bool {
	switch string(d.Value(path).Raw()) {
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

// Time reads an optional time in any form that a known sender uses. One that does not parse
// is noted.
func (d document) Time(path string) time.Time {
	v := d.Value(path)
	t, ok := anyTime(v)
	if !ok && isPresent(v) && len(v.Raw()) > 0 {
		d.notes.untimed(d.at(path), d.field(path), notTime+quoteClipped(v.Raw()))
	}
	return t
}

// Timestamp reads an optional time of senders that use protobuf: RFC 3339. One that does not
// parse is noted.
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
	object, _ := optional(d, path, notObject, func(v jsonbody.Value) (map[string]any, bool) {
		object, ok := v.Any().(map[string]any)
		return object, ok
	})
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

// devEUIOrName names the device by its devEUI, which not every device has, or else by its
// name within the application; a device without both has an empty Identifier.
func (d document) devEUIOrName(f *decoders.Frame, eui, name, application string) {
	f.Name = d.Text(name)
	text := d.Text(eui)
	if f.Identifier, f.IsDevEUI = decoders.NormalizeDevEUI(text); f.IsDevEUI {
		return
	}
	if text != "" {
		d.Warn(eui, notDevEUI)
	}
	if f.Name != "" {
		f.Identifier = d.Text(application) + "/" + f.Name
	}
}

// Place reads a position from its coordinates.
func (d document) Place(lat, lon string) *decoders.Position {
	return place(d.coordinate(lat), d.coordinate(lon))
}

// coordinate reads degrees; senders write "unknown", "" or null for what they lack, and none
// of these is worth a warning.
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

// LoRaBattery reads a battery on LoRaWAN's scale.
func (d document) LoRaBattery(path string) *float64 {
	n, ok := d.Int(path, 0, 255)
	if !ok {
		return nil
	}
	return loraPercent(new(float64(n)))
}

// Percent reads a battery in per cent; beyond 100 senders mean a supply.
func (d document) Percent(path string) *float64 {
	n := d.Number(path)
	if n == nil || *n < 0 || *n > 100 {
		return nil
	}
	return n
}

// Gateways reads the list of receptions at a path, or the one that stands in its place.
func (d document) Gateways(path string, read func(document) decoders.Gateway) []decoders.Gateway {
	return d.In(path).receptions(read)
}

func (d document) receptions(read func(document) decoders.Gateway) (list []decoders.Gateway) {
	if d.kind() == jsonbody.Object {
		return []decoders.Gateway{read(d)}
	}
	d.Items(func(item document) {
		if len(list) < maxGateways {
			list = append(list, read(item))
		}
	})
	return list
}

// reception reads a gateway with an identifier at a path, and how it heard the frame.
func (d document) reception(id string) decoders.Gateway {
	return decoders.Gateway{ID: d.Text(id), RSSI: d.Number("rssi"), SNR: d.Number("snr")}
}

// maxGateways bounds the receptions that a hostile body can give a frame.
const maxGateways = 100

// protobufGateways is Gateways for senders that use protobuf, which name the members of a
// reception alike and leave out an SNR of 0 dB. read reads the others.
func (d document) protobufGateways(path string, read func(document) decoders.Gateway) []decoders.Gateway {
	gateways := d.Gateways(path, func(d document) decoders.Gateway {
		g := read(d)
		g.RSSI, g.SNR, g.Position = d.Number("rssi"), d.Number("snr"), d.In("location").protobufPosition()
		return g
	})
	fillSNR(gateways)
	return gateways
}

// fillSNR gives receptions with an RSSI the SNR of 0 dB that was left out.
func fillSNR(gateways []decoders.Gateway) {
	for i := range gateways {
		if g := &gateways[i]; g.RSSI != nil && g.SNR == nil {
			g.SNR = new(float64)
		}
	}
}

// protobufPosition reads latitude and longitude of senders that use protobuf. They leave
// zeros out and give an empty object for no position, so one of the first two must be there.
func (d document) protobufPosition() *decoders.Position {
	lat, lon := d.Number("latitude"), d.Number("longitude")
	if lat == nil && lon == nil {
		return nil
	}
	return &decoders.Position{Latitude: *cmp.Or(lat, new(float64)), Longitude: *cmp.Or(lon, new(float64))}
}

// setBestGateway takes the reception that a sender names in addition to the list of all for
// one of the list where that is empty.
func setBestGateway(f *decoders.Frame, best decoders.Gateway) {
	if len(f.Gateways) == 0 && (best.ID != "" || best.RSSI != nil) {
		f.Gateways = []decoders.Gateway{best}
	}
}

// place makes a position of what was given. Senders without a position send zero for both.
func place(lat, lon *float64) *decoders.Position {
	if lat == nil || lon == nil || *lat == 0 && *lon == 0 || math.Abs(*lat) > 90 || math.Abs(*lon) > 180 {
		return nil
	}
	return &decoders.Position{Latitude: *lat, Longitude: *lon}
}

// loraPercent gives a level of LoRaWAN's DevStatusAns in per cent: 1 to 254
// stand between empty and full, 0 for an external supply, 255 for unknown.
func loraPercent(level *float64) *float64 {
	if level == nil || *level < 1 || *level > 254 {
		return nil
	}
	percent := math.Round(*level/254*1000) / 10
	return &percent
}
