// Package messages keeps the messages that accounts send, on SQL: what is to be
// submitted and when, the state of every part, the ids that carriers gave them,
// and the reports that accounts still have to get.
//
// A message is a row that never changes (message) and a narrow one that does
// (message_state), so that an attempt rewrites neither the text nor the indexes
// of numbers. A batch is read under its locks, changed here, and written back:
// two statements, however many messages there are.
package messages

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/message"
)

// Store is a message.Store, Work, Receipts, Reports and Archive. It is safe for
// concurrent use, and for use by several gateways on one database.
type Store struct {
	db *db.DB
	// ids has the block of reserved ids, and is empty while it is in use.
	ids    chan block
	saving *db.GroupCommit[relay.AccountID, *message.Batch, message.Saved]
}

// New makes a Store.
func New(database *db.DB) *Store {
	s := &Store{db: database, ids: make(chan block, 1)}
	s.ids <- block{}
	s.saving = &db.GroupCommit[relay.AccountID, *message.Batch, message.Saved]{
		Most: savedTogether, Size: func(b *message.Batch) int { return len(b.Messages) }, Do: s.saveAll,
	}
	return s
}

// Ids are taken from the database in blocks: one commit for many orders.
const (
	// blockTime is how long a block is used, so that ids grow with time even if
	// another gateway takes many.
	blockTime = time.Second
	blockMost = 4096
)

// block is ids in a row that are reserved and not given out.
type block struct {
	next, end message.ID
	size      int // with which it was taken
	taken     time.Time
}

// Reserve takes n ids in a row. Ids of one gateway grow strictly, those of several
// to the second.
func (s *Store) Reserve(ctx context.Context, n int) (message.ID, error) {
	select {
	case b := <-s.ids:
		defer func() { s.ids <- b }()
		now := s.db.Now()
		fresh := now.Sub(b.taken) < blockTime
		if !fresh || b.end-b.next < message.ID(n) {
			size := n
			if fresh { // blocks grow while they are used up in their time
				size = max(n, min(2*b.size, blockMost))
			}
			next, err := s.reserve(ctx, size)
			if err != nil {
				return 0, err
			}
			b = next
			b.taken = now
		}
		b.next += message.ID(n)
		return b.next - message.ID(n), nil
	case <-ctx.Done():
		return 0, db.Wrap("messages: reserve", ctx.Err())
	}
}

func (s *Store) reserve(ctx context.Context, size int) (block, error) {
	const noun = "messages: reserve"
	last, err := db.Transact(ctx, s.db, noun, func(ctx context.Context, tx *db.Tx) (message.ID, error) {
		return db.Value[message.ID](ctx, tx, noun, "UPDATE message_id SET last = last + $1 RETURNING last", size)
	})
	if err != nil {
		return block{}, err
	}
	return block{next: last + 1 - message.ID(size), end: last + 1, size: size}, nil
}
