package messages

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay/message"
	"github.com/penstock/penstock/relay/sqlstore"
)

const selectUnreported = `
SELECT ` + messageColumns + ` FROM message_state s JOIN message m ON m.account = s.account AND m.id = s.id
WHERE s.untold > 0 AND s.untold <= $1
ORDER BY s.untold, s.account, s.id LIMIT $2`

// Unreported returns messages with unreported changes.
func (s *Store) Unreported(ctx context.Context, before time.Time, limit int) ([]message.Message, error) {
	return sqlstore.List(ctx, s.db, "messages: list unreported", selectUnreported, scanFullMessage, before, limit)
}

const markReported = `
WITH told AS MATERIALIZED (
  SELECT s.account, s.id FROM batch CROSS JOIN message_state s
  WHERE s.account = batch.account AND s.id = batch.id AND s.version = batch.version
  ORDER BY s.account, s.id {for update})
UPDATE message_state SET untold = 0 FROM told
WHERE message_state.account = told.account AND message_state.id = told.id`

// MarkReported marks messages as reported unless their version has changed.
func (s *Store) MarkReported(ctx context.Context, ms []message.Message) error {
	b := sqlstore.BatchOf("account bigint, id bigint, version bigint", ms, func(m *message.Message) []any {
		return []any{m.Account, m.ID, m.Version}
	})
	_, err := s.db.Exec(ctx, "messages: mark reported", markReported, b)
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
	const noun = "messages: forget"
	return s.db.Repeat(ctx, noun, sqlstore.SweepMost, func(ctx context.Context, tx *sqlstore.Tx) (int, error) {
		gone, err := sqlstore.List(ctx, tx, noun, deleteStates, sqlstore.Into(refFields), now, sqlstore.SweepMost)
		if err != nil {
			return 0, err
		}
		_, err = tx.Exec(ctx, noun, deleteMessages, refBatch(gone))
		return len(gone), err
	})
}
