package messages

import (
	"context"
	"database/sql"
	"time"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/message"
	"github.com/penstock/penstock/relay/sqlstore"
)

const selectUntold = `
SELECT ` + messageColumns + ` FROM message_state s JOIN message m ON m.account = s.account AND m.id = s.id
WHERE s.untold > 0 AND s.untold <= $1
ORDER BY s.untold, s.account, s.id LIMIT $2`

// Untold returns messages with something to report.
func (s *Store) Untold(ctx context.Context, before time.Time, limit int) ([]message.Message, error) {
	return sqlstore.List(ctx, s.db, "messages: untold", selectUntold, scanWhole, sqlstore.Millis(before), int64(limit))
}

const markTold = `
WITH told AS MATERIALIZED (
  SELECT s.account, s.id FROM batch CROSS JOIN message_state s
  WHERE s.account = batch.account AND s.id = batch.id AND s.version = batch.version
  ORDER BY s.account, s.id {for update})
UPDATE message_state SET untold = 0 FROM told
WHERE message_state.account = told.account AND message_state.id = told.id`

// Told takes messages off those with something to report.
func (s *Store) Told(ctx context.Context, ms []message.Message) error {
	if len(ms) == 0 {
		return nil
	}
	b := sqlstore.NewBatch("account bigint, id bigint, version bigint")
	for i := range ms {
		b.Add(int64(ms[i].Account), int64(ms[i].ID), ms[i].Version)
	}
	_, err := s.db.Exec(ctx, "messages: told", markTold, b)
	return err
}

const deleteStates = `
WITH gone AS MATERIALIZED (
  SELECT account, id FROM message_state WHERE expires > 0 AND expires <= $1 ORDER BY expires LIMIT $2 {skip locked})
DELETE FROM message_state WHERE (account, id) IN (SELECT account, id FROM gone)
RETURNING account, id`

const deleteMessages = `
DELETE FROM message WHERE (account, id) IN (SELECT account, id FROM batch)`

// Forget removes messages whose time is over.
func (s *Store) Forget(ctx context.Context, now time.Time) error {
	for {
		n := 0
		err := s.db.Write(ctx, "messages: forget", func(ctx context.Context, tx *sqlstore.Tx) error {
			gone, err := sqlstore.List(ctx, tx, "messages: forget", deleteStates, scanRef, sqlstore.Millis(now), int64(sweepMost))
			if n = len(gone); err != nil || n == 0 {
				return err
			}
			_, err = tx.Exec(ctx, "messages: forget", deleteMessages, refBatch(gone))
			return err
		})
		if err != nil || n < sweepMost {
			return err
		}
	}
}

func scanRef(row *sql.Rows, r *message.Ref) error {
	var acct, id int64
	err := row.Scan(&acct, &id)
	*r = message.Ref{Account: account.ID(acct), ID: message.ID(id)}
	return err
}
