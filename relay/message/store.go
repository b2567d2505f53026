package message

import (
	"context"
	"errors"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// Store stores messages. It is safe for concurrent use, and for use by several
// gateways on one database.
type Store struct {
	db     *db.DB
	ids    chan idBlock // has the reserved ids; empty while a call takes some
	saving *db.GroupCommit[relay.AccountID, *Batch, []byte]
}

// NewStore returns the store of messages.
func NewStore(database *db.DB) *Store {
	s := &Store{db: database, ids: make(chan idBlock, 1)}
	s.ids <- idBlock{}
	s.saving = &db.GroupCommit[relay.AccountID, *Batch, []byte]{
		Most: maxSavedTogether, Size: func(b *Batch) int { return len(b.Messages) }, Do: s.saveGroup,
	}
	return s
}

// Sweep deletes the keys of orders and the ids of carriers that have expired.
func (s *Store) Sweep(ctx context.Context, now time.Time) error {
	return errors.Join(
		s.db.SweepExpired(ctx, "messages: expired orders", "message_order", "account, client_key", "expires", now),
		s.db.SweepExpired(ctx, "messages: expired carrier ids", "message_ref", "carrier, ref", "expires", now),
	)
}

// Forget deletes the messages of which no part has waited to be sent for the retention,
// also accepted and unknown ones.
func (s *Store) Forget(ctx context.Context, now time.Time) error {
	const label = "messages: forget"
	const deleteStates = `
		WITH expired AS MATERIALIZED (
		  SELECT account, id
		  FROM message_state
		  WHERE expires > 0
		    AND expires <= $1
		  ORDER BY expires
		  LIMIT $2 {skip locked}
		)
		DELETE FROM message_state
		WHERE (account, id) IN (SELECT account, id FROM expired)
		RETURNING account, id`
	const deleteMessages = `
		DELETE FROM message
		WHERE (account, id) IN (SELECT account, id FROM batch)`
	return s.db.Repeat(ctx, label, db.SweepMost, func(ctx context.Context, tx *db.Tx) (int, error) {
		deleted, err := db.List(ctx, tx, label, deleteStates, refFields, now, db.SweepMost)
		if err != nil {
			return 0, err
		}
		return len(deleted), tx.Run(ctx, label, deleteMessages, refBatch(deleted))
	})
}
