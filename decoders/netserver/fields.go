package netserver

import (
	"cmp"
	"iter"
	"strconv"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// envelope is shared by the parsers that read a body in one pass: the reader, the
// frame being filled, and the first reason for which it cannot be used.
type envelope struct {
	r    jsonbody.Reader
	one  []decoders.Frame // what finish returns; f is in it
	f    *decoders.Frame
	path string // of the object whose fields are read, empty for the body
	err  error
}

func newEnvelope(s Sender, body []byte) envelope {
	one := []decoders.Frame{{Sender: string(s)}}
	return envelope{r: jsonbody.New(body), one: one, f: &one[0]}
}

// finish returns the frame, unless the body or something essential in it could
// not be read.
func (e *envelope) finish() ([]decoders.Frame, error) {
	if err := e.r.Close(); err != nil {
		return nil, syntaxError(err)
	}
	if e.err != nil {
		return nil, e.err
	}
	return e.one, nil
}

// fieldsOf gives the keys of the next value, if that is an object. Until they end,
// notes name fields below path.
func (e *envelope) fieldsOf(path string) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		var key []byte
		outer := e.path
		e.path = path
		for ok := e.r.Object(); ok && e.r.Next(&key) && yield(key); {
			continue
		}
		e.path = outer
	}
}

// pathOf is the path of a field in notes.
func (e *envelope) pathOf(field string) string {
	if e.path == "" {
		return field
	}
	return e.path + "." + field
}

// refuse keeps the first essential field that could not be read.
func (e *envelope) refuse(field, reason string) {
	if e.err == nil {
		e.err = &decoders.Error{Format: e.f.Sender, Field: e.pathOf(field), Offset: -1, Reason: reason}
	}
}

// maxWarnings and maxGateways bound what a hostile body can make of a frame.
const (
	maxWarnings = 20
	maxGateways = 100
)

func (e *envelope) warn(field, reason string) {
	if len(e.f.Warnings) < maxWarnings {
		e.f.Warnings = append(e.f.Warnings, e.pathOf(field)+": "+reason)
	}
}

// isPresent reports whether a value is neither missing nor null.
func isPresent(v jsonbody.Value) bool { return v.Kind > jsonbody.Null }

// text reads an optional string; a number is taken by its digits.
func (e *envelope) text(field string) string {
	v := e.r.Value()
	s, ok := v.Text()
	if !ok && isPresent(v) {
		e.warn(field, notText)
	}
	return s
}

// number reads an optional number; nil when there is none.
func (e *envelope) number(field string) *float64 {
	v := e.r.Value()
	n, ok := v.Float()
	if !ok {
		if isPresent(v) {
			e.warn(field, notNumber)
		}
		return nil
	}
	return &n
}

// integer reads an optional whole number between 0 and limit.
func (e *envelope) integer(field string, limit int64) (int64, bool) {
	v := e.r.Value()
	n, ok := v.Int()
	if ok && n >= 0 && n <= limit {
		return n, true
	}
	if isPresent(v) {
		e.warn(field, "is not a whole number from 0 to "+strconv.FormatInt(limit, 10))
	}
	return 0, false
}

func (e *envelope) boolean(field string) bool {
	v := e.r.Value()
	b, ok := v.Bool()
	if !ok && isPresent(v) {
		e.warn(field, notBoolean)
	}
	return b
}

// payload reads base64; what is there and cannot be read is essential.
func (e *envelope) payload(field string) []byte {
	b, ok := e.r.Value().Base64()
	if !ok {
		e.refuse(field, notBase64)
		return nil
	}
	return b
}

// time reads an optional time, RFC 3339. One that does not parse is noted.
func (e *envelope) time(field string) time.Time { return e.parseTime(field, e.r.Value()) }

// parseTime is time for a value that was read before it was known whether it is
// needed.
func (e *envelope) parseTime(field string, v jsonbody.Value) time.Time {
	t, err := time.Parse(time.RFC3339Nano, string(v.Raw()))
	if err == nil && v.Kind == jsonbody.String {
		return t.UTC()
	}
	if isPresent(v) && len(v.Raw()) > 0 && e.f.TimeNote == "" {
		e.f.TimeNote = e.pathOf(field) + ": is not an RFC 3339 time: " + quoteClipped(v.Raw())
	}
	return time.Time{}
}

// object reads an optional object of decoded values.
func (e *envelope) object(field string) map[string]any {
	if k := e.r.Kind(); k != jsonbody.Object && k > jsonbody.Null {
		e.warn(field, notObject)
	}
	return e.r.Map()
}

// position reads latitude, longitude and altitude. Senders that leave zeros
// out give an empty object for no position, so one of the two must be there.
func (e *envelope) position(path string) *decoders.Position {
	var lat, lon, alt *float64
	for key := range e.fieldsOf(path) {
		switch string(key) {
		case "latitude":
			lat = e.number("latitude")
		case "longitude":
			lon = e.number("longitude")
		case "altitude":
			alt = e.number("altitude")
		}
	}
	if lat == nil && lon == nil {
		return nil
	}
	return &decoders.Position{Latitude: orZero(lat), Longitude: orZero(lon), Altitude: alt}
}

func orZero(n *float64) float64 { return *cmp.Or(n, new(float64)) }

// receptions reads a list of receptions. Senders that speak protobuf leave out
// an SNR of 0 dB beside an RSSI.
func (e *envelope) receptions(gateway func() decoders.Gateway) {
	e.gateways(gateway)
	fillSNR(e.f.Gateways)
}

// fillSNR gives receptions with an RSSI the SNR of 0 dB that was left out.
func fillSNR(gateways []decoders.Gateway) {
	for i := range gateways {
		if g := &gateways[i]; g.RSSI != nil && g.SNR == nil {
			g.SNR = new(float64)
		}
	}
}

// gateways reads a list of receptions, or the one that stands in its place.
func (e *envelope) gateways(gateway func() decoders.Gateway) {
	if e.r.Kind() == jsonbody.Object {
		e.f.Gateways = append(e.f.Gateways[:0], gateway())
		return
	}
	for ok := e.r.Array(); ok && e.r.More(); {
		if len(e.f.Gateways) < maxGateways {
			e.f.Gateways = append(e.f.Gateways, gateway())
		}
	}
}

// gatewayField reads a field of a reception that all who speak protobuf name alike;
// location is the path of the gateway's position.
func (e *envelope) gatewayField(key []byte, g *decoders.Gateway, location string) {
	switch string(key) {
	case "rssi":
		g.RSSI = e.number("rssi")
	case "snr":
		g.SNR = e.number("snr")
	case "location":
		g.Position = e.position(location)
	}
}

// frequency reads Hz.
func (e *envelope) frequency() {
	e.f.FrequencyHz, _ = e.integer("frequency", 1e11)
}

// lora reads a LoRa modulation. The name of its spreading factor is in the case of
// the sender.
func (e *envelope) lora(path, spreadingFactor string) {
	for key := range e.fieldsOf(path) {
		switch string(key) {
		case "bandwidth":
			n, _ := e.integer("bandwidth", 1e7)
			e.f.BandwidthHz = int(n)
		case spreadingFactor:
			n, _ := e.integer(spreadingFactor, 12)
			e.f.SpreadingFactor = int(n)
		}
	}
	e.f.DataRate = loraRate(e.f.SpreadingFactor, e.f.BandwidthHz)
}

// port reads the port of a frame.
func (e *envelope) port(field string) {
	n, ok := e.integer(field, 255)
	e.f.FPort, e.f.HasFPort = int(n), ok
}

// loraRate names a LoRa data rate as "SF7BW125".
func loraRate(spreading, bandwidthHz int) string {
	if spreading == 0 || bandwidthHz == 0 {
		return ""
	}
	b := append(make([]byte, 0, 16), "SF"...)
	b = strconv.AppendInt(b, int64(spreading), 10)
	b = append(b, "BW"...)
	return string(strconv.AppendFloat(b, float64(bandwidthHz)/1000, 'f', -1, 64))
}
