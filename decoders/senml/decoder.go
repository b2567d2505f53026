package senml

import (
	"cmp"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/penstock/penstock/decoders"
)

// Decoder is the codec senml: it reads the payload of a frame as a pack.
type Decoder struct{}

// New returns the codec.
func New() Decoder { return Decoder{} }

// Decode gives one reading per value and one per sum (key plus ".sum"). Times
// relative to now count from the frame's own time. Records beyond what one pack
// may hold are the result's Excess.
func (Decoder) Decode(f *decoders.Frame) (decoders.Result, error) {
	if len(f.Payload) == 0 {
		return decoders.Result{}, nil
	}
	if f.Encrypted {
		return decoders.Result{}, &decoders.Error{Format: format, Field: "payload", Offset: -1, Reason: "is encrypted"}
	}
	records, err := Parse(f.Payload, cmp.Or(f.SampleTime, f.NetworkTime))
	var res decoders.Result
	for _, r := range records {
		_, key := SplitName(r.Name)
		res.Readings = r.AppendReadings(res.Readings, key)
		for _, member := range r.Unknown {
			(*decoders.Notes)(&res.Warnings).Add(member + NotUsed) // bounded
		}
	}
	var e *decoders.Error
	if errors.As(err, &e) && e.Reason == tooMany {
		res.Excess, err = err.Error(), nil
	}
	return res, err
}

// NotUsed ends the note about a member that is not known.
const NotUsed = ": is not known and is not used"

// AppendReadings adds the record's readings under the key given. Binary data
// become the text of their hex digits.
func (r Record) AppendReadings(readings []decoders.Reading, key string) []decoders.Reading {
	switch reading := (decoders.Reading{Key: key, Time: r.Time}); r.Kind {
	case Number, Bool:
		reading.Value = r.Value
		readings = append(readings, reading)
	case Text:
		reading.IsText, reading.Text = true, r.Text
		readings = append(readings, reading)
	case Data:
		reading.IsText, reading.Text = true, hex.EncodeToString(r.Data)
		readings = append(readings, reading)
	}
	if r.Sum != nil {
		readings = append(readings, decoders.Reading{Key: key + ".sum", Value: *r.Sum, Time: r.Time})
	}
	return readings
}

// SplitName parts a resolved name into the device and the key of one of its measurements. A
// device URN (RFC 9039) is urn:dev:TYPE:ID, and the key is the text behind it; elsewhere the
// key is the text behind the last slash or colon. A device alone has the key "value", a key
// alone the device "".
func SplitName(name string) (device, key string) {
	if strings.HasPrefix(name, "urn:dev:") {
		return splitURN(name)
	}
	i := strings.LastIndexAny(name, "/:")
	if i < 0 {
		return "", name
	}
	return orValue(name[:i], name[i+1:])
}

func splitURN(name string) (device, key string) {
	const prefix = len("urn:dev:")
	i := strings.IndexByte(name[prefix:], ':')
	if i < 0 {
		return name, "value"
	}
	start := prefix + i + 1
	end := strings.IndexAny(name[start:], ":;/_")
	if end < 0 {
		return name, "value"
	}
	return orValue(name[:start+end], name[start+end+1:])
}

func orValue(device, key string) (string, string) {
	if key == "" {
		key = "value"
	}
	return device, key
}
