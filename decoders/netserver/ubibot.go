package netserver

import (
	"hash/fnv"
	"strconv"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// ubibot reads UbiBot's data forwarding (ubibot.com platform API): a channel is
// a device, and each feed holds one or more of field1 to field10 with the time
// at which they were measured.
type ubibot struct {
	envelope
	body []byte
}

func parseUbiBot(p Post) ([]decoders.Frame, error) {
	u := ubibot{envelope: newEnvelope(UbiBot, p.Body), body: p.Body}
	u.f.Kind = decoders.Uplink
	var key []byte
	for ok := u.r.Object(); ok && u.r.Next(&key); {
		switch string(key) {
		case "channel_id":
			u.f.Identifier = u.text("channel_id")
		case "product_id":
			u.f.Profile.Model = u.text("product_id")
		case "serial":
			u.f.Name = u.text("serial")
		case "feeds":
			u.feeds()
		default:
			u.r.Skip()
		}
	}
	u.named("channel_id")
	return u.finish()
}

// feeds reads the samples. A post has no identifier of its own, so the sum of
// the feeds' text, which holds their times, tells it from others.
func (u *ubibot) feeds() {
	start := u.r.Offset()
	for ok := u.r.Array(); ok && u.r.More(); {
		u.feed()
	}
	sum := fnv.New64a()
	sum.Write(u.body[start:u.r.Offset()])
	u.f.DedupID = strconv.FormatUint(sum.Sum64(), 16)
}

// feed reads one feed, whose time may follow its values. The latest time is
// the frame's.
func (u *ubibot) feed() {
	from := len(u.f.Samples)
	var at time.Time
	var key []byte
	for ok := u.r.Object(); ok && u.r.Next(&key); {
		switch {
		case string(key) == "created_at":
			at = u.instant("feeds.created_at")
		case isField(key) && u.r.Kind() > jsonbody.Null:
			name := string(key)
			u.sample(name, u.r.Value(), time.Time{}, true)
		default:
			u.r.Skip()
		}
	}
	for i := from; i < len(u.f.Samples); i++ {
		u.f.Samples[i].Time = at
	}
	if at.After(u.f.SampleTime) {
		u.f.SampleTime = at
	}
}

// isField tells field1 and its like.
func isField(key []byte) bool {
	const prefix = "field"
	if len(key) <= len(prefix) || string(key[:len(prefix)]) != prefix {
		return false
	}
	_, err := strconv.ParseUint(string(key[len(prefix):]), 10, 16)
	return err == nil
}
