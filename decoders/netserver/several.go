package netserver

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// each reads every item of a list as a frame of its own, or the one object
// that stands in the list's place. It keeps what can be read and reports the
// first item that cannot. The function fills the frame and returns false for
// an item of a kind that is passed over.
func (e *envelope) each(item func() bool) (frames []decoders.Frame, first error) {
	sender := e.f.Sender
	if e.r.Kind() != jsonbody.Array {
		return e.kept(item())
	}
	i := 0
	for ok := e.r.Array(); ok && e.r.More(); i++ {
		if len(frames) >= maxFrames {
			e.r.Skip()
			first = tooMany(sender)
			continue
		}
		e.f, e.err = &decoders.Frame{Sender: sender}, nil
		keep := item()
		switch {
		case e.err != nil && first == nil:
			first = inItem(i, e.err)
		case e.err == nil && keep:
			frames = append(frames, *e.f)
		}
	}
	if err := e.r.Close(); err != nil {
		return nil, err
	}
	return frames, first
}

// kept is finish for a body that may hold nothing of interest.
func (e *envelope) kept(keep bool) ([]decoders.Frame, error) {
	frames, err := e.finish()
	if err != nil || keep {
		return frames, err
	}
	return nil, nil
}

func tooMany(sender string) error {
	return &decoders.Error{Format: sender, Offset: -1, Reason: fmt.Sprintf("holds more than %d frames", maxFrames)}
}

// maxSamples is how many samples of its own one frame may carry.
const maxSamples = 1000

// sample adds a value that the sender decoded. A string that is a number is
// taken for one only when the sender is known to write all values as strings.
func (e *envelope) sample(key string, v jsonbody.Value, at time.Time, strings bool) {
	r := decoders.Reading{Key: key, Time: at}
	n, number := v.Float()
	b, truth := v.Bool()
	switch {
	case number && (strings || v.Kind == jsonbody.Number):
		r.Value = n
	case truth && (strings || v.Kind == jsonbody.Bool):
		if b {
			r.Value = 1
		}
	case v.Kind == jsonbody.String:
		r.Text, r.IsText = v.String(), true
	default:
		return
	}
	if len(e.f.Samples) >= maxSamples {
		e.warn(key, fmt.Sprintf("is left out: a frame may carry %d samples", maxSamples))
		return
	}
	e.f.Samples = append(e.f.Samples, r)
}

// loosely gives a text that stands for a number or a truth value as that.
func loosely(s string) any {
	switch s {
	case "True", "true":
		return true
	case "False", "false":
		return false
	}
	if n, err := strconv.ParseFloat(s, 64); err == nil && !math.IsInf(n, 0) && !math.IsNaN(n) {
		return n
	}
	return s
}

// stringsAsJSON writes values that came as a form, so that one parser reads
// both.
func stringsAsJSON(values map[string][]string) []byte {
	flat := make(map[string]string, len(values))
	for k, v := range values {
		if len(v) > 0 {
			flat[k] = v[0]
		}
	}
	body, _ := json.Marshal(flat) // strings always marshal
	return body
}

// within reads JSON that stands in a string, as an object.
func within(v jsonbody.Value) (object map[string]any, ok bool) {
	s := v.String()
	if s == "" || s == "null" {
		return nil, true
	}
	r := jsonbody.New([]byte(s))
	object = r.Map()
	return object, r.Close() == nil && object != nil
}
