package sims

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/sqlstore"
)

const (
	maxCached  = 100_000 // positions, of some 80 bytes each
	entrySize  = 16      // size of an entry without its positions, in positions
	maxExact   = 10_000  // records of a query up to which each has a position
	maxSampled = 2_048   // positions of a query with more records, at equal distances
)

// positionCache keeps positions in the results of queries and evicts the least recently
// used: a client reads page after page, and a page far into a list, or of what several
// filters find, takes a scan. The positions of a list are valid until its version in
// the database changes.
type positionCache struct {
	mu      sync.Mutex
	entries map[string]*entry
	size    int
	clock   int
}

// entry is the positions of a query in one version of its list.
type entry struct {
	positions []position
	exact     bool // a position for each record, at its key, and one for the end
	version   int64
	used      int
}

func newPositionCache() *positionCache { return &positionCache{entries: make(map[string]*entry)} }

// get returns the entry of a query, of any version; nil if there is none.
func (k *positionCache) get(query string) *entry {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.entries[query]
	if e != nil {
		k.clock++
		e.used = k.clock
	}
	return e
}

// put adds or replaces an entry.
func (k *positionCache) put(query string, e *entry) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.evict(query)
	k.clock++
	e.used = k.clock
	k.entries[query], k.size = e, k.size+len(e.positions)+entrySize
	for k.size > maxCached && len(k.entries) > 1 {
		oldest := ""
		for name, other := range k.entries {
			if oldest == "" || other.used < k.entries[oldest].used {
				oldest = name
			}
		}
		k.evict(oldest)
	}
}

func (k *positionCache) evict(query string) {
	if e := k.entries[query]; e != nil {
		delete(k.entries, query)
		k.size -= len(e.positions) + entrySize
	}
}

// errChanged says that a list has another version than a search assumed.
var errChanged = errors.New("the list has changed")

// listVersion selects the version of the list.
func (l listing) listVersion(w *sqlstore.Where) string {
	return "SELECT version FROM sim_block WHERE account = " + w.Arg(l.account) + " AND list = " + w.Arg(l.name) + " AND col = 0 AND start = ''"
}

// confirm reads the version of the list; errChanged if the search has used entries of
// another version.
func (s *search) confirm(ctx context.Context) error {
	if s.version != nil && !s.assumed {
		return nil
	}
	var w sqlstore.Where
	text := s.listVersion(&w)
	v, err := sqlstore.OrZero(sqlstore.Value[int64](ctx, s.db, "list "+s.name, text, w.Args()...))
	if err != nil {
		return err
	}
	if s.assumed && *s.version != v {
		return errChanged
	}
	s.version, s.assumed = &v, false
	return nil
}

// cached returns the entry of a query in the present version of the list, nil if
// there is none. The first entry that a search finds is assumed to be of the present
// version, until confirm or the page itself tells.
func (s *search) cached(ctx context.Context, query string) (*entry, error) {
	e := s.cache.get(query)
	switch {
	case e == nil:
		return nil, nil
	case s.version == nil:
		s.version, s.assumed = &e.version, true
	case e.version != *s.version:
		return nil, s.confirm(ctx)
	}
	return e, nil
}

// fill caches the positions that read returns. The version is read before them: if
// the list changes in between, no later search has that version.
func (s *search) fill(ctx context.Context, query string, read func() (*entry, error)) (*entry, error) {
	if err := s.confirm(ctx); err != nil {
		return nil, err
	}
	e, err := read()
	if err != nil {
		return nil, err
	}
	e.version = *s.version
	s.cache.put(query, e)
	return e, nil
}

// cacheKey identifies the query for the records of a range that pass filters.
func (s *search) cacheKey(r keyRange, filters []filter) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s %s %d %q %q", s.account, s.table, s.name, r.column, r.from.text(), r.to.text())
	for _, f := range filters {
		fmt.Fprintf(&b, " %d %d %q", f.column, f.Match, f.Value)
	}
	return b.String()
}

// sample returns the positions of the records of a range that pass filters, in the
// search's order: of each record, or of some that stand as far apart as the others.
func (s *search) sample(ctx context.Context, lead keyRange, found int, others []filter) (*entry, error) {
	query := fmt.Sprintf("%d of %s", s.order, s.cacheKey(lead, others))
	if e, err := s.cached(ctx, query); e != nil || err != nil {
		return e, err
	}
	if found > maxUnlimited {
		release, err := s.limit.acquire(ctx)
		if err != nil {
			return nil, err
		}
		defer release()
		if e, err := s.cached(ctx, query); e != nil || err != nil { // another request has read it meanwhile
			return e, err
		}
	}
	return s.fill(ctx, query, func() (*entry, error) {
		return s.inRange(lead).filterBy(others).sample(ctx, s.db, s.order, s.bounds)
	})
}

// keyEnd stands between the keys of many records in one text. No value holds it.
const keyEnd = "\n"

// sample reads the positions of the selected records in the order of a column. Their
// keys come as one text and are sorted here: that takes a quarter of the time in which
// the engine numbers the rows, and rows as such cost more than their keys.
func (q *query) sample(ctx context.Context, c sqlstore.Conn, column int, bounds keyRange) (*entry, error) {
	text := fmt.Sprintf("SELECT COALESCE(string_agg(%s || CAST(%s AS TEXT) || %s, CAST(%s AS TEXT)), '') FROM %s%s",
		q.columns[column], q.Arg(separator), q.columns[0], q.Arg(keyEnd), q.table, q.Where.String())
	joined, err := sqlstore.Value[string](ctx, c, "list "+q.name, text, q.Args()...)
	if err != nil {
		return nil, err
	}
	if joined == "" {
		return &entry{positions: []position{{bounds.from, 0}, {bounds.to, 0}}}, nil
	}
	keys := strings.Split(joined, keyEnd)
	slices.Sort(keys)
	step := 1
	if len(keys) > maxExact {
		step = len(keys) / maxSampled
	}
	positions := make([]position, 0, len(keys)/step+2)
	for i := 0; i < len(keys); i += step {
		positions = append(positions, position{keyOf(strings.Clone(keys[i])), i})
	}
	return &entry{positions: append(positions, position{bounds.to, len(keys)}), exact: step == 1}, nil
}

// Reads of long lists are limited, so that other queries find a connection.
const (
	maxConcurrentReads = 2
	maxWait            = 5 * time.Second // requests have no deadline of their own
)

// readLimit is the concurrency limit for reads of long lists.
type readLimit chan struct{}

// acquire waits for a permit, at most maxWait.
func (l readLimit) acquire(ctx context.Context) (release func(), err error) {
	timer := time.NewTimer(maxWait)
	defer timer.Stop()
	select {
	case l <- struct{}{}:
		return func() { <-l }, nil
	case <-timer.C:
		return nil, relay.Errorf(relay.KindUnavailable, "list: too many long lists are being read")
	case <-ctx.Done():
		return nil, relay.Errorf(relay.KindUnavailable, "list: %w", ctx.Err())
	}
}
