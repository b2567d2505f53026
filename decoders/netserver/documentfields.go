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
	noValue    = "is not a number, a string, true or false, and is not used"
)

// isPresent reports whether a value is neither missing nor null.
func isPresent(v jsonbody.Value) bool { return v.Kind > jsonbody.Null }

// readOptional reads the value at a path. It warns if the value is present and cannot be read.
func readOptional[T any](d document, path, problem string, read func(jsonbody.Value) (T, bool)) (T, bool) {
	v := d.Value(path)
	value, ok := read(v)
	if !ok && isPresent(v) {
		d.Warn(path, problem)
	}
	return value, ok
}

// Text reads an optional string. The text of a number is its digits.
func (d document) Text(path string) string {
	s, _ := readOptional(d, path, notText, jsonbody.Value.Text)
	return s
}

// Required reads an essential string.
func (d document) Required(path string) string {
	s := d.Text(path)
	if s == "" {
		d.Refuse(path, "is missing")
	}
	return s
}

// Number reads an optional number, or nil.
func (d document) Number(path string) *float64 {
	n, ok := readOptional(d, path, notNumber, jsonbody.Value.Float)
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
	b, _ := readOptional(d, path, notBoolean, jsonbody.Value.Bool)
	return b
}

// Flag reads true and false from senders whose values are all
// strings or all numbers. Any other value is false.
func (d document) Flag(path string) bool {
	switch string(d.Value(path).Raw()) {
	case "true", "True", "TRUE", "1":
		return true
	}
	return false
}

// Base64 reads a payload. It refuses the frame if the payload is present and cannot be read.
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

// Hex reads a payload in hex digits of any case. It refuses the frame if the payload is
// present and cannot be read.
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

// Time reads an optional time in any form that a known sender uses. It notes an invalid time.
func (d document) Time(path string) time.Time {
	v := d.Value(path)
	t, ok := anyTime(v)
	if !ok && isPresent(v) && len(v.Raw()) > 0 {
		d.WarnTime(path, notTime+quoteClipped(v.Raw()))
	}
	return t
}

// Timestamp reads an optional time of senders that use protobuf: RFC 3339. It notes an
// invalid time.
func (d document) Timestamp(path string) time.Time {
	v := d.Value(path)
	if !isPresent(v) || len(v.Raw()) == 0 {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, v.String())
	if err != nil {
		d.WarnTime(path, "is not an RFC 3339 time: "+quoteClipped(v.Raw()))
		return time.Time{}
	}
	return t.UTC()
}

// Object reads an optional object of decoded values.
func (d document) Object(path string) map[string]any {
	object, _ := readOptional(d, path, notObject, func(v jsonbody.Value) (map[string]any, bool) {
		object, ok := v.Any().(map[string]any)
		return object, ok
	})
	return object
}

// DevEUI sets the identifier of the frame to an essential devEUI.
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

// Identifier sets the identifier of the frame. It refuses the frame because of the path if id
// is empty.
func (d document) Identifier(f *decoders.Frame, path, id string) {
	if f.Identifier = id; id == "" {
		d.Refuse(path, noDevice)
	}
}

// Device sets the identifier like Identifier does, and normalizes it if it is a devEUI.
func (d document) Device(f *decoders.Frame, path, id string) {
	d.Identifier(f, path, id)
	if eui, ok := decoders.NormalizeDevEUI(id); ok {
		f.Identifier, f.IsDevEUI = eui, true
	}
}

// devEUIOrName sets the identifier of the frame to the devEUI or, if that is missing, to the
// name of the device within the application. If both are missing, the identifier is empty.
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

// coordinate reads degrees, or nil without a warning: senders write "unknown", "" or null for
// an unknown position.
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

// Percent reads a battery in per cent. A value above 100 means an external supply.
func (d document) Percent(path string) *float64 {
	n := d.Number(path)
	if n == nil || *n < 0 || *n > 100 {
		return nil
	}
	return n
}

// Gateways reads the list of receptions at a path, or the only one if the value is an object.
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

// reception reads a gateway whose identifier is at a path, with RSSI and SNR.
func (d document) reception(id string) decoders.Gateway {
	return decoders.Gateway{ID: d.Text(id), RSSI: d.Number("rssi"), SNR: d.Number("snr")}
}

// maxGateways is the largest number of receptions of a frame.
const maxGateways = 100

// protobufGateways reads receptions like Gateways, for senders that use protobuf. read reads the
// members without rssi, snr and location. A missing SNR means 0 dB.
func (d document) protobufGateways(path string, read func(document) decoders.Gateway) []decoders.Gateway {
	gateways := d.Gateways(path, func(d document) decoders.Gateway {
		g := read(d)
		g.RSSI, g.SNR, g.Position = d.Number("rssi"), d.Number("snr"), d.In("location").protobufPosition()
		return g
	})
	fillSNR(gateways)
	return gateways
}

// fillSNR sets a missing SNR of receptions with an RSSI to 0 dB.
func fillSNR(gateways []decoders.Gateway) {
	for i := range gateways {
		if g := &gateways[i]; g.RSSI != nil && g.SNR == nil {
			g.SNR = new(float64)
		}
	}
}

// protobufPosition reads the position of senders that use protobuf. They leave out zeros, and
// an unknown position is an empty object, so latitude or longitude must be present.
func (d document) protobufPosition() *decoders.Position {
	lat, lon := d.Number("latitude"), d.Number("longitude")
	if lat == nil && lon == nil {
		return nil
	}
	return &decoders.Position{Latitude: *cmp.Or(lat, new(float64)), Longitude: *cmp.Or(lon, new(float64))}
}

// setBestGateway adds the best reception, which some senders report in addition to the list of
// receptions, if the list is empty.
func setBestGateway(f *decoders.Frame, best decoders.Gateway) {
	if len(f.Gateways) == 0 && (best.ID != "" || best.RSSI != nil) {
		f.Gateways = []decoders.Gateway{best}
	}
}

// place returns the position of two coordinates, or nil if one is missing or invalid. Zero for
// both means that the sender has no position.
func place(lat, lon *float64) *decoders.Position {
	if lat == nil || lon == nil || *lat == 0 && *lon == 0 || math.Abs(*lat) > 90 || math.Abs(*lon) > 180 {
		return nil
	}
	return &decoders.Position{Latitude: *lat, Longitude: *lon}
}

// loraPercent converts the battery level of LoRaWAN's DevStatusAns to per cent: 1 is empty and
// 254 is full. It returns nil for an external supply (0) and for an unknown level (255).
func loraPercent(level *float64) *float64 {
	if level == nil || *level < 1 || *level > 254 {
		return nil
	}
	percent := math.Round(*level/254*1000) / 10
	return &percent
}
