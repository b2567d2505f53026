package redisstore

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay/event"
)

// Marks keeps what became of one node's events; it is an event.Marks.
type Marks struct {
	db   *DB
	node string
}

// Marks returns the marks of a node's journals.
func (d *DB) Marks(node string) *Marks { return &Marks{db: d, node: node} }

// markedStates are those that leave a mark.
func markedStates() []event.State { return []event.State{event.Quarantined, event.Unrouted} }

// Set records marks; one with state Done forgets.
func (s *Marks) Set(ctx context.Context, kind event.Kind, marks []event.Mark) error {
	_, err := s.db.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		for _, m := range marks {
			seq := strconv.FormatUint(m.Seq, 10)
			for _, state := range markedStates() {
				p.ZRem(ctx, keyMarksIn(s.node, string(kind), string(state)), seq)
			}
			if m.State == event.Done {
				p.HDel(ctx, keyMarks(s.node, string(kind)), seq)
				continue
			}
			p.HSet(ctx, keyMarks(s.node, string(kind)), seq, encode(m))
			p.ZAdd(ctx, keyMarksIn(s.node, string(kind), string(m.State)), redis.Z{Score: float64(m.Seq), Member: seq})
		}
		return nil
	})
	return wrap("marks", err)
}

// Get returns the marks of a range of sequences.
func (s *Marks) Get(ctx context.Context, kind event.Kind, from, to uint64) (map[uint64]event.Mark, error) {
	out := make(map[uint64]event.Mark)
	for _, state := range markedStates() {
		by := redis.ZRangeArgs{Key: keyMarksIn(s.node, string(kind), string(state)), Start: from, Stop: to, ByScore: true}
		seqs, err := s.db.rdb.ZRangeArgs(ctx, by).Result()
		if err != nil {
			return nil, wrap("marks", err)
		}
		found, err := s.load(ctx, kind, seqs)
		if err != nil {
			return nil, err
		}
		for _, m := range found {
			out[m.Seq] = m
		}
	}
	return out, nil
}

// List returns marks in a state below a sequence, newest first.
func (s *Marks) List(ctx context.Context, kind event.Kind, state event.State, before uint64, limit int) ([]event.Mark, error) {
	seqs, err := s.db.rdb.ZRangeArgs(ctx, redis.ZRangeArgs{
		Key: keyMarksIn(s.node, string(kind), string(state)), Start: "(" + strconv.FormatUint(before, 10), Stop: "-inf",
		ByScore: true, Rev: true, Count: int64(limit),
	}).Result()
	if err != nil {
		return nil, wrap("marks", err)
	}
	return s.load(ctx, kind, seqs)
}

func (s *Marks) load(ctx context.Context, kind event.Kind, seqs []string) ([]event.Mark, error) {
	if len(seqs) == 0 {
		return nil, nil
	}
	all, err := s.db.rdb.HMGet(ctx, keyMarks(s.node, string(kind)), seqs...).Result()
	if err != nil {
		return nil, wrap("marks", err)
	}
	out := make([]event.Mark, 0, len(all))
	for i, v := range all {
		text, ok := v.(string)
		if !ok {
			continue
		}
		var m event.Mark
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			return nil, fmt.Errorf("mark %s: %w", seqs[i], err)
		}
		out = append(out, m)
	}
	return out, nil
}

// Counts returns how many marks there are by state.
func (s *Marks) Counts(ctx context.Context, kind event.Kind) (map[event.State]int, error) {
	out := make(map[event.State]int)
	for _, state := range markedStates() {
		n, err := s.db.rdb.ZCard(ctx, keyMarksIn(s.node, string(kind), string(state))).Result()
		if err != nil {
			return nil, wrap("marks", err)
		}
		out[state] = int(n)
	}
	return out, nil
}

// trimPart is how many marks are forgotten at a time.
const trimPart = 1000

// Trim forgets the marks below a sequence.
func (s *Marks) Trim(ctx context.Context, kind event.Kind, below uint64) error {
	for _, state := range markedStates() {
		for more := true; more; {
			n, err := s.trim(ctx, kind, state, below)
			if err != nil {
				return wrap("marks", err)
			}
			more = n == trimPart
		}
	}
	return nil
}

func (s *Marks) trim(ctx context.Context, kind event.Kind, state event.State, below uint64) (int, error) {
	key := keyMarksIn(s.node, string(kind), string(state))
	seqs, err := s.db.rdb.ZRangeArgs(ctx, redis.ZRangeArgs{
		Key: key, Start: "-inf", Stop: "(" + strconv.FormatUint(below, 10), ByScore: true, Count: trimPart,
	}).Result()
	if err != nil || len(seqs) == 0 {
		return 0, err
	}
	_, err = s.db.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.HDel(ctx, keyMarks(s.node, string(kind)), seqs...)
		return p.ZRem(ctx, key, seqs).Err()
	})
	return len(seqs), err
}
