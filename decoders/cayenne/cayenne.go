// Package cayenne has the codec cayenne_lpp: the Cayenne Low Power Payload, a
// sequence of channel, type and value, with the common extensions of its types.
//
// A key is the type's name, an underscore and the channel, as in The Things Stack
// ("temperature_3"). The keys of a value with several parts have a suffix
// ("accelerometer_5.x", "gps_1.latitude"). Values are exact to the type's
// resolution: 27.2 and not 27.200000762939453. An unknown type ends decoding, because the
// length of the value is unknown. The error has the offset of the type, and the readings
// before the type are returned.
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

// Parse parses a payload. The error is a *decoders.Error. The readings before its offset are
// returned with it.
func Parse(payload []byte) ([]decoders.Reading, error) {
	readings := make([]decoders.Reading, 0, len(payload)/3+1)
	for offset := 0; offset < len(payload); {
		if offset+2 > len(payload) {
			return readings, &decoders.Error{Format: format, Offset: offset, Reason: "the payload ends within a channel and type"}
		}
		channel, code := strconv.Itoa(int(payload[offset])), payload[offset+1]
		k, ok := kinds[code]
		if !ok {
			return readings, &decoders.Error{Format: format, Field: "channel_" + channel, Offset: offset + 1, Reason: fmt.Sprintf("unknown type %d", code)}
		}
		key := k.name + "_" + channel
		offset += 2
		if k.size() > len(payload)-offset {
			return readings, &decoders.Error{Format: format, Field: key, Offset: offset,
				Reason: fmt.Sprintf("the payload ends within a value of %d bytes", k.size())}
		}
		for _, f := range k.fields {
			readings = append(readings, decoders.Reading{Key: f.key(key), Value: f.value(payload[offset : offset+f.size])})
			offset += f.size
		}
	}
	return readings, nil
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

// value returns the value of a field. The division by scale returns the float64 nearest to the
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

// kind describes the encoding of the values of one Cayenne type: fields of big-endian
// integers, each divided by a scale, so that a value is exact to its resolution.
type kind struct {
	name   string
	fields []field
}

type field struct {
	name   string // "" for the only value of a type
	size   int    // bytes
	signed bool
	scale  float64
}

func scalar(name string, size int, signed bool, scale float64) kind {
	return kind{name, []field{{"", size, signed, scale}}}
}

func axes(name string, scale float64) kind {
	return kind{name, []field{{"x", 2, true, scale}, {"y", 2, true, scale}, {"z", 2, true, scale}}}
}

// kinds has the types of the Cayenne Low Power Payload and of the extensions that devices
// send.
var kinds = map[byte]kind{ //nolint:gochecknoglobals // read-only
	0:   scalar("digital_in", 1, false, 1),
	1:   scalar("digital_out", 1, false, 1),
	2:   scalar("analog_in", 2, true, 100),
	3:   scalar("analog_out", 2, true, 100),
	100: scalar("generic", 4, false, 1),
	101: scalar("luminosity", 2, false, 1), // lux
	102: scalar("presence", 1, false, 1),
	103: scalar("temperature", 2, true, 10),          // °C
	104: scalar("relative_humidity", 1, false, 2),    // %
	113: axes("accelerometer", 1000),                 // G
	115: scalar("barometric_pressure", 2, false, 10), // hPa
	116: scalar("voltage", 2, false, 100),            // V
	117: scalar("current", 2, false, 1000),           // A
	118: scalar("frequency", 4, false, 1),            // Hz
	120: scalar("percentage", 1, false, 1),
	121: scalar("altitude", 2, true, 1),       // m
	125: scalar("concentration", 2, false, 1), // ppm
	128: scalar("power", 2, false, 1),         // W
	130: scalar("distance", 4, false, 1000),   // m
	131: scalar("energy", 4, false, 1000),     // kWh
	132: scalar("direction", 2, false, 1),     // °
	133: scalar("unixtime", 4, false, 1),      // s since 1970
	134: axes("gyrometer", 100),               // °/s
	135: {"colour", []field{{"r", 1, false, 1}, {"g", 1, false, 1}, {"b", 1, false, 1}}},
	136: {"gps", []field{{"latitude", 3, true, 1e4}, {"longitude", 3, true, 1e4}, {"altitude", 3, true, 100}}},
	142: scalar("switch", 1, false, 1),
}
