package redisstore

import (
	"context"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay/sim"
)

// listing is the indexes of one list: a sorted set for each column, all scores 0,
// so that members are in the order of their bytes. A member is a record's value
// of that column, its id, and its other values, with separators between: so each
// set tells every column, and what holds a value, or begins with one, stands
// together. Columns are few and their values short; columns[0] is the id.
//
// A page without filters, or with one on the column it is ordered by, is two
// ranks of a set. What Differs are few, and are left out by their ranks. Any
// other filter leads to the records it finds, which are sorted here, or to a walk
// through the order, whichever reads less; a walk reads pieces, and is over when
// the page is full and the total known from the filter's own set.
type listing struct {
	db      *DB
	columns []string
	key     func(column string) string
}

// separator stands between the values of a member. No value holds it, and all
// that values hold comes after it.
const separator = "\x1f"

// What a plan may read at a time.
const (
	walkPiece  = 5_000   // members of a walk
	maxSkipped = 1_000   // records that are left out by their ranks
	maxSorted  = 100_000 // records that are sorted here
	maxWalks   = 2       // walks at one time, of all lists
)

// member writes a row, whose values are in the order of the columns, as the set
// of a column has it.
func member(column int, row []string) string {
	if column == 0 {
		return strings.Join(row, separator)
	}
	values := make([]string, 0, len(row))
	values = append(values, row[column], row[0])
	for i := 1; i < len(row); i++ {
		if i != column {
			values = append(values, row[i])
		}
	}
	return strings.Join(values, separator)
}

// rowOf reads what member wrote. What is no member is a row of nothing.
func (l listing) rowOf(column int, text string) []string {
	values := strings.Split(text, separator)
	if len(values) != len(l.columns) {
		return make([]string, len(l.columns))
	}
	if column == 0 {
		return values
	}
	row := make([]string, 0, len(values))
	row = append(row, values[1])
	rest := values[2:]
	for i := 1; i < len(l.columns); i++ {
		if i == column {
			row = append(row, values[0])
		} else {
			row, rest = append(row, rest[0]), rest[1:]
		}
	}
	return row
}

// idOf reads the id alone.
func idOf(column int, text string) string {
	first, rest, _ := strings.Cut(text, separator)
	if column == 0 {
		return first
	}
	id, _, _ := strings.Cut(rest, separator)
	return id
}

// stretch is a run of members, in the terms of ZRANGEBYLEX.
type stretch struct{ min, max string }

// by asks for the first count members of a run; 0: all.
func (r stretch) by(count int64) *redis.ZRangeBy {
	return &redis.ZRangeBy{Min: r.min, Max: r.max, Count: count}
}

// whole is every member.
func whole() stretch { return stretch{"-", "+"} }

// stretchOf is where what a filter finds, or leaves out, stands in its column's set.
func stretchOf(f sim.Filter) stretch {
	if f.Match == sim.Begins {
		return stretch{"[" + f.Value, "(" + f.Value + "\xff"}
	}
	return stretch{"[" + f.Value + separator, "(" + f.Value + " "}
}

// counted is a filter, its column's index, and how many members its run has.
type counted struct {
	sim.Filter
	column, found int
}

// search is a query over a listing with what had to be counted.
type search struct {
	listing
	order, size int // the column of the order; members of any set
	first       int // the rank at which the window begins
	window      stretch
	width       int // members of the window
	rest        []counted
	from, to    int // the page, in the order asked for
	descending  bool
}

// page returns the ids of a page and the total of the list.
func (l listing) page(ctx context.Context, q sim.Query) ([]string, int, error) {
	s := search{listing: l, order: q.Order(l.columns), window: whole(), from: q.Offset(), descending: q.Descending}
	s.to = s.from + q.PerPage
	if s.to < s.from {
		s.to = s.from
	}
	filters, err := s.count(ctx, q.Filters)
	if err != nil || s.width == 0 {
		return nil, 0, err
	}
	return s.plan(ctx, filters)
}

// count asks how many members each set and run has, in one round trip, and makes
// the filter on the order's own column the window. It returns the other filters,
// without those that change nothing; a width of 0 says that nothing is found.
func (s *search) count(ctx context.Context, filters []sim.Filter) ([]counted, error) {
	var size, first *redis.IntCmd
	found := make([]*redis.IntCmd, len(filters))
	order := s.key(s.columns[s.order])
	_, err := s.db.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		size = p.ZCard(ctx, order)
		for i, f := range filters {
			r := stretchOf(f)
			found[i] = p.ZLexCount(ctx, s.key(f.Column), r.min, r.max)
			if f.Column == s.columns[s.order] && f.Match != sim.Differs {
				first = p.ZLexCount(ctx, order, "-", "("+r.min[1:])
			}
		}
		return nil
	})
	if err != nil {
		return nil, wrap("list", err)
	}
	s.size = int(size.Val())
	s.width = s.size
	var rest []counted
	for i, f := range filters {
		n := int(found[i].Val())
		switch {
		case f.Match != sim.Differs && n == 0, f.Match == sim.Differs && n == s.size:
			s.width = 0
			return nil, nil
		case f.Match != sim.Differs && n == s.size, f.Match == sim.Differs && n == 0:
		case f.Match != sim.Differs && f.Column == s.columns[s.order]:
			s.first, s.width, s.window = int(first.Val()), n, stretchOf(f)
		default:
			rest = append(rest, counted{f, slices.Index(s.columns, f.Column), n})
		}
	}
	return rest, nil
}

// ascending turns a page of a total around if the order is descending.
func (s *search) ascending(total int) (from, to int) {
	from, to = min(s.from, total), min(s.to, total)
	if s.descending {
		return total - to, total - from
	}
	return from, to
}

// ids are those of members in ascending order, turned to the order asked for.
func (s *search) ids(members []string) []string {
	out := make([]string, len(members))
	for i, m := range members {
		out[i] = idOf(s.order, m)
	}
	if s.descending {
		slices.Reverse(out)
	}
	return out
}

// ranks reads the members of the order's set from one rank to another.
func (s *search) ranks(ctx context.Context, from, to int) ([]string, error) {
	if from >= to {
		return nil, nil
	}
	out, err := s.db.rdb.ZRange(ctx, s.key(s.columns[s.order]), int64(from), int64(to-1)).Result()
	return out, wrap("list", err)
}
