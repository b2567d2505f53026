package sims

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/sqlstore"
)

// blockSize is how many records a block has when it is made; it is split at twice
// that. A page is read by a walk through half a block at most, and by all blocks
// of a column.
const blockSize = 2048

// block is how many records there are from its start to that of the next one.
type block struct {
	start, end key
	n          int
}

// The blocks that a span touches, and the one behind it, which ends the last.
const selectBlocks = `
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
ORDER BY start`

// blocks returns those that a span touches, in their order. A short list has one,
// which is that of the first column.
func (l listing) blocks(ctx context.Context, c sqlstore.Conn, s span) ([]block, error) {
	acct, column := int64(l.account), int64(s.column)
	out, err := sqlstore.List(ctx, c, "list "+l.name, selectBlocks, func(row *sql.Rows, b *block) error {
		var start string
		err := row.Scan(&start, &b.n)
		b.start, b.end = keyOf(start), after()
		return err
	}, acct, l.name, column, acct, l.name, column, s.from.text(), acct, l.name, column, s.to.text(), top)
	if err != nil {
		return nil, err
	}
	if len(out) == 0 && s.column > 0 {
		return l.single(ctx, c)
	}
	for i := range len(out) - 1 {
		out[i].end = out[i+1].start
	}
	if last := len(out) - 1; last >= 0 && out[last].start.compare(s.to) >= 0 {
		out = out[:last]
	}
	return out, nil
}

// single is a short list as one block.
func (l listing) single(ctx context.Context, c sqlstore.Conn) ([]block, error) {
	all := block{end: after()}
	of, err := l.blocks(ctx, c, whole(0))
	for _, b := range of {
		all.n += b.n
	}
	return []block{all}, err
}

// anchor is a place in a span that is known: how many of its records are before
// a key.
type anchor struct {
	key key
	at  int
}

// maxCounted is how many records are counted before blocks are asked.
const maxCounted = 500

// anchors returns the places that are known of a span, in their order: its two
// ends, the last of which tells how many records it has, and the starts of blocks.
func (l listing) anchors(ctx context.Context, c sqlstore.Conn, s span) ([]anchor, error) {
	if s != whole(s.column) {
		n, err := l.over(s).countTo(ctx, c, maxCounted+1)
		if err != nil || n <= maxCounted {
			return []anchor{{s.from, 0}, {s.to, n}}, err
		}
	}
	blocks, err := l.blocks(ctx, c, s)
	if err != nil {
		return nil, err
	}
	out := []anchor{{key: s.from}}
	at := 0
	for _, b := range blocks {
		n, part := b.n, span{s.column, later(b.start, s.from), earlier(b.end, s.to)}
		if part.from != b.start || part.to != b.end {
			if n, err = l.cut(ctx, c, b, part); err != nil {
				return nil, err
			}
		}
		at += n
		out = append(out, anchor{part.to, at})
	}
	return out, nil
}

// cut counts the records of a part of a block, or those outside of it if they are
// fewer: a filter for what all have in common leaves out none.
func (l listing) cut(ctx context.Context, c sqlstore.Conn, b block, part span) (int, error) {
	outside := 0
	for _, rest := range []span{{part.column, b.start, part.from}, {part.column, part.to, b.end}} {
		if rest.from == rest.to {
			continue
		}
		n, err := l.over(rest).countTo(ctx, c, b.n/2+1)
		if err != nil {
			return 0, err
		}
		outside += n
	}
	if outside <= b.n/2 {
		return b.n - outside, nil
	}
	return l.over(part).count(ctx, c)
}

func later(a, b key) key {
	if a.compare(b) > 0 {
		return a
	}
	return b
}

func earlier(a, b key) key {
	if a.compare(b) < 0 {
		return a
	}
	return b
}

// change is a record that a list gains, loses or has in another place: its values
// of the columns as they were and as they are, nil for none.
type change struct {
	in      listing
	was, is []string
}

// place is what a block counts.
type place struct {
	list   string
	column int
	key    key
}

// recount counts what lists have gained and lost, once their records are saved. It
// locks the lists until the end of the transaction; size is that of a block.
func recount(ctx context.Context, tx *sqlstore.Tx, acct account.ID, size int, changes []change) error {
	deltas, lists := make(map[place]int), make(map[string]listing)
	for _, c := range changes {
		if slices.Equal(c.was, c.is) {
			continue
		}
		lists[c.in.name] = c.in
		for column := range c.in.columns {
			if c.was != nil {
				deltas[place{c.in.name, column, key{c.was[column], c.was[0]}}]--
			}
			if c.is != nil {
				deltas[place{c.in.name, column, key{c.is[column], c.is[0]}}]++
			}
		}
	}
	if len(deltas) == 0 {
		return nil
	}
	if err := lock(ctx, tx, acct, lists); err != nil {
		return err
	}
	counted, err := add(ctx, tx, acct, deltas)
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

const lockLists = `
SELECT list FROM sim_block
WHERE account = $1 AND col = 0 AND start = '' AND list IN (SELECT name FROM batch)
ORDER BY list {for update}`

const insertLists = `
INSERT INTO sim_block (account, list, col, start, n)
SELECT $1, name, 0, '', 0 FROM batch WHERE true ORDER BY name
ON CONFLICT (account, list, col, start) DO NOTHING`

// lock locks lists by their first blocks, which are made if there are none.
func lock(ctx context.Context, tx *sqlstore.Tx, acct account.ID, lists map[string]listing) error {
	names := func() *sqlstore.Batch {
		b := sqlstore.NewBatch("name text")
		for name := range lists {
			b.Add(name)
		}
		return b
	}
	locked, err := sqlstore.Values[string](ctx, tx, "lists", lockLists, int64(acct), names())
	if err != nil || len(locked) == len(lists) {
		return err
	}
	if _, err := tx.Exec(ctx, "lists", insertLists, int64(acct), names()); err != nil {
		return err
	}
	_, err = sqlstore.Values[string](ctx, tx, "lists", lockLists, int64(acct), names())
	return err
}

// The account is a column of delta, or SQLite would look at all its blocks.
const addToBlocks = `
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
RETURNING sim_block.list, sim_block.col, sim_block.start, sim_block.n`

// counted is a block that was changed.
type counted struct {
	list, start string
	column, n   int
}

// add changes the counts of blocks. It returns those blocks.
func add(ctx context.Context, tx *sqlstore.Tx, acct account.ID, deltas map[place]int) ([]counted, error) {
	b := sqlstore.NewBatch("list text, col bigint, key text, d bigint")
	for p, d := range deltas {
		if d != 0 {
			b.Add(p.list, p.column, p.key.text(), d)
		}
	}
	out, err := sqlstore.List(ctx, tx, "lists", addToBlocks, func(row *sql.Rows, c *counted) error {
		return row.Scan(&c.list, &c.column, &c.start, &c.n)
	}, int64(acct), int64(acct), b)
	slices.SortFunc(out, func(a, b counted) int { return strings.Compare(a.list+separator+a.start, b.list+separator+b.start) })
	for _, c := range out {
		if c.n < 0 {
			return nil, relay.Errorf(relay.KindUnexpected, "account %s: list %q has %d records at %q", acct, c.list, c.n, c.start)
		}
	}
	return out, err
}
