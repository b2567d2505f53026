package message

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/credit"
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

// Ids are reserved in blocks, so that one commit serves many orders.
const (
	// blockTime is the time for which a block is used, so that ids grow with time even if
	// another gateway reserves many.
	blockTime    = time.Second
	maxBlockSize = 4096
)

// idBlock is a sequence of ids that are reserved and not used.
type idBlock struct {
	nextId, end ID
	size        int // when it was reserved
	reservedAt  time.Time
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
	if !fresh || block.end-block.nextId < ID(n) {
		size := n
		if fresh { // blocks grow while they are used up within blockTime
			size = max(n, min(2*block.size, maxBlockSize))
		}
		lastId, err := db.Transact(ctx, s.db, label, func(ctx context.Context, tx *db.Tx) (ID, error) {
			return db.Value[ID](ctx, tx, label, statement, size)
		})
		if err != nil {
			return 0, err
		}
		block = idBlock{nextId: lastId + 1 - ID(size), end: lastId + 1, size: size, reservedAt: now}
	}
	block.nextId += ID(n)
	return block.nextId - ID(n), nil
}

// Batch is the records of one order.
type Batch struct {
	Account  relay.AccountID
	Messages []Message
	// Lease is the end of the caller's lease on the messages that are due now; zero
	// leaves them to the first LeaseDue.
	Lease time.Time
	Now   time.Time
	Once  Once
}

// Credits is the cost of the batch: one credit per part.
func (b *Batch) Credits() (n int64) {
	for i := range b.Messages {
		n += int64(len(b.Messages[i].Parts))
	}
	return n
}

// Once is the idempotency key of an order.
type Once struct {
	// Key is the hash of the client's key; empty disables it.
	Key string
	// Order is the hash of the order.
	Order string
	// Answer is stored and returned when the order is repeated.
	Answer []byte
	// Keep is the time for which the key is stored.
	Keep time.Duration
}

const (
	saveLabel = "messages: save"
	// maxSavedTogether is the largest number of messages of one account that a
	// transaction saves, unless they are of one order.
	maxSavedTogether = 2000
)

// Save charges for a batch, saves its messages and queues them, all in one transaction.
// Orders of one account that arrive at the same time share a transaction, because each
// changes the account's credit.
//
// Save returns relay.KindNoCredit, with nothing changed, if the credit does not pay for
// all of the batch. A batch whose messages exist already is left unchanged, without an
// error, so that a save without an answer may be repeated. For a known key of the same
// order Save returns the Answer of that order, and saves nothing; for a known key of
// another order it returns relay.KindConflict.
func (s *Store) Save(ctx context.Context, b Batch) (answer []byte, err error) {
	if len(b.Messages) == 0 {
		return nil, relay.Errorf(relay.KindInvalid, "messages: none to save")
	}
	return s.saving.Commit(ctx, b.Account, &b) // runs saveGroup
}

// saveGroup saves batches of one account. If they cannot be saved together, each is saved
// by itself, unless the database is down.
func (s *Store) saveGroup(ctx context.Context, acct relay.AccountID, batches []*Batch) []db.Answer[[]byte] {
	results := make([]db.Answer[[]byte], len(batches))
	keys, sameKey := make(map[string]bool, len(batches)), false
	for _, b := range batches {
		sameKey = sameKey || b.Once.Key != "" && keys[b.Once.Key]
		keys[b.Once.Key] = true
	}
	if !sameKey {
		answers, err := s.saveTogether(ctx, acct, batches)
		for i := range batches {
			results[i].Err = err
			if err == nil {
				results[i].Value = answers[i]
			}
		}
		if err == nil || len(batches) == 1 || relay.KindOf(err) == relay.KindUnavailable {
			return results
		}
	}
	for i := range batches {
		copy(results[i:], s.saveGroup(ctx, acct, batches[i:i+1]))
	}
	return results
}

// saveTogether saves batches of one account, all or none.
func (s *Store) saveTogether(ctx context.Context, acct relay.AccountID, batches []*Batch) ([][]byte, error) {
	return db.Transact(ctx, s.db, saveLabel, func(ctx context.Context, tx *db.Tx) ([][]byte, error) {
		// 1. Claim the clients' keys, in the order in which every transaction locks them.
		answers := make([][]byte, len(batches))
		var claimed []*Batch
		for _, i := range db.PlacesInOrder(batches, func(a, b *Batch) int { return strings.Compare(a.Once.Key, b.Once.Key) }) {
			answer, ok, err := claimKey(ctx, tx, batches[i])
			if err != nil {
				return nil, err
			}
			if answers[i] = answer; ok {
				claimed = append(claimed, batches[i])
			}
		}

		// 2. Insert the messages.
		inserted, err := insert(ctx, tx, acct, claimed)
		if err != nil {
			return nil, err
		}

		// 3. Charge for them; the credit is locked last.
		charges := make([]credit.Change, len(inserted))
		for i, b := range inserted {
			first, lastMessage := b.Messages[0].ID, &b.Messages[len(b.Messages)-1]
			reference := first.String()
			if id := lastMessage.EntryID(len(lastMessage.Parts) - 1); id != first {
				reference += "-" + id.String()
			}
			charges[i] = credit.Change{
				ID: "sent-" + first.String(), Account: acct, Credits: -b.Credits(), Reason: credit.Sent, Reference: reference, At: b.Now,
			}
		}
		_, err = credit.Apply(ctx, tx, charges)
		return answers, err
	})
}

// claimKey claims the client's key for an order. If the key belongs to an order already,
// ok is false, and answer is that order's, unless it is this very order, repeated.
func claimKey(ctx context.Context, tx *db.Tx, b *Batch) (answer []byte, ok bool, err error) {
	// An expired key counts as unused. While another transaction claims the key, the
	// statement waits for its end.
	const insertKey = `
		INSERT INTO message_order (account, client_key, content, first_message, answer, expires)
		VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (account, client_key) DO UPDATE
		SET content = excluded.content,
		  first_message = excluded.first_message,
		  answer = excluded.answer,
		  expires = excluded.expires
		WHERE message_order.expires <= $7`
	const selectKey = `
		SELECT content, first_message, answer
		FROM message_order
		WHERE account = $1
		  AND client_key = $2`
	if b.Once.Key == "" {
		return nil, true, nil
	}
	id := b.Messages[0].ID
	n, err := tx.Exec(ctx, saveLabel, insertKey,
		b.Account, b.Once.Key, b.Once.Order, id, append([]byte{}, b.Once.Answer...), b.Now.Add(b.Once.Keep), b.Now)
	if err != nil || n > 0 {
		return nil, err == nil, err
	}
	type order struct {
		hash   string
		id     ID
		answer []byte
	}
	owner, err := db.One(ctx, tx, saveLabel, selectKey,
		func(o *order) []any { return []any{&o.hash, &o.id, &o.answer} }, b.Account, b.Once.Key)
	switch {
	case err != nil:
		return nil, false, err
	case owner.id == id:
		return nil, false, nil
	case owner.hash != b.Once.Order:
		return nil, false, relay.Errorf(relay.KindConflict, "messages: the key belongs to another order")
	}
	return append([]byte{}, owner.answer...), false, nil
}

// insert inserts the messages of batches and returns the batches that were not saved
// before.
func insert(ctx context.Context, tx *db.Tx, acct relay.AccountID, batches []*Batch) (inserted []*Batch, err error) {
	const insertMessages = `
		INSERT INTO message (account, id, originator, destination, doc)
		SELECT $1, id, originator, destination, doc
		FROM batch
		WHERE true
		ON CONFLICT (account, id) DO NOTHING
		RETURNING id`
	const insertStates = `
		INSERT INTO message_state (account, id, part_count, scheduled, report, parts, pending, states, due, untold, expires, version)
		SELECT $1, id, part_count, scheduled, report, '', part_count, 1, due, 0, 0, 0
		FROM batch`
	messages := db.NewBatch("id, originator, destination, doc")
	for _, b := range batches {
		for i := range b.Messages {
			m := &b.Messages[i]
			messages.Add(m.ID, m.Originator, m.Destination, db.Sealed(db.JSON(m), "message", acct))
		}
	}
	ids, err := db.Values[ID](ctx, tx, saveLabel, insertMessages, acct, messages)
	if err != nil {
		return nil, err
	}
	isInserted := make(map[ID]bool, len(ids))
	for _, id := range ids {
		isInserted[id] = true
	}
	states := db.NewBatch("id, part_count, scheduled, report, due")
	for _, b := range batches {
		n := 0
		for i := range b.Messages {
			m := &b.Messages[i]
			if !isInserted[m.ID] {
				continue
			}
			n++
			due := m.ScheduledFor
			if !b.Lease.IsZero() && !m.ScheduledFor.After(b.Now) { // leased by the caller
				due = b.Lease
			}
			states.Add(m.ID, len(m.Parts), m.ScheduledFor, m.Report.URL != "", due)
		}
		switch n {
		case len(b.Messages):
			inserted = append(inserted, b)
		case 0: // saved before
		default:
			return nil, relay.Errorf(relay.KindUnexpected, "messages: ids from %s on belong to other messages", b.Messages[0].ID)
		}
	}
	return inserted, tx.Run(ctx, saveLabel, insertStates, acct, states)
}
