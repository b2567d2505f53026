package sims

import (
	"context"
	"fmt"

	"github.com/penstock/penstock/relay/sqlstore"
)

const insertColumns = `
INSERT INTO sim_block (account, list, col, start, n)
SELECT $1, $2, col, '', $3 FROM batch WHERE true
ON CONFLICT (account, list, col, start) DO NOTHING
RETURNING col`

// split divides a block that has become too long. A list that was short gets
// blocks of its other columns then. The list is locked, and what was changed of it
// is counted.
func (l listing) split(ctx context.Context, tx *sqlstore.Tx, c counted, size int) error {
	columns := []int{c.column}
	if c.column == 0 && c.start == "" {
		b := sqlstore.NewBatch("col bigint")
		for column := 1; column < len(l.columns); column++ {
			b.Add(column)
		}
		fresh, err := sqlstore.Values[int](ctx, tx, "list "+l.name, insertColumns, int64(l.account), l.name, int64(c.n), b)
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

const selectNextBlock = `
SELECT start FROM sim_block
WHERE account = $1 AND list = $2 AND col = $3 AND start > $4
ORDER BY start LIMIT 1`

const setBlocks = `
INSERT INTO sim_block (account, list, col, start, n)
SELECT $1, $2, $3, start, held FROM batch WHERE true
ON CONFLICT (account, list, col, start) DO UPDATE SET n = excluded.n`

// divide makes blocks of about the same size of one.
func (l listing) divide(ctx context.Context, tx *sqlstore.Tx, column int, c counted, size int) error {
	next, err := sqlstore.Values[string](ctx, tx, "list "+l.name, selectNextBlock, int64(l.account), l.name, int64(column), c.start)
	if err != nil {
		return err
	}
	s := span{column, keyOf(c.start), after()}
	if len(next) > 0 {
		s.to = keyOf(next[0])
	}
	pieces := c.n / size
	step := (c.n + pieces - 1) / pieces
	starts, err := l.over(s).every(ctx, tx, column, step)
	if err != nil || len(starts) == 0 {
		return err
	}
	b := sqlstore.NewBatch("start text, held bigint")
	b.Add(c.start, step)
	for i, start := range starts {
		if i == len(starts)-1 {
			step = c.n - step*len(starts)
		}
		b.Add(start.text(), step)
	}
	_, err = tx.Exec(ctx, "list "+l.name, setBlocks, int64(l.account), l.name, int64(column), b)
	return err
}

// every returns the keys after each step records of a column's order.
func (q *query) every(ctx context.Context, c sqlstore.Conn, column, step int) ([]key, error) {
	text := fmt.Sprintf(`
SELECT value, id FROM (
  SELECT %s AS value, %s AS id, row_number() OVER (ORDER BY %s) AS nth FROM %s WHERE %s
) numbered
WHERE nth %% %s = 1 AND nth > 1
ORDER BY nth`, q.columns[column], q.columns[0], q.by(column, false), q.table, &q.where, q.arg(int64(step)))
	return sqlstore.List(ctx, c, "list "+q.name, text, scanKey, q.args...)
}
