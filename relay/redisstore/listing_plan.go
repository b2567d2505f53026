package redisstore

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/sim"
)

// plan chooses how the page is found.
func (s *search) plan(ctx context.Context, rest []counted) ([]string, int, error) {
	s.rest = rest
	if len(rest) == 0 {
		from, to := s.ascending(s.width)
		members, err := s.ranks(ctx, s.first+from, s.first+to)
		return s.ids(members), s.width, err
	}
	base, skipped := -1, 0
	for i, f := range rest {
		switch {
		case f.Match == sim.Differs:
			skipped += f.found
		case base < 0 || f.found < rest[base].found:
			base = i
		}
	}
	switch {
	case base < 0 && skipped <= maxSkipped:
		return s.skip(ctx)
	case base >= 0 && rest[base].found <= maxSorted && rest[base].found < s.walkReads():
		return s.sort(ctx, rest[base])
	}
	return s.walk(ctx)
}

// total is how many records the list has, if that is known before it is read: a
// single filter's own count, when no window cuts through it.
func (s *search) total() (int, bool) {
	if len(s.rest) != 1 || s.width != s.size {
		return 0, false
	}
	if one := s.rest[0]; one.Match == sim.Differs {
		return s.size - one.found, true
	}
	return s.rest[0].found, true
}

// walkReads is how many members a walk would read, were matches spread evenly.
func (s *search) walkReads() int {
	total, known := s.total()
	if !known || total == 0 {
		return s.width
	}
	need := min(s.to, max(total-s.from, 0))
	return int(min(float64(s.width), float64(need)*float64(s.size)/float64(total)))
}

// passes reports whether a record passes all filters but the window.
func (s *search) passes(row []string) bool {
	for _, f := range s.rest {
		if !f.Holds(row[f.column]) {
			return false
		}
	}
	return true
}

// within reports whether a value of the order's column lies in the window.
func (s *search) within(value string) bool {
	if s.window == whole() {
		return true
	}
	text := value + separator
	after, before := s.window.min[1:], s.window.max[1:]
	return text >= after && text < before
}

// sort reads what one filter finds and sorts what passes the others.
func (s *search) sort(ctx context.Context, base counted) ([]string, int, error) {
	members, err := s.lex(ctx, base)
	if err != nil {
		return nil, 0, err
	}
	found := members[:0]
	for _, m := range members {
		if row := s.rowOf(base.column, m); s.passes(row) && s.within(row[s.order]) {
			found = append(found, member(s.order, row))
		}
	}
	slices.Sort(found)
	from, to := s.ascending(len(found))
	return s.ids(found[from:to]), len(found), nil
}

// lex reads the members that a filter finds.
func (s *search) lex(ctx context.Context, f counted) ([]string, error) {
	out, err := s.db.rdb.ZRangeByLex(ctx, s.key(f.Filter.Column), stretchOf(f.Filter).by(0)).Result()
	return out, wrap("list", err)
}

// skip reads the page by its ranks, around those of the few that differ not.
func (s *search) skip(ctx context.Context) ([]string, int, error) {
	holes, err := s.holes(ctx)
	if err != nil {
		return nil, 0, err
	}
	total := s.width - len(holes)
	from, to := s.ascending(total)
	if from >= to {
		return nil, total, nil
	}
	first, last := around(holes, s.first+from), around(holes, s.first+to-1)
	members, err := s.ranks(ctx, first, last+1)
	kept := members[:0]
	for i, m := range members {
		if _, hole := slices.BinarySearch(holes, first+i); !hole {
			kept = append(kept, m)
		}
	}
	return s.ids(kept), total, err
}

// around is the rank of what has a place among those that are no holes.
func around(holes []int, place int) int {
	for _, h := range holes {
		if h > place {
			break
		}
		place++
	}
	return place
}

// holes are the ranks of the records in the window that are left out, ascending.
func (s *search) holes(ctx context.Context) ([]int, error) {
	out := map[string]bool{}
	for _, f := range s.rest {
		members, err := s.lex(ctx, f)
		if err != nil {
			return nil, err
		}
		for _, m := range members {
			if row := s.rowOf(f.column, m); s.within(row[s.order]) {
				out[member(s.order, row)] = true
			}
		}
	}
	var asked []*redis.IntCmd
	_, err := s.db.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for m := range out {
			asked = append(asked, p.ZRank(ctx, s.key(s.columns[s.order]), m))
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, wrap("list", err)
	}
	var holes []int
	for _, c := range asked {
		if c.Err() == nil { // else it was removed meanwhile
			holes = append(holes, int(c.Val()))
		}
	}
	slices.Sort(holes)
	return holes, nil
}

// walk reads the window in order, from the end that is nearer to the page.
func (s *search) walk(ctx context.Context) ([]string, int, error) {
	total, known := s.total()
	w := stroll{search: s, from: s.from, to: s.to, back: s.descending, enough: known, left: s.window}
	if known && s.from > total/2 {
		w.back = !w.back
		w.from, w.to = max(total-s.to, 0), max(total-s.from, 0)
	}
	if err := w.run(ctx); err != nil {
		return nil, 0, err
	}
	if !known {
		total = w.seen
	}
	if w.back != s.descending {
		slices.Reverse(w.ids)
	}
	return w.ids, total, nil
}

// stroll is a walk under way.
type stroll struct {
	*search
	from, to int // the page, counted from where the walk begins
	back     bool
	enough   bool // to find the page; else everything is counted
	left     stretch
	seen     int
	ids      []string
}

func (w *stroll) run(ctx context.Context) error {
	end, err := w.db.setOut(ctx)
	if err != nil {
		return err
	}
	defer end()
	for !w.enough || w.seen < w.to {
		piece, err := w.piece(ctx)
		if err != nil {
			return err
		}
		for _, m := range piece {
			row := w.rowOf(w.order, m)
			if !w.passes(row) {
				continue
			}
			if w.seen >= w.from && w.seen < w.to {
				w.ids = append(w.ids, row[0])
			}
			w.seen++
		}
		if len(piece) < walkPiece {
			break
		}
		w.cut(piece[len(piece)-1])
	}
	return nil
}

// maxQueued is how long a walk waits for its turn: requests have no deadline of
// their own.
const maxQueued = 5 * time.Second

// setOut waits for leave to walk.
func (d *DB) setOut(ctx context.Context) (end func(), err error) {
	timer := time.NewTimer(maxQueued)
	defer timer.Stop()
	select {
	case d.walks <- struct{}{}:
		return func() { <-d.walks }, nil
	case <-timer.C:
		return nil, relay.Errorf(relay.KindUnavailable, "list: too many long lists are being read")
	case <-ctx.Done():
		return nil, wrap("list", ctx.Err())
	}
}

// piece reads the next members.
func (w *stroll) piece(ctx context.Context) ([]string, error) {
	key, by := w.key(w.columns[w.order]), w.left.by(walkPiece)
	if w.back {
		out, err := w.db.rdb.ZRevRangeByLex(ctx, key, by).Result()
		return out, wrap("list", err)
	}
	out, err := w.db.rdb.ZRangeByLex(ctx, key, by).Result()
	return out, wrap("list", err)
}

// cut leaves out what was read, up to a member.
func (w *stroll) cut(last string) {
	if w.back {
		w.left.max = "(" + last
	} else {
		w.left.min = "(" + last
	}
}
