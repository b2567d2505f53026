package netserver

import (
	"strconv"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// envelope is shared by the parsers of JSON senders: the reader, the frame
// being filled, and the first reason for which it cannot be used.
type envelope struct {
	r   jsonbody.Reader
	one []decoders.Frame // what finish returns; f is in it
	f   *decoders.Frame
	err error
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

// refuse keeps the first essential field that could not be read.
func (e *envelope) refuse(field, reason string) {
	if e.err == nil {
		e.err = &decoders.Error{Format: e.f.Sender, Field: field, Offset: -1, Reason: reason}
	}
}

// maxWarnings and maxGateways bound what a hostile body can make of a frame.
const (
	maxWarnings = 20
	maxGateways = 100
)

func (e *envelope) warn(field, reason string) {
	if len(e.f.Warnings) < maxWarnings {
		e.f.Warnings = append(e.f.Warnings, field+": "+reason)
	}
}

// given reports whether a value is neither missing nor null.
func given(v jsonbody.Value) bool { return v.Kind > jsonbody.Null }

// text reads an optional string; a number is taken by its digits.
func (e *envelope) text(field string) string {
	v := e.r.Value()
	s, ok := v.Text()
	if !ok && given(v) {
		e.warn(field, notText)
	}
	return s
}

// number reads an optional number; nil when there is none.
func (e *envelope) number(field string) *float64 {
	v := e.r.Value()
	n, ok := v.Float()
	if !ok {
		if given(v) {
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
	if given(v) {
		e.warn(field, "is not a whole number from 0 to "+strconv.FormatInt(limit, 10))
	}
	return 0, false
}

func (e *envelope) boolean(field string) bool {
	v := e.r.Value()
	b, ok := v.Bool()
	if !ok && given(v) {
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
func (e *envelope) time(field string) time.Time {
	v := e.r.Value()
	t, err := time.Parse(time.RFC3339Nano, string(v.Raw()))
	if err == nil && v.Kind == jsonbody.String {
		return t.UTC()
	}
	if given(v) && len(v.Raw()) > 0 && e.f.TimeNote == "" {
		e.f.TimeNote = field + ": is not an RFC 3339 time: " + quoteClipped(v.Raw())
	}
	return time.Time{}
}

// quoteClipped shortens what is quoted in a note.
func quoteClipped(b []byte) string {
	const most = 40
	if len(b) > most {
		b = b[:most]
	}
	return strconv.Quote(string(b))
}

// object reads an optional object of decoded values.
func (e *envelope) object(field string) map[string]any {
	if k := e.r.Kind(); k != jsonbody.Object {
		if e.r.Skip(); k > jsonbody.Null {
			e.warn(field, notObject)
		}
		return nil
	}
	return e.r.Map()
}

// position reads latitude, longitude and altitude. Senders that leave zeros
// out give an empty object for no position, so one of the two must be there.
func (e *envelope) position(field string) *decoders.Position {
	var key []byte
	var lat, lon, alt *float64
	for ok := e.r.Object(); ok && e.r.Next(&key); {
		switch string(key) {
		case "latitude":
			lat = e.number(field + ".latitude")
		case "longitude":
			lon = e.number(field + ".longitude")
		case "altitude":
			alt = e.number(field + ".altitude")
		default:
			e.r.Skip()
		}
	}
	if lat == nil && lon == nil {
		return nil
	}
	return &decoders.Position{Latitude: orZero(lat), Longitude: orZero(lon), Altitude: alt}
}

func orZero(n *float64) float64 {
	if n == nil {
		return 0
	}
	return *n
}

// earliest returns the earliest time a gateway gave, or the zero time.
func earliest(gateways []decoders.Gateway) time.Time {
	var first time.Time
	for _, g := range gateways {
		if !g.Time.IsZero() && (first.IsZero() || g.Time.Before(first)) {
			first = g.Time
		}
	}
	return first
}

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
		if len(e.f.Gateways) >= maxGateways {
			e.r.Skip()
			continue
		}
		e.f.Gateways = append(e.f.Gateways, gateway())
	}
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
