package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// The bench writes SIMs with SQL, as the store declares them: an import of the
// store would be against the picture of docs/architecture.md.
const (
	insertSIMs = `
INSERT INTO sim (account, iccid, imsi, msisdn, pool, subscriber, state, requested, job, service_4g, service_5g,
  pin, pin2, puk, puk2, monthly, warning, cap, recipients, detached)
SELECT %d, iccid, imsi, msisdn, '', '', 'active', 'active', '', 1, 0,
  '1234', '5678', '12345678', '87654321', 0, 0, 'none', '', ''
FROM unnest('{%s}'::text[], '{%s}'::text[], '{%s}'::text[]) AS batch(iccid, imsi, msisdn)`

	// insertBlocks counts the stretches of the list in the order of a column.
	insertBlocks = `
INSERT INTO sim_block (account, list, col, start, n)
SELECT %[1]d, '', %[2]d, CASE WHEN stretch = 0 THEN '' ELSE min(key) END, count(*)
FROM (
  SELECT %[3]s || chr(1) || iccid AS key, (row_number() OVER (ORDER BY %[3]s, iccid) - 1) / %[4]d AS stretch
  FROM sim WHERE account = %[1]d
) numbered
GROUP BY stretch`

	selectSize = `SELECT pg_total_relation_size('sim') + pg_total_relation_size('sim_block')`

	// selectSIMs reads what the gateway reads of SIMs.
	selectSIMs = `
SELECT iccid, imsi, msisdn, pool, subscriber, state, requested, job, service_4g, service_5g,
  pin, pin2, puk, puk2, monthly, warning, cap, recipients
FROM sim WHERE account = $1 AND iccid = ANY($2)`
)

const (
	fillPiece = 2000 // SIMs of one write
	blockSize = 2048 // SIMs of a stretch; a list of fewer has stretches of its first column only
)

// fillBoth fills two accounts and leaves the tables as the server's housekeeping
// would. It returns how many bytes a SIM of the first one takes on disk.
func fillBoth(ctx context.Context, c *pgx.Conn, large, small simAccount) (float64, error) {
	before, err := size(ctx, c)
	if err != nil {
		return 0, err
	}
	if err := fill(ctx, c, large); err != nil {
		return 0, err
	}
	after, err := size(ctx, c)
	if err != nil {
		return 0, err
	}
	if err := fill(ctx, c, small); err != nil {
		return 0, err
	}
	_, err = c.Exec(ctx, "CHECKPOINT")
	return float64(after-before) / float64(large.n), err
}

// fill writes the SIMs of an account and the blocks of their list.
func fill(ctx context.Context, c *pgx.Conn, acct simAccount) error {
	for from := 0; from < acct.n; from += fillPiece {
		to := min(from+fillPiece, acct.n)
		text := fmt.Sprintf(insertSIMs, acct.account, join(from, to, acct.iccid), join(from, to, acct.imsi), join(from, to, acct.msisdn))
		if _, err := c.Exec(ctx, text); err != nil {
			return err
		}
	}
	columns := []string{"iccid", "imsi", "msisdn"}
	if acct.n < blockSize {
		columns = columns[:1]
	}
	for i, column := range columns {
		if _, err := c.Exec(ctx, fmt.Sprintf(insertBlocks, acct.account, i, column, blockSize)); err != nil {
			return err
		}
	}
	_, err := c.Exec(ctx, "VACUUM (ANALYZE) sim, sim_block")
	return err
}

// size is how many bytes SIMs take on disk.
func size(ctx context.Context, c *pgx.Conn) (n int64, err error) {
	err = c.QueryRow(ctx, selectSize).Scan(&n)
	return n, err
}

// readSIMs reads the rows of SIMs by their primary key.
func readSIMs(ctx context.Context, c *pgx.Conn, acct simAccount, iccids []string) error {
	rows, err := c.Query(ctx, selectSIMs, acct.account, iccids)
	if err != nil {
		return err
	}
	read := 0
	for rows.Next() {
		if _, err := rows.Values(); err != nil {
			return err
		}
		read++
	}
	if err := rows.Err(); err != nil || read != len(iccids) {
		return errors.Join(err, fmt.Errorf("%d rows of %d SIMs", read, len(iccids)))
	}
	return nil
}

// join lists the numbers of SIMs.
func join(from, to int, number func(i int) string) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		if i > from {
			b.WriteByte(',')
		}
		b.WriteString(number(i))
	}
	return b.String()
}
