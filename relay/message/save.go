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

const (
	saveNoun = "messages: save"
	// savedTogether is how many messages of one account a transaction saves at
	// most, unless they are of one order.
	savedTogether = 2000
)

// Save charges for a batch, saves and queues it. Orders of one account that come
// at the same time share a transaction: each changes the account's credit.
func (s *Store) Save(ctx context.Context, b Batch) (Saved, error) {
	if len(b.Messages) == 0 {
		return Saved{}, relay.Errorf(relay.KindInvalid, "messages: none to save")
	}
	return s.saving.Submit(ctx, b.Account, &b)
}

// saveAll saves batches of one account. If one cannot be saved, each is by itself;
// if the database is down, none is.
func (s *Store) saveAll(ctx context.Context, acct relay.AccountID, all []*Batch) []db.Answer[Saved] {
	answers := make([]db.Answer[Saved], len(all))
	together := distinctKeys(all)
	if together {
		saved, err := s.save(ctx, acct, all)
		for i := range all {
			answers[i].Err = err
			if err == nil {
				answers[i].Value = saved[i]
			}
		}
		together = err == nil || len(all) == 1 || relay.KindOf(err) == relay.KindUnavailable
	}
	if together {
		return answers
	}
	for i := range all {
		copy(answers[i:], s.saveAll(ctx, acct, all[i:i+1]))
	}
	return answers
}

// distinctKeys reports whether no two batches have the same key of a client.
func distinctKeys(all []*Batch) bool {
	seen := make(map[string]bool, len(all))
	for _, b := range all {
		if key := b.Once.Key; key != "" && seen[key] {
			return false
		}
		seen[b.Once.Key] = true
	}
	return true
}

// save saves batches of one account, all or none.
func (s *Store) save(ctx context.Context, acct relay.AccountID, all []*Batch) ([]Saved, error) {
	return db.Transact(ctx, s.db, saveNoun, func(ctx context.Context, tx *db.Tx) ([]Saved, error) {
		saved := make([]Saved, len(all))
		var fresh []*Batch
		for _, i := range db.PlacesInOrder(all, func(a, b *Batch) int { return strings.Compare(a.Once.Key, b.Once.Key) }) {
			before, first, err := claimKey(ctx, tx, all[i])
			if err != nil {
				return nil, err
			}
			if saved[i] = before; first {
				fresh = append(fresh, all[i])
			}
		}
		fresh, err := insert(ctx, tx, acct, fresh)
		if err != nil {
			return nil, err
		}
		charges := make([]credit.Change, len(fresh))
		for i, b := range fresh {
			charges[i] = charge(b)
		}
		_, err = credit.Apply(ctx, tx, charges)
		return saved, err
	})
}

// insert inserts the messages of batches and returns the batches that were not
// saved before.
func insert(ctx context.Context, tx *db.Tx, acct relay.AccountID, all []*Batch) (fresh []*Batch, err error) {
	texts := db.NewBatch("id, originator, destination, doc")
	for _, b := range all {
		for i := range b.Messages {
			m := &b.Messages[i]
			texts.Add(m.ID, m.Originator, m.Destination, db.Sealed(db.JSON(m), "message", acct))
		}
	}
	ids, err := db.Values[ID](ctx, tx, saveNoun, `
INSERT INTO message (account, id, originator, destination, doc)
SELECT $1, id, originator, destination, doc FROM batch WHERE true
ON CONFLICT (account, id) DO NOTHING
RETURNING id`, acct, texts)
	if err != nil {
		return nil, err
	}
	inserted := db.By(ids, func(id ID) ID { return id })
	states := db.NewBatch("id, part_count, scheduled, report, due")
	for _, b := range all {
		before := states.Len()
		for i := range b.Messages {
			m := &b.Messages[i]
			if _, is := inserted[m.ID]; is {
				states.Add(m.ID, len(m.Parts), m.ScheduledFor, m.Report.URL != "", dueOf(b, m))
			}
		}
		switch states.Len() - before {
		case len(b.Messages):
			fresh = append(fresh, b)
		case 0: // saved before
		default:
			return nil, relay.Errorf(relay.KindUnexpected, "messages: ids from %s on belong to other messages", b.Messages[0].ID)
		}
	}
	return fresh, tx.Run(ctx, saveNoun, `
INSERT INTO message_state (account, id, part_count, scheduled, report, parts, pending, states, due, untold, expires, version)
SELECT $1, id, part_count, scheduled, report, '', part_count, 1, due, 0, 0, 0 FROM batch`, acct, states)
}

// dueOf is when a new message is due: at the end of the lease if who saves it has
// it in hand.
func dueOf(b *Batch, m *Message) time.Time {
	if !b.Lease.IsZero() && !m.ScheduledFor.After(b.Now) {
		return b.Lease
	}
	return m.ScheduledFor
}

func charge(b *Batch) credit.Change {
	first, last := b.Messages[0].ID, &b.Messages[len(b.Messages)-1]
	entries := first.String()
	if id := last.EntryID(len(last.Parts) - 1); id != first {
		entries += "-" + id.String()
	}
	return credit.Change{
		ID: "sent-" + first.String(), Account: b.Account, Credits: -b.Credits(), Reason: credit.Sent, Reference: entries, At: b.Now,
	}
}

// claimKey takes the client's key for an order. first is false for one that was made
// before.
func claimKey(ctx context.Context, tx *db.Tx, b *Batch) (saved Saved, first bool, err error) {
	if b.Once.Key == "" {
		return saved, true, nil
	}
	id, answer := b.Messages[0].ID, append([]byte{}, b.Once.Answer...)
	// A key that has expired is as if it had never been used. While another transaction has
	// the key, this waits for its end.
	n, err := tx.Exec(ctx, saveNoun, db.Upsert("message_order", "account, client_key", "content, first_message, answer, expires")+
		" WHERE message_order.expires <= $7", b.Account, b.Once.Key, b.Once.Order, id, answer, b.Now.Add(b.Once.Keep), b.Now)
	if err != nil || n > 0 {
		return saved, err == nil, err
	}
	type before struct {
		content string
		first   ID
		answer  []byte
	}
	had, err := db.One(ctx, tx, saveNoun, `
SELECT content, first_message, answer FROM message_order WHERE account = $1 AND client_key = $2`, func(v *before) []any {
		return []any{&v.content, &v.first, &v.answer}
	}, b.Account, b.Once.Key)
	switch {
	case err != nil:
		return saved, false, err
	case had.first == id: // this order, repeated
		return saved, false, nil
	case had.content != b.Once.Order:
		return saved, false, relay.Errorf(relay.KindConflict, "messages: the key belongs to another order")
	}
	return Saved{Before: append([]byte{}, had.answer...)}, false, nil
}

// Sweep deletes the keys of orders and the ids of carriers that have expired.
// Messages are deleted by Forget.
func (s *Store) Sweep(ctx context.Context, now time.Time) error {
	return errors.Join(
		s.db.SweepExpired(ctx, "messages: expired orders", "message_order", "account, client_key", "expires", now),
		s.db.SweepExpired(ctx, "messages: expired carrier ids", "message_ref", "carrier, ref", "expires", now),
	)
}
