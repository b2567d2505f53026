package message

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// Store stores messages. It is safe for concurrent use, and for use by several
// gateways on one database.
type Store struct {
	db *db.DB
	// ids has the block of reserved ids, and is empty while it is in use.
	ids    chan block
	saving *db.GroupCommit[relay.AccountID, *Batch, Saved]
}

// NewStore makes a Store.
func NewStore(database *db.DB) *Store {
	s := &Store{db: database, ids: make(chan block, 1)}
	s.ids <- block{}
	s.saving = &db.GroupCommit[relay.AccountID, *Batch, Saved]{
		Most: savedTogether, Size: func(b *Batch) int { return len(b.Messages) }, Do: s.saveAll,
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
	next, end ID
	size      int // with which it was taken
	taken     time.Time
}

// Reserve takes n ids in a row. Ids of one gateway grow strictly, those of several
// to the second.
func (s *Store) Reserve(ctx context.Context, n int) (ID, error) {
	select {
	case b := <-s.ids:
		defer func() { s.ids <- b }()
		now := s.db.Now()
		fresh := now.Sub(b.taken) < blockTime
		if !fresh || b.end-b.next < ID(n) {
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
		b.next += ID(n)
		return b.next - ID(n), nil
	case <-ctx.Done():
		return 0, db.Wrap("messages: reserve", ctx.Err())
	}
}

func (s *Store) reserve(ctx context.Context, size int) (block, error) {
	const noun = "messages: reserve"
	last, err := db.Transact(ctx, s.db, noun, func(ctx context.Context, tx *db.Tx) (ID, error) {
		return db.Value[ID](ctx, tx, noun, "UPDATE message_id SET last = last + $1 RETURNING last", size)
	})
	if err != nil {
		return block{}, err
	}
	return block{next: last + 1 - ID(size), end: last + 1, size: size}, nil
}
