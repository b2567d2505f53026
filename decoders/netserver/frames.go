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

// maxSamples is the largest number of samples of its own that one frame may carry.
const maxSamples = 10_000

// excess notes that a frame has more samples than it may.
func excess(f *decoders.Frame, key string) {
	f.Excess = fmt.Sprintf("%s: a frame may carry %d samples, the rest is left out", key, maxSamples)
}

// addSample adds a value that the sender decoded. A string that is a number is taken for one
// only when the sender writes all values as strings. It reports whether it was a value:
// lists, objects and null are not.
func addSample(f *decoders.Frame, key string, v jsonbody.Value, t time.Time, strings bool) bool {
	r := decoders.Reading{Key: key, Time: t}
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
		return false
	}
	if len(f.Samples) >= maxSamples {
		excess(f, key)
	} else {
		f.Samples = append(f.Samples, r)
	}
	return true
}

// loosely gives a text that stands for a number or a truth value as that.
func loosely(s string) any {
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

// readFrame makes the frame of a document. One that it gives no Kind is of no
// interest and is passed over.
type readFrame func(d document, f *decoders.Frame)

// eachFrame reads every item of a list as a frame of its own, or the one object
// that stands in the list's place. The body is that of the post, or stands within it.
func eachFrame(s Sender, p *Post, body []byte, read readFrame) ([]decoders.Frame, error) {
	d, err := readDocument(body)
	if err != nil {
		return nil, err
	}
	b := frames{sender: s, post: p}
	if d.kind() != jsonbody.Array {
		err = b.add(d, read)
		return b.list, err
	}
	d.Items(func(item document) { b.item(item, read) })
	return b.list, b.err
}

// frames are the frames that were made of one body so far.
type frames struct {
	sender Sender
	post   *Post
	list   []decoders.Frame
	notes  notes // of the frame being made
	items  int
	err    error // the first item that could not be read
}

// add makes a frame of a document, unless it is refused.
func (b *frames) add(d document, read readFrame) error {
	b.notes = notes{sender: b.sender, post: b.post}
	d.notes = &b.notes
	n := len(b.list)
	b.list = append(b.list, decoders.Frame{Sender: string(b.sender)})
	f := &b.list[n]
	read(d, f)
	err := d.notes.write(f)
	if err != nil || f.Kind == "" {
		b.list = b.list[:n]
	}
	return err
}

// item is add for one of several. It keeps what can be read and reports the
// first item that cannot.
func (b *frames) item(d document, read readFrame) {
	if len(b.list) >= maxFrames {
		b.err = tooMany(string(b.sender))
		return
	}
	if err := b.add(d, read); err != nil && b.err == nil {
		if e, ok := errors.AsType[*decoders.Error](err); ok {
			e.Field = strings.TrimSuffix(strconv.Itoa(b.items)+"."+e.Field, ".") // names the item
		}
		b.err = err
	}
	b.items++
}
