package netserver

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// parseGeneric reads the generic format: an object of values, or a
// list of such objects, each one frame. The device is named by the address or
// else by one of the keys deviceId, device_id, deviceEUI, devEUI, id; the time
// of the sample stands under time or timestamp. These keys are no values.
func parseGeneric(p Post) ([]decoders.Frame, error) {
	r := jsonbody.New(p.Body)
	if r.Kind() != jsonbody.Array {
		f, err := genericFrame(&r, p.DeviceID)
		if syntax := r.Close(); syntax != nil {
			return nil, syntaxError(syntax)
		}
		if err != nil {
			return nil, err
		}
		return []decoders.Frame{f}, nil
	}
	return genericList(&r, p.DeviceID)
}

// genericList reads every item that can be read and reports the first that
// cannot.
func genericList(r *jsonbody.Reader, device string) (frames []decoders.Frame, first error) {
	i := 0
	for ok := r.Array(); ok && r.More(); i++ {
		if i >= maxFrames {
			first = tooMany(string(Generic))
			continue
		}
		f, err := genericFrame(r, device)
		if err == nil {
			frames = append(frames, f)
		} else if first == nil {
			first = inItem(i, err)
		}
	}
	if err := r.Close(); err != nil {
		return nil, syntaxError(err)
	}
	return frames, first
}

// inItem names the item of a list in an error about it.
func inItem(i int, err error) error {
	var e *decoders.Error
	if !errors.As(err, &e) {
		return err
	}
	at := *e
	at.Field = strings.TrimSuffix(strconv.Itoa(i)+"."+e.Field, ".")
	return &at
}

// identifierRank is the order in which a generic body's keys name its device.
func identifierRank(key []byte) int {
	switch string(key) {
	case "deviceId":
		return 1
	case "device_id":
		return 2
	case "deviceEUI":
		return 3
	case "devEUI":
		return 4
	case "id":
		return 5
	}
	return 0
}

func genericFrame(r *jsonbody.Reader, device string) (decoders.Frame, error) {
	f := decoders.Frame{Sender: string(Generic), Kind: decoders.Uplink, Object: map[string]any{}}
	if r.Kind() != jsonbody.Object {
		r.Skip()
		return f, &decoders.Error{Format: string(Generic), Offset: -1, Reason: "is not an object of values"}
	}
	best := math.MaxInt
	for key := range r.Fields() {
		rank := identifierRank(key)
		switch {
		case rank > 0:
			if id, ok := r.Value().Text(); ok && id != "" && rank < best {
				f.Identifier, best = id, rank
			}
		case string(key) == "time", string(key) == "timestamp":
			sampled(&f, string(key), r.Value())
		default:
			name := string(key)
			f.Object[name] = r.Any()
		}
	}
	return f, identify(&f, device)
}

// identify prefers the device that the address names.
func identify(f *decoders.Frame, device string) error {
	if device != "" {
		f.Identifier = device
	}
	if f.Identifier == "" {
		return &decoders.Error{Format: f.Sender, Field: "deviceId", Offset: -1,
			Reason: "is missing, and so are device_id, deviceEUI, devEUI, id and a device in the address"}
	}
	if eui, ok := decoders.NormalizeDevEUI(f.Identifier); ok {
		f.Identifier, f.IsDevEUI = eui, true
	}
	return nil
}

// sampled takes the first of two times that can be read.
func sampled(f *decoders.Frame, key string, v jsonbody.Value) {
	at, ok := looseTime(v)
	switch {
	case ok && f.SampleTime.IsZero():
		f.SampleTime = at
	case !ok && isPresent(v) && f.TimeNote == "":
		f.TimeNote = key + ": is neither ISO 8601 nor seconds or milliseconds since 1970: " + quoteClipped(v.Raw())
	}
}
