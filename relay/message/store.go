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
	db      *db.DB
	ids     chan idBlock // has the block of reserved ids; empty while a call of Reserve uses the block
	commits *db.GroupCommit[relay.AccountID, *OrderRecords, []byte]
}

// NewStore returns the store of messages.
func NewStore(database *db.DB) *Store {
	s := &Store{db: database, ids: make(chan idBlock, 1)}
	s.ids <- idBlock{}
	s.commits = &db.GroupCommit[relay.AccountID, *OrderRecords, []byte]{
		MaxSize: maxSavedTogether, Size: func(o *OrderRecords) int { return len(o.Messages) }, Do: s.saveGroup,
	}
	return s
}

// Sweep deletes the expired keys of orders and the expired ids that carriers returned for parts.
func (s *Store) Sweep(ctx context.Context, now time.Time) error {
	return errors.Join(
		s.db.SweepExpired(ctx, "messages: expired orders", "message_order", "account, client_key", "expires", now),
		s.db.SweepExpired(ctx, "messages: expired carrier ids", "message_ref", "carrier, ref", "expires", now),
	)
}

// Forget deletes messages that have had no pending or sending part for the retention time.
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
	return s.db.Repeat(ctx, label, db.MaxSweep, func(ctx context.Context, tx *db.Tx) (int, error) {
		deleted, err := db.List(ctx, tx, label, deleteStates, refFields, now, db.MaxSweep)
		if err != nil {
			return 0, err
		}
		return len(deleted), tx.Run(ctx, label, deleteMessages, refBatch(deleted))
	})
}

// Ids are reserved in blocks, so that one commit serves many orders.
const (
	// blockTime is the time for which a block is used. It is short so that ids grow with time
	// even if another gateway reserves many.
	blockTime    = time.Second
	maxBlockSize = 4096
)

// idBlock is a range of reserved ids that are not yet used.
type idBlock struct {
	nextID, end ID
	size        int // when it was reserved
	reservedAt  time.Time
}

// Reserve reserves n consecutive ids and returns the first. The ids of one gateway increase;
// the ids of several gateways are in the order of time to the second.
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
	if !fresh || block.end-block.nextID < ID(n) {
		size := n
		if fresh { // blocks grow while they are used up within blockTime
			size = max(n, min(2*block.size, maxBlockSize))
		}
		lastID, err := db.Transact(ctx, s.db, label, func(ctx context.Context, tx *db.Tx) (ID, error) {
			return db.Value[ID](ctx, tx, label, statement, size)
		})
		if err != nil {
			return 0, err
		}
		block = idBlock{nextID: lastID + 1 - ID(size), end: lastID + 1, size: size, reservedAt: now}
	}
	block.nextID += ID(n)
	return block.nextID - ID(n), nil
}

// OrderRecords are the records of one order, which Save saves together.
type OrderRecords struct {
	Account  relay.AccountID
	Messages []Message
	// Lease is the end of the caller's lease on the messages that are due now; zero
	// leaves them to the first LeaseDue.
	Lease time.Time
	Now   time.Time
	Key   IdempotencyKey
}

// Credits returns the cost of the order: one credit per part.
func (o *OrderRecords) Credits() (n int64) {
	for i := range o.Messages {
		n += int64(len(o.Messages[i].Parts))
	}
	return n
}

// IdempotencyKey is the client's key for an order.
type IdempotencyKey struct {
	Hash      string // of the key; empty disables it
	OrderHash string
	// Answer is stored and returned when the order is repeated.
	Answer []byte
	// Retention is the time for which the key is stored.
	Retention time.Duration
}

const (
	saveLabel = "messages: save"
	// maxSavedTogether is the largest number of messages that a transaction saves for several
	// orders of an account. A single order may have more.
	maxSavedTogether = 2000
)

// Save charges for an order, saves its messages and queues them, all in one transaction.
// Orders of one account that arrive at the same time share a transaction, because each
// changes the account's credit.
//
// Save returns relay.KindNoCredit, with nothing changed, if the credit does not pay for the
// whole order. It leaves messages that exist unchanged, without an error, so that a save
// whose answer was lost can be repeated. For a stored key of the same order Save returns the
// Answer of that order and saves nothing; for a stored key of another order it returns
// relay.KindConflict.
func (s *Store) Save(ctx context.Context, o OrderRecords) (answer []byte, err error) {
	if len(o.Messages) == 0 {
		return nil, relay.Errorf(relay.KindInvalid, "messages: the order has no messages")
	}
	return s.commits.Commit(ctx, o.Account, &o) // runs saveGroup
}

// saveGroup saves orders of one account in one transaction, or one by one if two orders have the
// same key or the transaction fails with an error other than relay.KindUnavailable.
func (s *Store) saveGroup(ctx context.Context, acct relay.AccountID, orders []*OrderRecords) []db.Answer[[]byte] {
	results := make([]db.Answer[[]byte], len(orders))
	keys, sameKey := make(map[string]bool, len(orders)), false
	for _, o := range orders {
		sameKey = sameKey || o.Key.Hash != "" && keys[o.Key.Hash]
		keys[o.Key.Hash] = true
	}
	if !sameKey {
		answers, err := s.saveTogether(ctx, acct, orders)
		for i := range orders {
			results[i].Err = err
			if err == nil {
				results[i].Value = answers[i]
			}
		}
		if err == nil || len(orders) == 1 || relay.KindOf(err) == relay.KindUnavailable {
			return results
		}
	}
	for i := range orders {
		copy(results[i:], s.saveGroup(ctx, acct, orders[i:i+1]))
	}
	return results
}

// saveTogether saves orders of one account, all or none.
func (s *Store) saveTogether(ctx context.Context, acct relay.AccountID, orders []*OrderRecords) ([][]byte, error) {
	return db.Transact(ctx, s.db, saveLabel, func(ctx context.Context, tx *db.Tx) ([][]byte, error) {
		// 1. Claim the clients' keys, in the order in which every transaction locks them.
		answers := make([][]byte, len(orders))
		var claimed []*OrderRecords
		for _, i := range db.PlacesInOrder(orders, func(a, b *OrderRecords) int { return strings.Compare(a.Key.Hash, b.Key.Hash) }) {
			answer, ok, err := claimIdempotencyKey(ctx, tx, orders[i])
			if err != nil {
				return nil, err
			}
			if answers[i] = answer; ok {
				claimed = append(claimed, orders[i])
			}
		}

		// 2. Insert the messages.
		inserted, err := insert(ctx, tx, acct, claimed)
		if err != nil {
			return nil, err
		}

		// 3. Charge for them; the credit is locked last.
		charges := make([]credit.Change, len(inserted))
		for i, o := range inserted {
			firstID, lastMessage := o.Messages[0].ID, &o.Messages[len(o.Messages)-1]
			reference := firstID.String()
			if id := lastMessage.PartID(len(lastMessage.Parts) - 1); id != firstID {
				reference += "-" + id.String()
			}
			charges[i] = credit.Change{
				ID: "sent-" + firstID.String(), Account: acct, Credits: -o.Credits(), Reason: credit.Sent, Reference: reference, At: o.Now,
			}
		}
		_, err = credit.Apply(ctx, tx, charges)
		return answers, err
	})
}

// claimIdempotencyKey claims the client's key for an order. If the key is stored, ok is false. The answer
// is then the answer of the earlier order, or nil if this order itself was saved before.
func claimIdempotencyKey(ctx context.Context, tx *db.Tx, o *OrderRecords) (answer []byte, ok bool, err error) {
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
	if o.Key.Hash == "" {
		return nil, true, nil
	}
	id := o.Messages[0].ID
	n, err := tx.Exec(ctx, saveLabel, insertKey,
		o.Account, o.Key.Hash, o.Key.OrderHash, id, append([]byte{}, o.Key.Answer...), o.Now.Add(o.Key.Retention), o.Now)
	if err != nil || n > 0 {
		return nil, err == nil, err
	}
	type keyOwner struct {
		hash   string
		id     ID
		answer []byte
	}
	owner, err := db.One(ctx, tx, saveLabel, selectKey,
		func(k *keyOwner) []any { return []any{&k.hash, &k.id, &k.answer} }, o.Account, o.Key.Hash)
	switch {
	case err != nil:
		return nil, false, err
	case owner.id == id:
		return nil, false, nil
	case owner.hash != o.Key.OrderHash:
		return nil, false, relay.Errorf(relay.KindConflict, "messages: the key belongs to another order")
	}
	return append([]byte{}, owner.answer...), false, nil
}

// insert inserts the messages of orders and returns the orders that were not saved before.
func insert(ctx context.Context, tx *db.Tx, acct relay.AccountID, orders []*OrderRecords) (inserted []*OrderRecords, err error) {
	const insertMessages = `
		INSERT INTO message (account, id, originator, destination, doc)
		SELECT $1, id, originator, destination, doc
		FROM batch
		WHERE true
		ON CONFLICT (account, id) DO NOTHING
		RETURNING id`
	// All parts are pending: the 1 is the stateBit of Pending, and the empty parts are the default.
	const insertStates = `
		INSERT INTO message_state (account, id, part_count, scheduled, report, parts, pending, states, due, untold, expires, version)
		SELECT $1, id, part_count, scheduled, report, '', part_count, 1, due, 0, 0, 0
		FROM batch`
	messages := db.NewBatch("id, originator, destination, doc")
	for _, o := range orders {
		for i := range o.Messages {
			m := &o.Messages[i]
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
	for _, o := range orders {
		n := 0
		for i := range o.Messages {
			m := &o.Messages[i]
			if !isInserted[m.ID] {
				continue
			}
			n++
			due := m.ScheduledFor
			if !o.Lease.IsZero() && !m.ScheduledFor.After(o.Now) { // leased by the caller
				due = o.Lease
			}
			states.Add(m.ID, len(m.Parts), m.ScheduledFor, m.Report.URL != "", due)
		}
		switch n {
		case len(o.Messages):
			inserted = append(inserted, o)
		case 0: // saved before
		default:
			return nil, relay.Errorf(relay.KindUnexpected, "messages: ids from %s on belong to other messages", o.Messages[0].ID)
		}
	}
	return inserted, tx.Run(ctx, saveLabel, insertStates, acct, states)
}
