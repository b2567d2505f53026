package netserver

import (
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// ubibotFrame reads UbiBot's data forwarding (ubibot.com platform API): a
// channel is a device, and each feed holds one or more of field1 to field10
// with the time at which they were measured.
func ubibotFrame(d document, f *decoders.Frame) {
	f.Kind = decoders.Uplink
	d.Identifier(f, "channel_id", d.Text("channel_id"))
	f.Name = d.Text("serial")
	d.Each("feeds", func(feed document) { ubibotFeed(feed, f) })
	if d.Has("feeds") {
		ubibotDedup(f, d.Value("feeds").Raw())
	}
}

// ubibotFeed reads one feed. The latest time is the frame's.
func ubibotFeed(d document, f *decoders.Frame) {
	t := d.Time("created_at")
	d.All(func(key string, v jsonbody.Value, _ document) {
		switch {
		case !isPresent(v):
			return
		case !isField(key):
			if strings.HasPrefix(key, "field") {
				d.Warn(key, "is not field and a number, and is not used")
			}
			return
		}
		if v = ubibotValue(d, key, v); !addSample(f, key, v, t, true) && v.Kind != jsonbody.Null {
			d.Warn(key, noValue)
		}
	})
	if t.After(f.SampleTime) {
		f.SampleTime = t
	}
}

// ubibotValue is the value of a field, which stands bare or within an object.
func ubibotValue(d document, key string, v jsonbody.Value) jsonbody.Value {
	if v.Kind == jsonbody.Object {
		return d.Value(key + ".value")
	}
	return v
}

// ubibotDedup is the sum of the feeds' text, which holds their times: a
// post has no identifier of its own.
func ubibotDedup(f *decoders.Frame, feeds []byte) {
	sum := fnv.New64a()
	sum.Write(feeds)
	f.DedupID = strconv.FormatUint(sum.Sum64(), 16)
	if f.SampleTime.IsZero() {
		f.DedupSpan = repeatSpan // equal values of another day are no repetition
	}
}

// isField reports whether a key is "field" and a number.
func isField(key string) bool {
	number, ok := strings.CutPrefix(key, "field")
	_, err := strconv.ParseUint(number, 10, 16)
	return ok && err == nil
}
