package sims

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/penstock/penstock/relay/sqlstore"
)

const (
	maxKnown  = 100_000 // positions remembered, of some 80 bytes each
	entrySize = 16      // what an entry takes beside its positions, in positions
	maxAll    = 10_000  // records of a query of which each is remembered
	maxSteps  = 2_048   // positions of a query with more records
)

// known remembers the positions of queries, least recently used ones first to go.
// Pages are asked for one after the other, and a page far into a list, or of what
// several filters find, takes a scan. The positions of a list hold until its version
// changes, which the database says.
type known struct {
	mu      sync.Mutex
	entries map[string]*entry
	size    int
	clock   int
}

// entry is the positions of a query in one version of its list.
type entry struct {
	positions []position
	all       bool // a position for each record, at its key, and one for the end
	version   int64
	used      int
}

func newKnown() *known { return &known{entries: make(map[string]*entry)} }

// get returns the entry of a query, of any version; nil if there is none.
func (k *known) get(query string) *entry {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.entries[query]
	if e != nil {
		k.clock++
		e.used = k.clock
	}
	return e
}

// put remembers an entry.
func (k *known) put(query string, e *entry) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forget(query)
	k.clock++
	e.used = k.clock
	k.entries[query], k.size = e, k.size+len(e.positions)+entrySize
	for k.size > maxKnown && len(k.entries) > 1 {
		oldest := ""
		for name, other := range k.entries {
			if oldest == "" || other.used < k.entries[oldest].used {
				oldest = name
			}
		}
		k.forget(oldest)
	}
}

func (k *known) forget(query string) {
	if e := k.entries[query]; e != nil {
		delete(k.entries, query)
		k.size -= len(e.positions) + entrySize
	}
}

const selectVersion = `
SELECT version FROM sim_block WHERE account = $1 AND list = $2 AND col = 0 AND start = ''`

// listVersion is the version of the list, read once a search.
func (s *search) listVersion(ctx context.Context) (int64, error) {
	if s.version != nil {
		return *s.version, nil
	}
	v, err := sqlstore.OrZero(sqlstore.Value[int64](ctx, s.db, "list "+s.name, selectVersion, s.account, s.name))
	if err == nil {
		s.version = &v
	}
	return v, err
}

// remembered returns the entry of a query in the present version of the list, nil if
// there is none.
func (s *search) remembered(ctx context.Context, query string) (*entry, error) {
	e := s.known.get(query)
	if e == nil {
		return nil, nil
	}
	version, err := s.listVersion(ctx)
	if err != nil || e.version != version {
		return nil, err
	}
	return e, nil
}

// remember keeps the positions that read returns. The version is read before them: if
// the list changes in between, no later search has that version.
func (s *search) remember(ctx context.Context, query string, read func() (*entry, error)) (*entry, error) {
	version, err := s.listVersion(ctx)
	if err != nil {
		return nil, err
	}
	e, err := read()
	if err != nil {
		return nil, err
	}
	e.version = version
	s.known.put(query, e)
	return e, nil
}

// nameOf names the query for the records of a range that pass filters.
func (s *search) nameOf(r keyRange, filters []filter) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s %s %d %q %q", s.account, s.table, s.name, r.column, r.from.text(), r.to.text())
	for _, f := range filters {
		fmt.Fprintf(&b, " %d %d %q", f.column, f.Match, f.Value)
	}
	return b.String()
}

// places returns the positions of the records of a range that pass filters, in the
// search's order: of each record, or of some that stand as far apart as the others.
func (s *search) places(ctx context.Context, lead keyRange, found int, others []filter) (*entry, error) {
	query := fmt.Sprintf("%d of %s", s.order, s.nameOf(lead, others))
	if e, err := s.remembered(ctx, query); e != nil || err != nil {
		return e, err
	}
	if found > maxUnlimited {
		release, err := s.limit.acquire(ctx)
		if err != nil {
			return nil, err
		}
		defer release()
		if e, err := s.remembered(ctx, query); e != nil || err != nil { // another one has read it meanwhile
			return e, err
		}
	}
	return s.remember(ctx, query, func() (*entry, error) {
		return s.inRange(lead).filterBy(others).places(ctx, s.db, s.order, s.bounds)
	})
}

// lineEnd stands between the keys of many records in one text. No value holds it.
const lineEnd = "\n"

// places reads the positions of the selected records in the order of a column. Their
// keys come as one text and are sorted here: that takes a quarter of the time in which
// the engine numbers the rows, and rows as such cost more than their keys.
func (q *query) places(ctx context.Context, c sqlstore.Conn, column int, bounds keyRange) (*entry, error) {
	text := fmt.Sprintf("SELECT COALESCE(string_agg(%s || CAST(%s AS TEXT) || %s, CAST(%s AS TEXT)), '') FROM %s WHERE %s",
		q.columns[column], q.arg(separator), q.columns[0], q.arg(lineEnd), q.table, &q.where)
	joined, err := sqlstore.Value[string](ctx, c, "list "+q.name, text, q.args...)
	if err != nil {
		return nil, err
	}
	if joined == "" {
		return &entry{positions: []position{{bounds.from, 0}, {bounds.to, 0}}}, nil
	}
	keys := strings.Split(joined, lineEnd)
	slices.Sort(keys)
	step := 1
	if len(keys) > maxAll {
		step = len(keys) / maxSteps
	}
	positions := make([]position, 0, len(keys)/step+2)
	for i := 0; i < len(keys); i += step {
		positions = append(positions, position{keyOf(strings.Clone(keys[i])), i})
	}
	return &entry{positions: append(positions, position{bounds.to, len(keys)}), all: step == 1}, nil
}
