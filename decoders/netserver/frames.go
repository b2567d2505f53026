package netserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

func tooMany(sender string) error {
	return &decoders.Error{Format: sender, Offset: -1, Reason: fmt.Sprintf("holds more than %d frames", maxFrames)}
}

// maxSamples is the largest number of samples of one frame.
const maxSamples = 10_000

// setExcess records that a frame has too many samples: the samples from key on are omitted.
func setExcess(f *decoders.Frame, key string) {
	f.Excess = fmt.Sprintf("%s: a frame may have at most %d samples; the others are ignored", key, maxSamples)
}

// addSample adds a value that the sender decoded. allStrings reports whether the sender writes all
// values as strings; only then is a string converted to a number or a boolean. addSample returns
// false for lists, objects and null.
func addSample(f *decoders.Frame, key string, v jsonbody.Value, t time.Time, allStrings bool) bool {
	r := decoders.Reading{Key: key, Time: t}
	n, isNumber := v.Float()
	b, isBool := v.Bool()
	switch {
	case isNumber && (allStrings || v.Kind == jsonbody.Number):
		r.Value = n
	case isBool && (allStrings || v.Kind == jsonbody.Bool):
		if b {
			r.Value = 1
		}
	case v.Kind == jsonbody.String:
		r.Text, r.IsText = v.String(), true
	default:
		return false
	}
	if len(f.Samples) >= maxSamples {
		setExcess(f, key)
	} else {
		f.Samples = append(f.Samples, r)
	}
	return true
}

// convertText returns the number or boolean that a string represents, or else the string.
func convertText(s string) any {
	switch s {
	case "True", "true":
		return true
	case "False", "false":
		return false
	}
	if n, err := strconv.ParseFloat(s, 64); err == nil && !math.IsInf(n, 0) && !math.IsNaN(n) && !strings.ContainsAny(s, "_xX") {
		return n
	}
	return s
}

// formAsJSON converts a form to JSON, so that both have one parser.
func formAsJSON(values map[string][]string) []byte {
	flat := make(map[string]string, len(values))
	for k, v := range values {
		if len(v) > 0 {
			flat[k] = v[0]
		}
	}
	body, _ := json.Marshal(flat) // strings always marshal
	return body
}

// parseObject parses a string with a JSON object.
func parseObject(v jsonbody.Value) (object map[string]any, ok bool) {
	s := v.String()
	if s == "" || s == "null" {
		return nil, true
	}
	r := jsonbody.New([]byte(s))
	object = r.Map()
	return object, r.Close() == nil && object != nil
}

// frameReader reads a frame from a document. A frame without Kind is discarded.
type frameReader func(d document, f *decoders.Frame)

// eachFrame reads a frame from each item of a list, or the only frame from an object. body may
// be a part of the post's body.
func eachFrame(s Sender, p *Post, body []byte, read frameReader) ([]decoders.Frame, error) {
	d, err := readDocument(body)
	if err != nil {
		return nil, err
	}
	l := frameList{sender: s, post: p}
	if d.kind() != jsonbody.Array {
		err = l.add(d, read)
		return l.frames, err
	}
	d.Items(func(item document) { l.addItem(item, read) })
	return l.frames, l.err
}

// frameList collects the frames of one body.
type frameList struct {
	sender Sender
	post   *Post
	frames []decoders.Frame
	notes  notes // of the frame in progress
	items  int
	err    error // about the first item that cannot be read
}

// add reads a frame from a document and adds it unless it is refused.
func (l *frameList) add(d document, read frameReader) error {
	l.notes = notes{sender: l.sender, post: l.post}
	d.notes = &l.notes
	n := len(l.frames)
	l.frames = append(l.frames, decoders.Frame{Sender: string(l.sender)})
	f := &l.frames[n]
	read(d, f)
	err := d.notes.write(f)
	if err != nil || f.Kind == "" {
		l.frames = l.frames[:n]
	}
	return err
}

// addItem adds the frame of an item of a list. It stores the first error, which names the item, in
// l.err.
func (l *frameList) addItem(d document, read frameReader) {
	if len(l.frames) >= maxFrames {
		l.err = tooMany(string(l.sender))
		return
	}
	if err := l.add(d, read); err != nil && l.err == nil {
		if e, ok := errors.AsType[*decoders.Error](err); ok {
			e.Field = strings.TrimSuffix(strconv.Itoa(l.items)+"."+e.Field, ".")
		}
		l.err = err
	}
	l.items++
}
