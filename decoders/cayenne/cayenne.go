// Package cayenne is the codec cayenne_lpp: the Cayenne Low Power Payload, a
// sequence of channel, type and value, with the types that devices have added.
//
// A key is the type's name, an underscore and the channel, as The Things Stack
// has them ("temperature_3"); a value of several parts has them after a dot
// ("accelerometer_5.x", "gps_1.latitude"). Values are exact to the type's
// resolution: 27.2 and not 27.200000762939453. A type that is not known ends
// decoding with an error that names its offset, since its length is not known
// either; what was read before it is kept.
package cayenne

import (
	"fmt"
	"strconv"

	"github.com/penstock/penstock/decoders"
)

const format = "cayenne_lpp"

// Decoder is the codec cayenne_lpp.
type Decoder struct{}

// New returns the codec.
func New() Decoder { return Decoder{} }

// Decode reads the frame's payload.
func (Decoder) Decode(f *decoders.Frame) (decoders.Result, error) {
	if f.Encrypted {
		return decoders.Result{}, &decoders.Error{Format: format, Field: "payload", Offset: -1, Reason: "is encrypted"}
	}
	readings, err := Parse(f.Payload)
	return decoders.Result{Readings: readings}, err
}

// Parse reads a payload. Readings may come with an error, a *decoders.Error:
// they stood before its offset.
func Parse(payload []byte) ([]decoders.Reading, error) {
	readings := make([]decoders.Reading, 0, len(payload)/3+1)
	for offset := 0; offset < len(payload); {
		n, err := appendField(&readings, payload, offset)
		if err != nil {
			return readings, err
		}
		offset += n
	}
	return readings, nil
}

// next reads the value that begins at an offset and returns its length.
func appendField(readings *[]decoders.Reading, payload []byte, offset int) (int, error) {
	if offset+2 > len(payload) {
		return 0, &decoders.Error{Format: format, Offset: offset, Reason: "the payload ends within a channel and type"}
	}
	channel := strconv.Itoa(int(payload[offset]))
	k, ok := kindOf(payload[offset+1])
	if !ok {
		return 0, &decoders.Error{Format: format, Field: "channel_" + channel, Offset: offset + 1, Reason: fmt.Sprintf("unknown type %d", payload[offset+1])}
	}
	key := k.name + "_" + channel
	if k.size() > len(payload)-offset-2 {
		return 0, &decoders.Error{Format: format, Field: key, Offset: offset + 2,
			Reason: fmt.Sprintf("the payload ends within a value of %d bytes", k.size())}
	}
	i := offset + 2
	for _, f := range k.fields {
		*readings = append(*readings, decoders.Reading{Key: f.key(key), Value: f.value(payload[i : i+f.size])})
		i += f.size
	}
	return i - offset, nil
}

func (k kind) size() int {
	n := 0
	for _, f := range k.fields {
		n += f.size
	}
	return n
}

func (f field) key(prefix string) string {
	if f.name == "" {
		return prefix
	}
	return prefix + "." + f.name
}

// value divides, which rounds to the nearest number that float64 has for the
// decimal; a multiplication by 0.1 would not.
func (f field) value(b []byte) float64 {
	var n int64
	for _, c := range b {
		n = n<<8 | int64(c)
	}
	if bits := 8 * len(b); f.signed && n >= 1<<(bits-1) {
		n -= 1 << bits
	}
	return float64(n) / f.scale
}
