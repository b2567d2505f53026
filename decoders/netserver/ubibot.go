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
	// Take the sum of the feeds' text, which holds their times, for the DedupID: a post has
	// no identifier of its own.
	if d.Has("feeds") {
		sum := fnv.New64a()
		sum.Write(d.Value("feeds").Raw())
		f.DedupID = strconv.FormatUint(sum.Sum64(), 16)
		if f.SampleTime.IsZero() {
			f.DedupSpan = repeatSpan // equal values of another day are not a repetition
		}
	}
}

// ubibotFeed reads one feed. The latest time is the frame's.
func ubibotFeed(d document, f *decoders.Frame) {
	t := d.Time("created_at")
	d.All(func(key string, v jsonbody.Value, _ document) {
		number, isField := strings.CutPrefix(key, "field")
		if !isField || !isPresent(v) {
			return
		}
		if _, err := strconv.ParseUint(number, 10, 16); err != nil {
			d.Warn(key, "is not field and a number, and is not used")
			return
		}
		if v.Kind == jsonbody.Object {
			v = d.Value(key + ".value") // the value stands bare or within an object
		}
		if !addSample(f, key, v, t, true) && v.Kind != jsonbody.Null {
			d.Warn(key, noValue)
		}
	})
	if t.After(f.SampleTime) {
		f.SampleTime = t
	}
}
