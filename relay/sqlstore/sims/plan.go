package sims

import (
	"context"
	"slices"

	"github.com/penstock/penstock/relay/sim"
	"github.com/penstock/penstock/relay/sqlstore"
)

// Limits of a plan.
const (
	maxGaps      = 1_000  // gaps: records that a Differs excludes
	maxUnlimited = 10_000 // records read without a permit of the readLimit
	maxScanned   = 2_000  // records scanned for a page before positions are cached
)

// search is a query over a list.
type search struct {
	listing
	lists
	version      *int64 // of the list, once it is known or assumed
	assumed      bool   // the version is that of a cached entry
	order        int
	bounds       keyRange // of the order's column
	boundsFilter []filter // the filter that bounds stands for, if any
	filters      []filter // the others
	from, to     int      // the page, in the requested order
	descending   bool
}

// search returns the search for a page of a list.
func (l listing) search(in lists, q sim.Query) *search {
	s := &search{listing: l, lists: in, order: q.Order(l.columns), from: q.Offset(), descending: q.Descending}
	s.bounds, s.to = fullRange(s.order), max(s.from, s.from+q.PerPage)
	return s
}

// page returns the selection of a page, nil if the page is empty, and the total.
//
// A page of all records, or of those that match a filter on the order's own
// column, is read from the nearest known position, skipping the gaps of a Differs.
// With any other filter the matching records are sorted, or the order is scanned
// from its nearer end, if either is a matter of few records. Otherwise their
// positions are read and cached, and the page is read from the nearest.
func (s *search) page(ctx context.Context, filters []sim.Filter) (*selection, int, error) {
	leads, err := s.splitFilters(ctx, filters)
	if err != nil {
		return nil, 0, err
	}
	if !leads {
		gaps, ok, err := s.gaps(ctx)
		if err != nil {
			return nil, 0, err
		}
		if ok {
			return s.pageFromPositions(ctx, gaps)
		}
	}
	return s.find(ctx)
}

// splitFilters sets bounds from the filter on the order's own column and adds the
// others to s.filters, without those that match all records. It reports whether
// one of these selects records by an index.
func (s *search) splitFilters(ctx context.Context, filters []sim.Filter) (leads bool, err error) {
	for _, f := range filters {
		one := filter{Filter: f, column: slices.Index(s.columns, f.Column)}
		if f.Match == sim.Differs {
			s.filters = append(s.filters, one)
			continue
		}
		if one.column == s.order {
			s.bounds, s.boundsFilter = rangeOf(one), []filter{one}
			continue
		}
		if one.found, err = s.size(ctx, rangeOf(one)); err != nil {
			return false, err
		}
		some, err := s.excludes(ctx, one.found)
		if err != nil {
			return false, err
		}
		if some {
			s.filters, leads = append(s.filters, one), true
		}
	}
	return leads, nil
}

// excludes reports whether a filter that matches found records excludes any. For
// few matches it returns true without counting.
func (s *search) excludes(ctx context.Context, found int) (bool, error) {
	if found <= maxCounted {
		return true, nil
	}
	all, err := s.size(ctx, fullRange(0))
	return found < all, err
}

// gaps returns the keys of the excluded records within bounds, in order; false if
// there are more than maxGaps.
func (s *search) gaps(ctx context.Context) ([]key, bool, error) {
	var out []key
	for _, f := range s.filters {
		some, err := s.inRange(rangeOf(f)).keys(ctx, s.db, s.order, maxGaps+1)
		if err != nil || len(some) > maxGaps {
			return nil, false, err
		}
		for _, k := range some {
			if k.compare(s.bounds.from) >= 0 && k.compare(s.bounds.to) < 0 {
				out = append(out, k)
			}
		}
	}
	slices.SortFunc(out, key.compare)
	return slices.Compact(out), true, nil
}

// pageFromPositions selects the page by the known positions, corrected for gaps.
func (s *search) pageFromPositions(ctx context.Context, gaps []key) (*selection, int, error) {
	positions, err := s.positions(ctx, s.bounds)
	if err != nil {
		return nil, 0, err
	}
	positions = slices.Clone(positions)
	for i := range positions {
		before, _ := slices.BinarySearchFunc(gaps, positions[i].key, key.compare)
		positions[i].index -= before
	}
	page, total := s.nearestPage(positions)
	return page, total, nil
}

// nearestPage selects the page from the nearest position; the last one is the end
// of the range.
func (s *search) nearestPage(positions []position) (*selection, int) {
	total := positions[len(positions)-1].index
	from, to := s.ascending(total)
	if from >= to {
		return nil, total
	}
	left, right := positions[0], positions[len(positions)-1]
	for _, p := range positions {
		if p.index <= from {
			left = p
		}
		if p.index >= to && p.index < right.index {
			right = p
		}
	}
	backwards := right.index-to < from-left.index
	r, skip := keyRange{s.order, left.key, s.bounds.to}, from-left.index
	if backwards {
		r, skip = keyRange{s.order, s.bounds.from, right.key}, right.index-to
	}
	q := s.inRange(r).filterBy(s.filters)
	return s.selection(q, q.ids(s.orderBy(s.order, backwards), to-from, skip)), total
}

func (s *search) selection(q *query, ids string) *selection {
	return &selection{query: q, ids: ids, order: s.orderBy(s.order, s.descending)}
}

// ascending returns the page in ascending order.
func (s *search) ascending(total int) (from, to int) {
	from, to = min(s.from, total), min(s.to, total)
	if s.descending {
		return total - to, total - from
	}
	return from, to
}

// size returns the number of records in a range.
func (s *search) size(ctx context.Context, r keyRange) (int, error) {
	if r == fullRange(r.column) {
		r.column = 0 // a short list has blocks of no other
	}
	positions, err := s.positions(ctx, r)
	if err != nil {
		return 0, err
	}
	return positions[len(positions)-1].index, nil
}

// lead returns the range with the fewest records, of bounds and of the filters'
// ranges, and the filters to check on each record.
func (s *search) lead(size int) (lead keyRange, found int, others []filter) {
	lead, found, others = s.bounds, size, s.filters
	for i, f := range s.filters {
		if f.Match != sim.Differs && f.found < found {
			lead, found = rangeOf(f), f.found
			others = append(slices.Delete(slices.Clone(s.filters), i, i+1), s.boundsFilter...)
		}
	}
	return lead, found, others
}

// find reads the records of the most selective filter, or scans the order.
func (s *search) find(ctx context.Context) (*selection, int, error) {
	size, err := s.size(ctx, s.bounds)
	if err != nil {
		return nil, 0, err
	}
	lead, found, others := s.lead(size)
	if found > maxCounted && (len(others) > 0 || lead.column == s.order || s.scanCost(size, found) > maxScanned) {
		return s.pageFromFound(ctx, lead, found, others)
	}
	total := found
	if len(others) > 0 {
		if total, err = s.inRange(lead).filterBy(others).count(ctx, s.db); err != nil {
			return nil, 0, err
		}
	}
	from, to := min(s.from, total), min(s.to, total)
	if from == to {
		return nil, total, nil
	}
	if found > maxCounted || lead.column == s.order {
		page, total := s.nearestPage([]position{{s.bounds.from, 0}, {s.bounds.to, total}})
		return page, total, nil
	}
	q := s.inRange(lead).filterBy(others)
	return s.selection(q, q.sorted(s.orderBy(s.order, s.descending), to-from, from)), total, nil
}

// scanCost is how many of so many records in order a page takes from the nearer end
// of them if it has total of them.
func (s *search) scanCost(size, total int) float64 {
	to := min(s.to, total)
	return float64(min(to, total-min(s.from, total))) * float64(size) / float64(max(total, 1))
}

// pageFromFound reads a page by the positions of the records found.
func (s *search) pageFromFound(ctx context.Context, lead keyRange, found int, others []filter) (*selection, int, error) {
	e, err := s.sample(ctx, lead, found, others)
	if err != nil {
		return nil, 0, err
	}
	if !e.exact {
		page, total := s.nearestPage(e.positions)
		return page, total, nil
	}
	total := len(e.positions) - 1
	from, to := s.ascending(total)
	if from >= to {
		return nil, total, nil
	}
	q := &query{listing: s.listing}
	q.Arg(s.account)
	page := s.selection(q, "SELECT id AS chosen FROM batch")
	page.batch = sqlstore.BatchOf("id", e.positions[from:to], func(p *position) []any { return []any{p.key.id} })
	return page, total, nil
}
