package netserver

import (
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// Submission is the sender of the readings that a customer adds to a device through the API.
const Submission Sender = "readings"

// MaxSubmitted is the largest number of frames in the list of a submission.
const MaxSubmitted = 100

// Fault is an error in a field of a submission. Problem is a sentence for the response.
type Fault struct{ Field, Problem string }

// ParseSubmission parses the readings for the device with an identifier:
// {"reading": frame, "readings": [frame, …]}. One of the two is required; the other may
// be missing, null or empty. A frame is an array of byte values,
// an array with one frame object, or a frame object:
//
//	{"hex": string | "base64": string | "values": {key: value, …}, "fPort": 0-255, "time": …}
//
// with exactly one of the first three. ParseSubmission returns the valid frames and the faults
// of invalid ones.
func ParseSubmission(identifier string, body []byte) (frames []decoders.Frame, faults []Fault) {
	s := submission{identifier: identifier}
	d, err := readDocument(body)
	switch {
	case d.kind() != jsonbody.Object:
		return nil, []Fault{{"reading", "The reading field is required."}}
	case err != nil:
		return nil, []Fault{{"reading", err.Error()}}
	}
	d.All(func(key string, _ jsonbody.Value, d document) {
		switch key {
		case "reading":
			s.addReading(d, "reading")
		case "readings":
			s.addList(d)
		}
	})
	if len(s.frames)+len(s.faults) == 0 {
		s.addFault("reading", "field is required")
	}
	return s.frames, s.faults
}

// submission collects the frames and faults.
type submission struct {
	identifier string
	frames     []decoders.Frame
	faults     []Fault
}

func (s *submission) addFault(field, problem string) {
	s.faults = append(s.faults, Fault{field, "The " + field + " " + problem + "."})
}

// check adds a fault unless the field is valid.
func (s *submission) check(valid bool, field, problem string) {
	if !valid {
		s.addFault(field, problem)
	}
}

func (s *submission) addList(d document) {
	kind := d.kind()
	s.check(kind == jsonbody.Array || kind == jsonbody.Null, "readings", "must be an array")
	n := 0
	d.Items(func(item document) {
		if n++; n > MaxSubmitted {
			return
		}
		field := "readings." + strconv.Itoa(n-1)
		oldCount := len(s.frames) + len(s.faults)
		s.addReading(item, field)
		s.check(len(s.frames)+len(s.faults) > oldCount, field, "field is required")
	})
	s.check(n <= MaxSubmitted, "readings", fmt.Sprintf("may not have more than %d items", MaxSubmitted))
}

// addReading reads a frame in any form. Null and an empty array add neither a frame nor a fault.
func (s *submission) addReading(d document, field string) {
	switch d.kind() {
	case jsonbody.Null:
	case jsonbody.Array:
		s.addArray(d, field)
	case jsonbody.Object:
		s.addObject(d, field)
	default:
		s.addFault(field, "must be an array")
	}
}

// addArray reads an array of byte values or of one frame object.
func (s *submission) addArray(d document, field string) {
	oldCount := len(s.faults)
	var payload []byte
	objects, n := 0, 0
	d.Items(func(item document) {
		field := field + "." + strconv.Itoa(n)
		n++
		if item.kind() == jsonbody.Object {
			if objects++; objects == 1 {
				s.addObject(item, field)
			}
			return
		}
		v := item.Self()
		b, ok := v.Int()
		if (v.Kind != jsonbody.Number || !ok || b < 0 || b > math.MaxUint8) && len(s.faults) == oldCount {
			s.addFault(field, "must be an integer between 0 and 255")
		}
		payload = append(payload, byte(b))
	})
	switch {
	case objects > 0 && n > 1:
		s.addFault(field, "must hold one frame or the bytes of one")
	case objects == 0 && n > 0 && len(s.faults) == oldCount:
		f := s.newFrame()
		f.Payload = payload
		s.frames = append(s.frames, f)
	}
}

func (s *submission) newFrame() decoders.Frame {
	f := decoders.Frame{Sender: string(Submission), Kind: decoders.Uplink, Identifier: s.identifier}
	_, f.IsDevEUI = decoders.NormalizeDevEUI(s.identifier)
	return f
}

func (s *submission) addObject(d document, field string) {
	oldCount, f, payloads := len(s.faults), s.newFrame(), 0
	d.All(func(name string, v jsonbody.Value, _ document) {
		if v.Kind == jsonbody.Null && slices.Contains([]string{"hex", "base64", "values", "fPort", "time"}, name) {
			return // null means missing
		}
		path, ok := field+"."+name, false
		switch name {
		case "hex":
			var err error
			f.Payload, err = hex.DecodeString(v.String())
			s.check(err == nil && v.Kind == jsonbody.String, path, "must be bytes in hexadecimal")
		case "base64":
			f.Payload, ok = v.Base64()
			s.check(ok, path, "must be bytes in base64")
		case "values":
			f.Object, ok = v.Any().(map[string]any)
			s.check(ok, path, "must be an object")
			s.checkFinite(f.Object, path)
		case "fPort":
			port, isInt := v.Int()
			ok = v.Kind == jsonbody.Number && isInt && port >= 0 && port <= math.MaxUint8
			s.check(ok, path, "must be an integer between 0 and 255")
			f.FPort, f.HasFPort = int(port), ok
		case "time": // RFC 3339, YYYY-MM-DD HH:mm:ss in UTC, or a number since 1970
			f.SampleTime, ok = looseTime(v)
			s.check(ok, path, "is not a time")
		default:
			if len(f.Warnings) < maxWarnings {
				f.Warnings = append(f.Warnings, path+": unknown field ignored")
			}
		}
		if name == "hex" || name == "base64" || name == "values" {
			payloads++
		}
	})
	switch {
	case len(s.faults) > oldCount:
	case payloads != 1:
		s.addFault(field, "must have one of hex, base64 and values")
	default:
		s.frames = append(s.frames, f)
	}
}

// checkFinite refuses numbers beyond the range of float64, such as 1e400.
func (s *submission) checkFinite(v any, field string) {
	switch v := v.(type) {
	case map[string]any:
		for key, member := range v {
			s.checkFinite(member, field+"."+key)
		}
	case []any:
		for i, member := range v {
			s.checkFinite(member, field+"."+strconv.Itoa(i))
		}
	case float64:
		s.check(!math.IsInf(v, 0), field, "must be a number that 64 bits can hold")
	}
}
