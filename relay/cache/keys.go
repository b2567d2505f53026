package cache

import (
	"hash/fnv"
	"strconv"
	"time"

	"github.com/penstock/penstock/relay"
)

// This file defines every key of the cache. Keys of package asynq begin with "asynq:". Keys of an
// account contain its hash tag, {a<account id>}. All keys except keyID expire.
//
// The number of key names is limited, because the embedded server never forgets a name: a
// frame is a field of a hash, not a key.

func tag(acct relay.AccountID) string { return "{a" + acct.String() + "}:" }

// keyCheck is a string that Check writes.
func keyCheck() string { return "penstock:check" }

// keyBreakers is a hash: endpoint → JSON of outbox.Breaker.
func keyBreakers() string { return "{breakers}:open" }

// keyBreakersKept is an empty string. While it exists, Redis has not lost keyBreakers.
func keyBreakersKept() string { return "{breakers}:kept" }

// keyLatest is a hash with the newest points of a device, one or more for each sensor:
// "<sensor id>|<ns since 1970, 20 digits>" → "n|<sensor type>|<value>" or
// "t|<sensor type>|<text>"; fieldFilled → ms since 1970.
func keyLatest(acct relay.AccountID, device string) string { return tag(acct) + "latest:" + device }

// fieldFilled is the time at which all of a device's points were read from the reading store.
const fieldFilled = "filled"

// keyHeard is a sorted set of device ids; score: the time of the device's last frame in µs since
// 1970, 0 if the device has sent no frame.
func keyHeard(acct relay.AccountID) string { return tag(acct) + "heard" }

// keyHeardFilled is a sorted set of device ids; score: the time of the last query of the reading
// store for the device's last frame, in µs since 1970.
func keyHeardFilled(acct relay.AccountID) string { return tag(acct) + "heard:filled" }

// keySeen is a hash with the frames of a span: "<device>|<dedup>" → the first journal record
// that contained the frame, or "<ns since 1970>|<record>" with the frame's time if another frame
// may have the same field.
func keySeen(acct relay.AccountID, shard int, s span) string {
	return tag(acct) + "seen:" + strconv.Itoa(shard) + ":" + s.name()
}

// keyPosts is a hash with the content of the posts of a device's frames in a span. Each field
// begins with the frame, "<length of dedup>:<dedup>:", followed by:
//
//	at                       → ns since 1970, the time with which the frame is stored
//	position                 → "<latitude>|<longitude>"
//	g:<SNR>|<RSSI>|<gateway> → empty; the field is a reception
func keyPosts(acct relay.AccountID, device string, s span) string {
	return tag(acct) + "posts:" + s.name() + ":" + device
}

// seenShards is the number of hashes over which the frames of an account are spread: deleting
// a very large hash would block the server.
const seenShards = 64

func shardOf(device, dedup string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(device))
	_, _ = h.Write([]byte(dedup))
	return int(h.Sum32() % seenShards)
}

// span is a time window whose length is the retention of its keys. Its keys are kept until the
// end of the next span, so that the current and the previous span together contain all frames
// of the retention.
type span struct {
	number int64
	start  time.Time
	length time.Duration
}

func spanAt(t time.Time, length time.Duration) span {
	length = max(length, time.Second)
	number := t.UnixNano() / int64(length)
	return span{number, time.Unix(0, number*int64(length)), length}
}

func (s span) previous() span { return span{s.number - 1, s.start.Add(-s.length), s.length} }

// expiry returns the expiry of the keys of the span.
func (s span) expiry() time.Time { return s.start.Add(2 * s.length) }

// name returns a name that is reused after four spans, when the earlier keys have expired.
func (s span) name() string { return strconv.FormatInt(s.number%4, 10) }

// keyID is a string that identifies this Redis. It does not expire.
func keyID() string { return "penstock:id" }

// keyDatabases is a sorted set of the databases whose gateways use this Redis; score: the time of
// the last heartbeat in ms since 1970.
func keyDatabases() string { return "penstock:databases" }
