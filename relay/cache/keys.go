package cache

import (
	"hash/fnv"
	"strconv"
	"time"

	"github.com/penstock/penstock/relay"
)

// Every key of the cache is named here and nowhere else; asynq's own begin with
// "asynq:". Keys of an account carry its hash tag, {a<account id>}. All expire but one.
//
// Names are few and come again: a frame is a field of a hash and not a key, since the
// embedded server never drops a name.

// tag is the hash tag of an account, alone in braces.
func tag(acct relay.AccountID) string { return "{a" + acct.String() + "}:" }

// keyCheck is a string without meaning: Check looks whether it can be written.
func keyCheck() string { return "penstock:check" }

// keyBreakers is a hash: endpoint → JSON of outbox.Breaker.
func keyBreakers() string { return "{breakers}:open" }

// keyBreakersKept is a string without meaning: while it exists, Redis has not lost
// keyBreakers.
func keyBreakersKept() string { return "{breakers}:kept" }

// keyLatest is a hash, the newest points of one device: "<sensor id>|<ns since
// 1970, 20 digits>" → "n|<sensor type>|<value>" or "t|<sensor type>|<text>", of
// each sensor one or more; fieldFilled → ms since 1970.
func keyLatest(acct relay.AccountID, device string) string { return tag(acct) + "latest:" + device }

// fieldFilled is the time at which all of a device's points were read from the reading store.
const fieldFilled = "filled"

// keyHeard is a sorted set of device ids; score: µs since 1970 when the device
// was heard last, 0 for never.
func keyHeard(acct relay.AccountID) string { return tag(acct) + "heard" }

// keyHeardFilled is a sorted set of device ids; score: µs since 1970 when the reading store
// was queried for the device's last frame.
func keyHeardFilled(acct relay.AccountID) string { return tag(acct) + "heard:filled" }

// keySeen is a hash, frames seen in a span of time: "<device>|<dedup>" → the
// journal record that brought the frame first; "<ns since 1970>|<record>" with
// the frame's time where a frame of another time may have that name.
func keySeen(acct relay.AccountID, shard int, s span) string {
	return tag(acct) + "seen:" + strconv.Itoa(shard) + ":" + s.name()
}

// keyPosts is a hash, what posts say in a span of time of a device's frames. Each
// field begins with the frame, "<length of dedup>:<dedup>:", and goes on:
//
//	at                     → ns since 1970 under which the frame is stored
//	position               → "<latitude>|<longitude>"
//	g:<SNR>|<RSSI>|<gateway> → nothing: a reception
func keyPosts(acct relay.AccountID, device string, s span) string {
	return tag(acct) + "posts:" + s.name() + ":" + device
}

// seenShards spreads the frames of an account over hashes, so that none of them
// is so large that its end stops the server.
const seenShards = 64

func shardOf(device, dedup string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(device))
	_, _ = h.Write([]byte(dedup))
	return int(h.Sum32() % seenShards)
}

// span is a time window, as long as the retention of its keys. What belongs to it is
// kept until the end of the next one, so that looking into this span and
// the one before finds all of the last span's length.
type span struct {
	number int64
	start  time.Time
	length time.Duration
}

// spanAt returns the span of a time.
func spanAt(t time.Time, length time.Duration) span {
	length = max(length, time.Second)
	number := t.UnixNano() / int64(length)
	return span{number, time.Unix(0, number*int64(length)), length}
}

func (s span) before() span { return span{s.number - 1, s.start.Add(-s.length), s.length} }

// ends is the expiry of the keys of the span.
func (s span) ends() time.Time { return s.start.Add(2 * s.length) }

// name comes again after four spans, when what had it is long gone.
func (s span) name() string { return strconv.FormatInt(s.number%4, 10) }

// keyID is a string: names this Redis. It does not expire.
func keyID() string { return "penstock:id" }

// keyDatabases is a sorted set: the databases of the gateways that use this Redis;
// score: ms since 1970 of the last heartbeat.
func keyDatabases() string { return "penstock:databases" }
