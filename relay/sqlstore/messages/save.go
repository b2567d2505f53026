package messages

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/credit"
	"github.com/penstock/penstock/relay/message"
	"github.com/penstock/penstock/relay/sqlstore"
	credits "github.com/penstock/penstock/relay/sqlstore/credit"
)

const insertMessages = `
INSERT INTO message (account, id, originator, destination, doc)
SELECT $1, id, originator, destination, doc FROM batch WHERE true
ON CONFLICT (account, id) DO NOTHING`

const insertStates = `
INSERT INTO message_state (account, id, part_count, scheduled, report, parts, pending, states, due, untold, expires, version)
SELECT $1, id, part_count, scheduled, report, '', part_count, 1, due, 0, 0, 0 FROM batch`

// Save charges for a batch, saves and queues it.
func (s *Store) Save(ctx context.Context, b message.Batch) (message.Saved, error) {
	if len(b.Messages) == 0 {
		return message.Saved{}, relay.Errorf(relay.KindInvalid, "messages: none to save")
	}
	texts, states, err := rows(&b)
	if err != nil {
		return message.Saved{}, err
	}
	var saved message.Saved
	err = s.db.Write(ctx, "messages: save", func(ctx context.Context, tx *sqlstore.Tx) error {
		before, first, err := order(ctx, tx, &b)
		if saved = before; err != nil || !first {
			return err
		}
		n, err := tx.Exec(ctx, "messages: save", insertMessages, int64(b.Account), texts)
		if err != nil || n == 0 { // 0: they were saved before
			return err
		}
		if n < int64(len(b.Messages)) {
			return relay.Errorf(relay.KindConflict, "messages: ids from %s on belong to other messages", b.Messages[0].ID)
		}
		if _, err := tx.Exec(ctx, "messages: save", insertStates, int64(b.Account), states); err != nil {
			return err
		}
		_, err = credits.Apply(ctx, tx, []credit.Change{charge(&b)})
		return err
	})
	if err != nil {
		return message.Saved{}, err
	}
	return saved, nil
}

// rows are those of message and message_state.
func rows(b *message.Batch) (texts, states *sqlstore.Batch, err error) {
	texts = sqlstore.NewBatch("id bigint, originator text, destination text, doc text")
	states = sqlstore.NewBatch("id bigint, part_count bigint, scheduled bigint, report bigint, due bigint")
	for i := range b.Messages {
		m := &b.Messages[i]
		doc, err := sqlstore.Encode(m)
		if err != nil {
			return nil, nil, fmt.Errorf("message %s: encode: %w", m.ID, err)
		}
		due := m.ScheduledFor
		if !b.Lease.IsZero() && !due.After(b.Now) {
			due = b.Lease
		}
		texts.Add(int64(m.ID), m.Originator, m.Destination, doc)
		states.Add(int64(m.ID), len(m.Parts), m.ScheduledFor, m.Report.URL != "", due)
	}
	return texts, states, nil
}

func charge(b *message.Batch) credit.Change {
	first, last := b.Messages[0].ID, &b.Messages[len(b.Messages)-1]
	return credit.Change{
		ID: "sent-" + first.String(), Account: b.Account, Credits: -b.Credits(), Reason: credit.Sent,
		Reference: span(first, last.EntryID(len(last.Parts)-1)), At: b.Now,
	}
}

// span names entries in a row.
func span(first, last message.ID) string {
	if first == last {
		return first.String()
	}
	return first.String() + "-" + last.String()
}

// A key that has expired is as if it had never been used. While another
// transaction has the key, this waits for its end.
const insertOrder = `
INSERT INTO message_order (account, client_key, content, first_message, answer, expires) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (account, client_key) DO UPDATE
SET content = excluded.content, first_message = excluded.first_message, answer = excluded.answer, expires = excluded.expires
WHERE message_order.expires <= $7`

const selectOrder = `
SELECT content, first_message, answer FROM message_order WHERE account = $1 AND client_key = $2`

// order takes the client's key for an order. first is false for one that was made
// before.
func order(ctx context.Context, tx *sqlstore.Tx, b *message.Batch) (saved message.Saved, first bool, err error) {
	if b.Once.Key == "" {
		return saved, true, nil
	}
	id, answer := int64(b.Messages[0].ID), append([]byte{}, b.Once.Answer...)
	n, err := tx.Exec(ctx, "messages: order", insertOrder, int64(b.Account), b.Once.Key, b.Once.Order, id, answer,
		sqlstore.Millis(b.Now.Add(b.Once.Keep)), sqlstore.Millis(b.Now))
	if err != nil || n > 0 {
		return saved, err == nil, err
	}
	type before struct {
		content string
		first   int64
		answer  []byte
	}
	had, err := sqlstore.One(ctx, tx, "messages: order", selectOrder, func(row *sql.Rows, v *before) error {
		return row.Scan(&v.content, &v.first, &v.answer)
	}, int64(b.Account), b.Once.Key)
	switch {
	case err != nil:
		return saved, false, err
	case had.first == id: // this order, repeated
		return saved, false, nil
	case had.content != b.Once.Order:
		return saved, false, relay.Errorf(relay.KindConflict, "messages: the key belongs to another order")
	}
	return message.Saved{Before: append([]byte{}, had.answer...)}, false, nil
}

// The row may have been taken anew since it was looked for.
const deleteOrders = `
DELETE FROM message_order WHERE expires <= $1 AND (account, client_key) IN (
  SELECT account, client_key FROM message_order WHERE expires <= $1 ORDER BY expires LIMIT $2)`

const deleteRefs = `
DELETE FROM message_ref WHERE expires <= $1 AND (carrier, ref) IN (
  SELECT carrier, ref FROM message_ref WHERE expires <= $1 ORDER BY expires LIMIT $2)`

// sweepMost is how many rows a transaction deletes at most.
const sweepMost = 5000

// Sweep deletes the keys of orders and the ids of carriers that have expired.
// Messages are deleted by Forget.
func (s *Store) Sweep(ctx context.Context, now time.Time) error {
	return errors.Join(s.sweep(ctx, "messages: expired orders", deleteOrders, now), s.sweep(ctx, "messages: expired carrier ids", deleteRefs, now))
}

func (s *Store) sweep(ctx context.Context, noun, query string, now time.Time) error {
	for {
		n, err := s.db.Exec(ctx, noun, query, sqlstore.Millis(now), int64(sweepMost))
		if err != nil || n < sweepMost {
			return err
		}
	}
}
