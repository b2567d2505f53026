package cache

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

// IoT implements iot.Cache.
type IoT struct{ db *DB }

// IoT returns the cache of the IoT domain.
func (d *DB) IoT() *IoT { return &IoT{db: d} }

// Deduplicate marks frames as seen, for at least ttl and at most twice ttl. It returns the record
// that holds each frame.
func (c *IoT) Deduplicate(ctx context.Context, frames []iot.FrameKey, ttl time.Duration) ([]string, error) {
	records, err := c.records(ctx, frames, ttl, true)
	for i := range records {
		records[i] = cmp.Or(records[i], frames[i].RecordID) // empty if the mark has just expired
	}
	return records, err
}

// FirstRecords returns the record that holds each frame; empty if none does.
func (c *IoT) FirstRecords(ctx context.Context, frames []iot.FrameKey, ttl time.Duration) ([]string, error) {
	return c.records(ctx, frames, ttl, false)
}

func (c *IoT) records(ctx context.Context, frames []iot.FrameKey, ttl time.Duration, setMarks bool) ([]string, error) {
	return inChunks(frames, func(chunk []iot.FrameKey) ([]string, error) { return c.lookUp(ctx, chunk, ttl, setMarks) })
}

const seenLabel = "frames seen"

// lookUp returns the record of each frame's mark. With setMarks, it sets the missing marks
// first. It takes one round trip, a second if marks existed, and a third if marks replace
// others.
func (c *IoT) lookUp(ctx context.Context, frames []iot.FrameKey, ttl time.Duration, setMarks bool) ([]string, error) {
	// 1. Set the missing marks, and read the marks of the previous span.
	now := c.db.now()
	current := c.db.spans.spanAt(now, ttl)
	shards := groupByShard(frames, current)
	err := c.db.pipeline(ctx, seenLabel, func(p redis.Pipeliner) {
		for _, s := range shards {
			if setMarks {
				for i, field := range s.fields {
					s.isNew[i] = p.HSetNX(ctx, s.key, field, markOf(frames[s.frames[i]]))
				}
				p.PExpire(ctx, s.key, current.expiry().Sub(now))
			}
			s.previousMarks = p.HMGet(ctx, s.previousKey, s.fields...)
		}
	})
	if err != nil {
		return nil, err
	}

	// 2. Read the marks that existed before the call. Nearly all marks are set by the call.
	err = c.db.pipeline(ctx, seenLabel, func(p redis.Pipeliner) {
		for _, s := range shards {
			var fields []string
			for i, set := range s.isNew {
				if set != nil && set.Val() {
					s.marks[i] = markOf(frames[s.frames[i]])
				} else {
					s.unknown, fields = append(s.unknown, i), append(fields, s.fields[i])
				}
			}
			if len(fields) > 0 {
				s.found = p.HMGet(ctx, s.key, fields...)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	if setMarks {
		c.forget(ctx, shards)
	}

	// 3. Find the records, and save the marks that replace others. If two gateways replace the same
	// mark at once, the later replacement stays, and the frame of the other gateway may be stored
	// twice with the same content.
	records := make([]string, len(frames))
	for _, s := range shards {
		for n, i := range s.unknown {
			s.marks[i], _ = s.found.Val()[n].(string)
		}
		s.findRecords(frames, records, setMarks)
	}
	return records, c.db.pipeline(ctx, seenLabel, func(p redis.Pipeliner) {
		for _, s := range shards {
			if len(s.replacements) > 0 {
				p.HSet(ctx, s.key, s.replacements)
			}
		}
	})
}

// forget deletes expired marks if the number of marks is limited. The next Deduplicate deletes marks
// that could not be deleted.
func (c *IoT) forget(ctx context.Context, shards []*shard) {
	keys, marks := make([]string, len(shards)), 0
	for i, s := range shards {
		keys[i], marks = s.key, marks+len(s.fields)-len(s.unknown)
	}
	for chunk := range slices.Chunk(c.db.spans.count(keys, marks), maxPipelined) {
		err := c.db.pipeline(ctx, seenLabel, func(p redis.Pipeliner) {
			for _, key := range chunk {
				p.Del(ctx, key)
			}
		})
		if err != nil {
			c.db.spans.retryDeletion(chunk)
		}
	}
}

// shard has the frames of a batch whose marks are in one hash.
type shard struct {
	key, previousKey string // in the current and in the previous span
	frames           []int  // indexes into the batch
	fields           []string
	isNew            []*redis.BoolCmd // whether the call set the mark; nil if the call only reads
	previousMarks    *redis.SliceCmd  // in the previous span
	marks            []string         // in the current span; empty if missing
	unknown          []int            // indexes of the fields whose marks are in found
	found            *redis.SliceCmd
	replacements     map[string]string // field → mark that replaces the stored one
}

func groupByShard(frames []iot.FrameKey, current span) []*shard {
	type place struct {
		acct   relay.AccountID
		number int
	}
	byPlace := make(map[place]*shard, seenShards)
	var shards []*shard
	for i, f := range frames {
		p := place{f.Account, shardOf(f.Device, f.Dedup)}
		s := byPlace[p]
		if s == nil {
			s = &shard{key: keySeen(p.acct, p.number, current), previousKey: keySeen(p.acct, p.number, current.previous())}
			byPlace[p], shards = s, append(shards, s)
		}
		s.frames, s.fields = append(s.frames, i), append(s.fields, f.Device+"|"+f.Dedup)
	}
	for _, s := range shards {
		s.isNew, s.marks = make([]*redis.BoolCmd, len(s.frames)), make([]string, len(s.frames))
	}
	return shards
}

// findRecords finds the record that holds each frame of a shard. With setMarks, it replaces the mark of
// another frame with the same name. A mark of the previous span replaces the new one, so that a
// frame keeps its record while it is remembered: the record may be processed again, and must
// find itself.
func (s *shard) findRecords(frames []iot.FrameKey, records []string, setMarks bool) {
	renew := func(field, mark string) {
		if s.replacements == nil {
			s.replacements = make(map[string]string)
		}
		s.replacements[field] = mark
	}
	for i, index := range s.frames {
		f, field := frames[index], s.fields[i]
		previousMark, _ := s.previousMarks.Val()[i].(string)
		for _, mark := range [...]string{s.replacements[field], previousMark, s.marks[i]} {
			if mark != "" && records[index] == "" {
				records[index] = recordOf(f, mark)
			}
		}
		switch {
		case !setMarks:
		case records[index] == "" && f.Span > 0:
			renew(field, markOf(f))
		case previousMark != "" && previousMark != s.marks[i] && s.replacements[field] == "" && recordOf(f, previousMark) != "":
			renew(field, previousMark)
		}
	}
}

// markOf returns the mark of a frame: its record, preceded by its time if a frame of another
// time may have the same name.
func markOf(f iot.FrameKey) string {
	if f.Span == 0 {
		return f.RecordID
	}
	return strconv.FormatInt(f.Time.UnixNano(), 10) + "|" + f.RecordID
}

// recordOf returns the record of a mark, or an empty string if the mark belongs to another
// frame.
func recordOf(f iot.FrameKey, mark string) string {
	digits, record, timed := strings.Cut(mark, "|")
	if f.Span == 0 || !timed {
		return mark
	}
	ns, err := strconv.ParseInt(digits, 10, 64)
	switch {
	case err != nil:
		return mark
	case f.SameFrame(time.Unix(0, ns)):
		return record
	}
	return ""
}

// spanLimit limits the number of marks: a span ends early when it has maxMarks. The embedded
// server has a limit because it uses the memory of the gateway. The zero value has no limit,
// and spans that depend only on the time.
type spanLimit struct {
	maxMarks int // the number of marks at which a span ends; 0 means no limit

	mu    sync.Mutex
	span  span
	marks int // number of marks in span
	// current has the keys of span, previous those of the span before it, and ended those of
	// earlier spans, which are deleted.
	current, previous, ended map[string]bool
}

func (l *spanLimit) spanAt(now time.Time, length time.Duration) span {
	if l.maxMarks == 0 {
		return spanAt(now, length)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.marks >= l.maxMarks || l.span.length != length || now.Sub(l.span.start) >= length {
		if l.ended == nil {
			l.ended = make(map[string]bool)
		}
		maps.Copy(l.ended, l.previous)
		l.previous, l.current, l.marks = l.current, make(map[string]bool), 0
		l.span = span{number: l.span.number + 1, start: now, length: length}
	}
	return l.span
}

// count counts marks that were set under keys, and returns the keys of ended spans, which the
// caller deletes.
func (l *spanLimit) count(keys []string, marks int) (ended []string) {
	if l.maxMarks == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range keys {
		l.current[key] = true
		delete(l.ended, key) // the name of the key is in use again
	}
	l.marks += marks
	ended = slices.Collect(maps.Keys(l.ended))
	clear(l.ended)
	return ended
}

// retryDeletion makes the next count return keys that could not be deleted.
func (l *spanLimit) retryDeletion(keys []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range keys {
		if !l.current[key] && !l.previous[key] {
			l.ended[key] = true
		}
	}
}
