package sims

import (
	"context"
	"slices"

	"github.com/penstock/penstock/relay/sim"
	"github.com/penstock/penstock/relay/sqlstore"
)

// What a plan may read.
const (
	maxHoles  = 1_000   // records that a Differs leaves out, by their places
	maxSorted = 100_000 // records that are sorted for a page
	sortCost  = 8       // what sorting a record costs, in records that a walk reads
	maxFree   = 10_000  // records that are read without waiting for a turn
)

// search is a query over a list.
type search struct {
	listing
	db       *sqlstore.DB
	turns    turns
	order    int
	window   span     // of the order's column
	own      []filter // the one that the window stands for, if there is one
	rest     []filter // the others
	from, to int      // the page, in the order asked for
	down     bool
}

// page returns the ids of a page and how many records the whole has.
//
// A page of all records, or of those that a filter on the order's own column finds,
// is read from the nearest place that is known, around the few that a Differs
// leaves out. Any other filter leads to the records it finds, which are sorted, or
// to a walk along the order from its nearer end, whichever costs less.
func (l listing) page(ctx context.Context, db *sqlstore.DB, t turns, q sim.Query) ([]string, int, error) {
	s := search{listing: l, db: db, turns: t, order: q.Order(l.columns), from: q.Offset(), down: q.Descending}
	s.window, s.to = whole(s.order), max(s.from, s.from+q.PerPage)
	leads, err := s.sift(ctx, q.Filters)
	if err != nil {
		return nil, 0, err
	}
	if !leads {
		holes, few, err := s.holes(ctx)
		if err != nil {
			return nil, 0, err
		}
		if few {
			return s.around(ctx, holes)
		}
	}
	return s.find(ctx)
}

// sift makes the filter on the order's own column the window, and the others
// the rest, without those that all records pass. It reports whether one of the rest
// leads to records.
func (s *search) sift(ctx context.Context, filters []sim.Filter) (leads bool, err error) {
	for _, f := range filters {
		one := filter{Filter: f, column: slices.Index(s.columns, f.Column)}
		if f.Match == sim.Differs {
			s.rest = append(s.rest, one)
			continue
		}
		if one.column == s.order {
			s.window, s.own = spanOf(one), []filter{one}
			continue
		}
		if one.found, err = s.size(ctx, spanOf(one)); err != nil {
			return false, err
		}
		some, err := s.leavesOut(ctx, one.found)
		if err != nil {
			return false, err
		}
		if some {
			s.rest, leads = append(s.rest, one), true
		}
	}
	return leads, nil
}

// leavesOut reports whether a filter that finds so many leaves out any; of few
// that is not worth asking.
func (s *search) leavesOut(ctx context.Context, found int) (bool, error) {
	if found <= maxCounted {
		return true, nil
	}
	all, err := s.size(ctx, whole(0))
	return found < all, err
}

// holes returns the places of the records in the window that are left out, in
// order; false if they are many.
func (s *search) holes(ctx context.Context) ([]key, bool, error) {
	var out []key
	for _, f := range s.rest {
		some, err := s.over(spanOf(f)).keys(ctx, s.db, s.order, maxHoles+1)
		if err != nil || len(some) > maxHoles {
			return nil, false, err
		}
		for _, k := range some {
			if k.compare(s.window.from) >= 0 && k.compare(s.window.to) < 0 {
				out = append(out, k)
			}
		}
	}
	slices.SortFunc(out, key.compare)
	return slices.Compact(out), true, nil
}

// around reads the page from a place that is known.
func (s *search) around(ctx context.Context, holes []key) ([]string, int, error) {
	places, err := s.anchors(ctx, s.db, s.window)
	if err != nil {
		return nil, 0, err
	}
	for i := range places {
		before, _ := slices.BinarySearchFunc(holes, places[i].key, key.compare)
		places[i].at -= before
	}
	return s.read(ctx, places)
}

// read reads the page from the nearest of places, the last of which is the end.
func (s *search) read(ctx context.Context, places []anchor) ([]string, int, error) {
	total := places[len(places)-1].at
	from, to := s.ascending(total)
	if from >= to {
		return nil, total, nil
	}
	left, right := places[0], places[len(places)-1]
	for _, p := range places {
		if p.at <= from {
			left = p
		}
		if p.at >= to && p.at < right.at {
			right = p
		}
	}
	back := right.at-to < from-left.at
	part, skip := span{s.order, left.key, s.window.to}, from-left.at
	if back {
		part, skip = span{s.order, s.window.from, right.key}, right.at-to
	}
	ids, err := s.over(part).pass(s.rest).ids(ctx, s.db, s.by(s.order, back), to-from, skip)
	if back != s.down {
		slices.Reverse(ids)
	}
	return ids, total, err
}

// ascending turns a page of a total around if the order is descending.
func (s *search) ascending(total int) (from, to int) {
	from, to = min(s.from, total), min(s.to, total)
	if s.down {
		return total - to, total - from
	}
	return from, to
}

// size is how many records a span has.
func (s *search) size(ctx context.Context, of span) (int, error) {
	places, err := s.anchors(ctx, s.db, of)
	if err != nil {
		return 0, err
	}
	return places[len(places)-1].at, nil
}

// lead returns the span that has the fewest records, of the window and of what
// filters find, with the filters that are left to try on each.
func (s *search) lead(width int) (lead span, found int, others []filter) {
	lead, found, others = s.window, width, s.rest
	for i, f := range s.rest {
		if f.Match != sim.Differs && f.found < found {
			lead, found = spanOf(f), f.found
			others = append(slices.Delete(slices.Clone(s.rest), i, i+1), s.own...)
		}
	}
	return lead, found, others
}

// find sorts what the filter that finds the fewest leads to, or walks.
func (s *search) find(ctx context.Context) ([]string, int, error) {
	width, err := s.size(ctx, s.window)
	if err != nil {
		return nil, 0, err
	}
	lead, found, others := s.lead(width)
	if found > maxFree {
		end, err := s.turns.take(ctx)
		if err != nil {
			return nil, 0, err
		}
		defer end()
	}
	total := found
	if len(others) > 0 {
		if total, err = s.over(lead).pass(others).count(ctx, s.db); err != nil {
			return nil, 0, err
		}
	}
	from, to := min(s.from, total), min(s.to, total)
	if from == to {
		return nil, total, nil
	}
	walk := float64(min(to, total-from)) * float64(width) / float64(total)
	if lead.column == s.order || found > maxSorted || float64(found)*sortCost > walk {
		return s.read(ctx, []anchor{{s.window.from, 0}, {s.window.to, total}})
	}
	ids, err := s.over(lead).pass(others).sorted(ctx, s.db, s.by(s.order, s.down), to-from, from)
	return ids, total, err
}
