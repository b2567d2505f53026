package senml

import (
	"cmp"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/penstock/penstock/decoders"
)

// Decoder is the codec senml, which parses the payload of a frame as a pack.
type Decoder struct{}

// New returns the codec.
func New() Decoder { return Decoder{} }

// Decode returns a reading for each value and for each sum (key plus ".sum"). Times
// relative to now count from the frame's time. If the pack has too many records, the first
// ones are returned and Excess is set.
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
			(*decoders.Notes)(&res.Warnings).Add(member + NotUsed) // limits their number
		}
	}
	if e, ok := errors.AsType[*decoders.Error](err); ok && e.Reason == tooMany {
		res.Excess, err = err.Error(), nil
	}
	return res, err
}

// NotUsed is the end of a note about an unknown member.
const NotUsed = ": unknown field ignored"

// AppendReadings adds the record's readings with a key. Binary data
// become a text of hex digits.
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

// SplitName splits a resolved name into the device and the key of one of its measurements. In a
// device URN (RFC 9039), urn:dev:TYPE:ID, the key is the text after the ID; in other names, the
// text after the last slash or colon. The key is "value" if the name has only a device. The
// device is "" if the name has only a key.
func SplitName(name string) (device, key string) {
	end := strings.LastIndexAny(name, "/:") // of the device
	if urn, ok := strings.CutPrefix(name, "urn:dev:"); ok {
		end = len(name)
		_, id, _ := strings.Cut(urn, ":")
		if i := strings.IndexAny(id, ":;/_"); i >= 0 {
			end += i - len(id)
		}
	}
	switch {
	case end < 0:
		return "", name
	case end >= len(name)-1:
		return name[:end], "value"
	}
	return name[:end], name[end+1:]
}
