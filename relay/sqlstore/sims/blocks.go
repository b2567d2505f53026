package sims

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/sqlstore"
)

// blockSize is how many records a new block has; it is split at twice that. A page
// reads all blocks of a column and scans at most half a block.
const blockSize = 2048

// block is the number of records from its start to the start of the next block.
type block struct {
	start, end key
	n          int
}

// blocks returns the blocks that overlap a range, in order. A short list has one
// block, that of the first column.
func (l listing) blocks(ctx context.Context, c sqlstore.Conn, r keyRange) ([]block, error) {
	// The blocks that overlap a range, and the one after it, which ends the last.
	out, err := sqlstore.List(ctx, c, "list "+l.name, `
SELECT start, n FROM sim_block
WHERE account = $1 AND list = $2 AND col = $3
  AND start >= COALESCE((
    SELECT b.start FROM sim_block b
    WHERE b.account = $4 AND b.list = $5 AND b.col = $6 AND b.start <= $7
    ORDER BY b.start DESC LIMIT 1), '')
  AND start <= COALESCE((
    SELECT b.start FROM sim_block b
    WHERE b.account = $8 AND b.list = $9 AND b.col = $10 AND b.start >= $11
    ORDER BY b.start LIMIT 1), $12)
ORDER BY start`, func(b *block) []any {
		var start string
		return []any{&start, &b.n, func() { b.start, b.end = keyOf(start), endKey() }}
	}, l.account, l.name, r.column, l.account, l.name, r.column, r.from.text(), l.account, l.name, r.column, r.to.text(), maxText)
	if err != nil {
		return nil, err
	}
	if len(out) == 0 && r.column > 0 {
		n, err := sqlstore.Value[int](ctx, c, "list "+l.name, `
SELECT CAST(COALESCE(sum(n), 0) AS BIGINT) FROM sim_block WHERE account = $1 AND list = $2 AND col = 0`, l.account, l.name)
		return []block{{end: endKey(), n: n}}, err
	}
	for i := range len(out) - 1 {
		out[i].end = out[i+1].start
	}
	if last := len(out) - 1; last >= 0 && out[last].start.compare(r.to) >= 0 {
		out = out[:last]
	}
	return out, nil
}

// position is a known position in a range: index is the number of its records
// before a key.
type position struct {
	key   key
	index int
}

// maxCounted is how many records are counted before blocks are used.
const maxCounted = 500

// positions returns the known positions in a range, in order: its two ends and the
// starts of blocks. The index of the last one is the size of the range.
func (s *search) positions(ctx context.Context, r keyRange) ([]position, error) {
	query := s.cacheKey(r, nil)
	e, err := s.cached(ctx, query)
	if err != nil {
		return nil, err
	}
	if e == nil && r != fullRange(r.column) {
		n, err := s.inRange(r).countTo(ctx, s.db, maxCounted+1)
		if err != nil || n <= maxCounted {
			return []position{{r.from, 0}, {r.to, n}}, err
		}
	}
	if e == nil {
		e, err = s.fill(ctx, query, func() (*entry, error) {
			positions, err := s.starts(ctx, s.db, r)
			return &entry{positions: positions}, err
		})
	}
	if err != nil {
		return nil, err
	}
	return e.positions, nil
}

// starts reads the positions of a range from blocks.
func (l listing) starts(ctx context.Context, c sqlstore.Conn, r keyRange) ([]position, error) {
	blocks, err := l.blocks(ctx, c, r)
	if err != nil {
		return nil, err
	}
	out := []position{{key: r.from}}
	index := 0
	for _, b := range blocks {
		n, part := b.n, keyRange{r.column, slices.MaxFunc([]key{b.start, r.from}, key.compare), slices.MinFunc([]key{b.end, r.to}, key.compare)}
		if part.from != b.start || part.to != b.end {
			if n, err = l.countPart(ctx, c, b, part); err != nil {
				return nil, err
			}
		}
		index += n
		out = append(out, position{part.to, index})
	}
	return out, nil
}

// countPart returns the number of records in a part of a block. It counts those
// outside of the part if they are fewer: a filter may match nearly all records.
func (l listing) countPart(ctx context.Context, c sqlstore.Conn, b block, part keyRange) (int, error) {
	outside := 0
	for _, rest := range []keyRange{{part.column, b.start, part.from}, {part.column, part.to, b.end}} {
		if rest.from == rest.to {
			continue
		}
		n, err := l.inRange(rest).countTo(ctx, c, b.n/2+1)
		if err != nil {
			return 0, err
		}
		outside += n
	}
	if outside <= b.n/2 {
		return b.n - outside, nil
	}
	// A part has no more than its block, which PostgreSQL cannot know: it expects a
	// fifth of the table between two keys, and starts workers to count that.
	return l.inRange(part).countTo(ctx, c, b.n)
}

// change is a record that was added to a list, removed from it or moved in it: the
// values of its columns before and after, nil for none.
type change struct {
	in      listing
	was, is []string
}

// blockKey is a key that a block counts.
type blockKey struct {
	list   string
	column int
	key    key
}

// recount updates the counts of lists after their records were saved. It locks the
// lists until the end of the transaction; size is that of a block.
func recount(ctx context.Context, tx *sqlstore.Tx, acct account.ID, size int, changes []change) error {
	deltas, lists := make(map[blockKey]int), make(map[string]listing)
	for _, c := range changes {
		if slices.Equal(c.was, c.is) {
			continue
		}
		lists[c.in.name] = c.in
		for column := range c.in.columns {
			if c.was != nil {
				deltas[blockKey{c.in.name, column, key{c.was[column], c.was[0]}}]--
			}
			if c.is != nil {
				deltas[blockKey{c.in.name, column, key{c.is[column], c.is[0]}}]++
			}
		}
	}
	if err := lock(ctx, tx, acct, lists); err != nil {
		return err
	}
	counted, err := addToCounts(ctx, tx, acct, deltas)
	if err != nil {
		return err
	}
	for _, b := range counted {
		if b.n > 2*size {
			if err := lists[b.list].split(ctx, tx, b, size); err != nil {
				return err
			}
		}
	}
	return nil
}

// The rows are locked in the order of their names before any is changed.
const lockLists = `
WITH locked AS MATERIALIZED (
  SELECT account, list FROM sim_block
  WHERE account = $1 AND col = 0 AND start = '' AND list IN (SELECT name FROM batch)
  ORDER BY list {for update}
)
UPDATE sim_block SET version = $2 FROM locked
WHERE sim_block.account = locked.account AND sim_block.list = locked.list AND sim_block.col = 0 AND sim_block.start = ''
RETURNING sim_block.list`

// lock locks lists by their first blocks, gives them a new version and creates
// missing ones.
func lock(ctx context.Context, tx *sqlstore.Tx, acct account.ID, lists map[string]listing) error {
	names := sqlstore.Column("name", slices.Collect(maps.Keys(lists)))
	version := rand.Int64() //nolint:gosec // no secret
	locked, err := sqlstore.Values[string](ctx, tx, "lists", lockLists, acct, version, names)
	if err != nil || len(locked) == len(lists) {
		return err
	}
	if err := tx.Run(ctx, "lists", `
INSERT INTO sim_block (account, list, col, start, n)
SELECT $1, name, 0, '', 0 FROM batch WHERE true ORDER BY name
ON CONFLICT (account, list, col, start) DO NOTHING`, acct, names); err != nil {
		return err
	}
	_, err = sqlstore.Values[string](ctx, tx, "lists", lockLists, acct, version, names)
	return err
}

// counted is a block that was changed.
type counted struct {
	list, start string
	column, n   int
}

// addToCounts adds deltas to the counts of blocks and returns the changed blocks.
func addToCounts(ctx context.Context, tx *sqlstore.Tx, acct account.ID, deltas map[blockKey]int) ([]counted, error) {
	b := sqlstore.NewBatch("list, col, key, d")
	for p, d := range deltas {
		if d != 0 {
			b.Add(p.list, p.column, p.key.text(), d)
		}
	}
	// The account is a column of delta, or SQLite would look at all its blocks.
	out, err := sqlstore.List(ctx, tx, "lists", `
WITH delta AS (
  SELECT CAST($1 AS BIGINT) AS account, list, col, (
    SELECT b.start FROM sim_block b
    WHERE b.account = $2 AND b.list = batch.list AND b.col = batch.col AND b.start <= batch.key
    ORDER BY b.start DESC LIMIT 1
  ) AS start, CAST(sum(batch.d) AS BIGINT) AS d
  FROM batch GROUP BY 2, 3, 4
)
UPDATE sim_block SET n = n + delta.d FROM delta
WHERE sim_block.account = delta.account AND sim_block.list = delta.list
  AND sim_block.col = delta.col AND sim_block.start = delta.start
RETURNING sim_block.list, sim_block.col, sim_block.start, sim_block.n`, func(c *counted) []any {
		return []any{&c.list, &c.column, &c.start, &c.n}
	}, acct, acct, b)
	slices.SortFunc(out, func(a, b counted) int { return strings.Compare(a.list+separator+a.start, b.list+separator+b.start) })
	for _, c := range out {
		if c.n < 0 {
			return nil, relay.Errorf(relay.KindUnexpected, "account %s: list %q has %d records at %q", acct, c.list, c.n, c.start)
		}
	}
	return out, err
}

// split divides a block that is too long. A list that was short also gets blocks
// of its other columns. The list must be locked and its changes counted.
func (l listing) split(ctx context.Context, tx *sqlstore.Tx, c counted, size int) error {
	columns := []int{c.column}
	if c.column == 0 && c.start == "" {
		b := sqlstore.NewBatch("col")
		for column := 1; column < len(l.columns); column++ {
			b.Add(column)
		}
		fresh, err := sqlstore.Values[int](ctx, tx, "list "+l.name, `
INSERT INTO sim_block (account, list, col, start, n)
SELECT $1, $2, col, '', $3 FROM batch WHERE true
ON CONFLICT (account, list, col, start) DO NOTHING
RETURNING col`, l.account, l.name, c.n, b)
		if err != nil {
			return err
		}
		columns = append(columns, fresh...)
	}
	for _, column := range columns {
		if err := l.divide(ctx, tx, column, c, size); err != nil {
			return err
		}
	}
	return nil
}

// divide replaces a block with blocks of about the same size.
func (l listing) divide(ctx context.Context, tx *sqlstore.Tx, column int, c counted, size int) error {
	next, err := sqlstore.Values[string](ctx, tx, "list "+l.name, `
SELECT start FROM sim_block
WHERE account = $1 AND list = $2 AND col = $3 AND start > $4
ORDER BY start LIMIT 1`, l.account, l.name, column, c.start)
	if err != nil {
		return err
	}
	r := keyRange{column, keyOf(c.start), endKey()}
	if len(next) > 0 {
		r.to = keyOf(next[0])
	}
	pieces := c.n / size
	step := (c.n + pieces - 1) / pieces
	starts, err := l.inRange(r).keysEvery(ctx, tx, column, step)
	if err != nil || len(starts) == 0 {
		return err
	}
	b := sqlstore.NewBatch("start, held")
	b.Add(c.start, step)
	for i, start := range starts {
		if i == len(starts)-1 {
			step = c.n - step*len(starts)
		}
		b.Add(start.text(), step)
	}
	return tx.Run(ctx, "list "+l.name, `
INSERT INTO sim_block (account, list, col, start, n)
SELECT $1, $2, $3, start, held FROM batch WHERE true
ON CONFLICT (account, list, col, start) DO UPDATE SET n = excluded.n`, l.account, l.name, column, b)
}

// keysEvery returns the key after every step records in a column's order.
func (q *query) keysEvery(ctx context.Context, c sqlstore.Conn, column, step int) ([]key, error) {
	text := fmt.Sprintf(`
SELECT value, id FROM (
  SELECT %s AS value, %s AS id, row_number() OVER (ORDER BY %s) AS nth FROM %s%s
) numbered
WHERE nth %% %s = 1 AND nth > 1
ORDER BY nth`, q.columns[column], q.columns[0], q.orderBy(column, false), q.table, q.Where.String(), q.Arg(step))
	return sqlstore.List(ctx, c, "list "+q.name, text, (*key).fields, q.Args()...)
}
