package netserver

import (
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// readUbibotFrame parses UbiBot's data forwarding (ubibot.com platform API). A
// channel is a device, and each feed has some of the values field1 to field10
// and their time.
func readUbibotFrame(d document, f *decoders.Frame) {
	f.Kind = decoders.Uplink
	d.Identifier(f, "channel_id", d.Text("channel_id"))
	f.Name = d.Text("serial")
	d.Each("feeds", func(feed document) { readUbibotFeed(feed, f) })
	// Identify the post, which has no identifier, by a hash of the feeds, which have times.
	if d.Has("feeds") {
		sum := fnv.New64a()
		sum.Write(d.Value("feeds").Raw())
		f.DedupID = strconv.FormatUint(sum.Sum64(), 16)
		if f.SampleTime.IsZero() {
			f.DedupSpan = repeatSpan // without times, equal feeds may recur
		}
	}
}

// readUbibotFeed reads one feed. The time of the frame is the latest time of its feeds.
func readUbibotFeed(d document, f *decoders.Frame) {
	t := d.Time("created_at")
	d.All(func(key string, v jsonbody.Value, _ document) {
		number, isField := strings.CutPrefix(key, "field")
		if !isField || !isPresent(v) {
			return
		}
		if _, err := strconv.ParseUint(number, 10, 16); err != nil {
			d.Warn(key, "is not \"field\" followed by a number, and is not used")
			return
		}
		if v.Kind == jsonbody.Object {
			v = d.Value(key + ".value") // some values are within an object
		}
		if !addSample(f, key, v, t, true) && v.Kind != jsonbody.Null {
			d.Warn(key, noValue)
		}
	})
	if t.After(f.SampleTime) {
		f.SampleTime = t
	}
}
