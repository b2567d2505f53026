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

// Ids are reserved in blocks, so that one commit serves many orders.
const (
	// blockTime is how long a block is used, so that ids grow with time even if
	// another gateway reserves many.
	blockTime    = time.Second
	maxBlockSize = 4096
)

// idBlock is a sequence of ids that are reserved and not used.
type idBlock struct {
	next, end  ID
	size       int // when it was reserved
	reservedAt time.Time
}

// Reserve reserves n ids in a row and returns the first. The ids of one gateway grow
// strictly, those of several to the second.
func (s *Store) Reserve(ctx context.Context, n int) (ID, error) {
	const label = "messages: reserve"
	const statement = `
		UPDATE message_id
		SET last = last + $1
		RETURNING last`
	var block idBlock
	select {
	case block = <-s.ids:
		defer func() { s.ids <- block }()
	case <-ctx.Done():
		return 0, db.Wrap(label, ctx.Err())
	}
	now := s.db.Now()
	fresh := now.Sub(block.reservedAt) < blockTime
	if !fresh || block.end-block.next < ID(n) {
		size := n
		if fresh { // blocks grow while they are used up within blockTime
			size = max(n, min(2*block.size, maxBlockSize))
		}
		last, err := db.Transact(ctx, s.db, label, func(ctx context.Context, tx *db.Tx) (ID, error) {
			return db.Value[ID](ctx, tx, label, statement, size)
		})
		if err != nil {
			return 0, err
		}
		block = idBlock{next: last + 1 - ID(size), end: last + 1, size: size, reservedAt: now}
	}
	block.next += ID(n)
	return block.next - ID(n), nil
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
