package messages

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/message"
	"github.com/penstock/penstock/relay/sqlstore"
)

const (
	// refKept is how long a carrier's id of a part is known: longer than networks
	// try to reach a phone.
	refKept = 14 * 24 * time.Hour
	// earlyKept is how long a receipt waits for the answer that it was faster
	// than.
	earlyKept = 24 * time.Hour
	// earlyBytes is what is kept of receipts for one id that is not bound.
	earlyBytes = 16 << 10
)

// refKey is a carrier's id of a part.
type refKey struct{ carrier, id string }

// keyOf has the id as the database keeps it, see sqlstore.Batch.
func keyOf(carrier, id string) refKey {
	return refKey{carrier, strings.ReplaceAll(strings.ToValidUTF8(id, "\ufffd"), "\x00", "\ufffd")}
}

// bound is the part that an id names, and its destination. Message 0 is none.
type bound struct {
	key    refKey
	part   message.PartRef
	number string
	early  string
}

func scanBound(row *sql.Rows, b *bound) error {
	var acct, id int64
	err := row.Scan(&b.key.carrier, &b.key.id, &acct, &id, &b.part.Part, &b.number, &b.early)
	b.part.Ref = message.Ref{Account: account.ID(acct), ID: message.ID(id)}
	return err
}

// agrees reports whether a receipt is about the part. Its first id is as the
// network wrote it; another may be that of another message, to another number.
func (b *bound) agrees(r *message.Receipt) bool {
	if len(r.IDs) == 0 || b.key == keyOf(r.Carrier, r.IDs[0]) || b.number == "" || len(r.Numbers) == 0 {
		return true
	}
	return slices.ContainsFunc(r.Numbers, func(number string) bool { return ending(number) == ending(b.number) })
}

// ending is what is the same in all ways to write a number.
func ending(number string) string {
	const subscriber = 7
	return number[max(0, len(number)-subscriber):]
}

// name gives a receipt the part, if it is about it and has none yet.
func (b *bound) name(r *message.Receipt) {
	if b != nil && b.part.ID != 0 && !r.Found && b.agrees(r) {
		r.Part, r.Found = b.part, true
	}
}

// Receipts that came before stay with the first part that the id names, to be
// read again if the binding is repeated; for another part they mean nothing.
const bindRefs = `
INSERT INTO message_ref (carrier, ref, account, message, part, number, early, expires)
SELECT carrier, ref, account, message, part, number, '', $1 FROM batch WHERE true ORDER BY carrier, ref
ON CONFLICT (carrier, ref) DO UPDATE
SET account = excluded.account, message = excluded.message, part = excluded.part, number = excluded.number, expires = excluded.expires,
  early = CASE
    WHEN message_ref.expires <= $2 THEN ''
    WHEN message_ref.message = 0 THEN message_ref.early
    WHEN message_ref.account = excluded.account AND message_ref.message = excluded.message
      AND message_ref.part = excluded.part AND message_ref.number = excluded.number THEN message_ref.early
    ELSE '' END
RETURNING carrier, ref, account, message, part, number, early`

// Bind keeps which part a carrier's ids name, and returns the receipts that came
// before.
func (s *Store) Bind(ctx context.Context, bindings []message.Binding) ([]message.Receipt, error) {
	var all []bound
	for _, b := range bindings {
		for _, id := range b.IDs {
			all = append(all, bound{key: keyOf(b.Carrier, id), part: b.Part, number: b.Number})
		}
	}
	var early []message.Receipt
	err := s.db.Write(ctx, "messages: bind", func(ctx context.Context, tx *sqlstore.Tx) error {
		early = nil
		for _, round := range rounds(all, func(b *bound) refKey { return b.key }) {
			receipts, err := bind(ctx, tx, round)
			if err != nil {
				return err
			}
			early = append(early, receipts...)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return early, nil
}

// bind binds ids that differ.
func bind(ctx context.Context, tx *sqlstore.Tx, ids []bound) (early []message.Receipt, err error) {
	b := sqlstore.NewBatch("carrier text, ref text, account bigint, message bigint, part bigint, number text")
	for _, one := range ids {
		b.Add(one.key.carrier, one.key.id, int64(one.part.Account), int64(one.part.ID), one.part.Part, one.number)
	}
	now := tx.Now()
	found, err := index(sqlstore.List(ctx, tx, "messages: bind", bindRefs, scanBound, sqlstore.Millis(now.Add(refKept)), sqlstore.Millis(now), b))
	for i := 0; i < len(ids) && err == nil; i++ {
		if one := found[ids[i].key]; one != nil && one.early != "" {
			early, err = one.appendEarly(early)
		}
	}
	return early, err
}

// appendEarly appends the receipts that came before and are about the part.
func (b *bound) appendEarly(early []message.Receipt) ([]message.Receipt, error) {
	var list []message.Receipt
	if err := json.Unmarshal([]byte("["+strings.TrimSuffix(b.early, ",")+"]"), &list); err != nil {
		return nil, relay.Errorf(relay.KindUnexpected, "messages: early receipt of %s: %w", b.key.id, err)
	}
	for i := range list {
		if b.name(&list[i]); list[i].Found {
			early = append(early, list[i])
		}
	}
	return early, nil
}

// rounds are the items in their order, such that no round has two of one key: a
// statement changes a row once.
func rounds[T any](items []T, key func(*T) refKey) (out [][]T) {
	seen := make(map[refKey]int, len(items))
	for i := range items {
		k := key(&items[i])
		if seen[k] == len(out) {
			out = append(out, nil)
		}
		out[seen[k]] = append(out[seen[k]], items[i])
		seen[k]++
	}
	return out
}

const selectRefs = `
SELECT r.carrier, r.ref, r.account, r.message, r.part, r.number, '' FROM batch CROSS JOIN message_ref r
WHERE r.carrier = batch.carrier AND r.ref = batch.ref AND r.message > 0 AND r.expires > $1`

// An id that is bound meanwhile keeps its part; one that has expired is as if it
// had never been there.
const keepEarly = `
INSERT INTO message_ref (carrier, ref, account, message, part, number, early, expires)
SELECT carrier, ref, 0, 0, 0, '', receipt, $1 FROM batch WHERE true ORDER BY carrier, ref
ON CONFLICT (carrier, ref) DO UPDATE
SET account = CASE WHEN message_ref.expires <= $2 THEN 0 ELSE message_ref.account END,
  message = CASE WHEN message_ref.expires <= $2 THEN 0 ELSE message_ref.message END,
  expires = CASE WHEN message_ref.expires <= $2 THEN excluded.expires ELSE message_ref.expires END,
  early = CASE
    WHEN message_ref.expires <= $2 THEN excluded.early
    WHEN message_ref.message = 0 AND octet_length(message_ref.early) + octet_length(excluded.early) <= $3 THEN message_ref.early || excluded.early
    ELSE message_ref.early END
RETURNING carrier, ref, account, message, part, number, ''`

// Match finds the parts of receipts.
func (s *Store) Match(ctx context.Context, receipts []message.Receipt) ([]message.Receipt, error) {
	known, err := s.known(ctx, receipts)
	if err != nil {
		return nil, err
	}
	var unknown []early
	for i := range receipts {
		r := &receipts[i]
		for _, id := range r.IDs {
			known[keyOf(r.Carrier, id)].name(r)
		}
		if r.Found {
			continue
		}
		doc, err := sqlstore.Encode(r)
		if err != nil {
			return nil, fmt.Errorf("messages: receipt: encode: %w", err)
		}
		for _, id := range r.IDs {
			if key := keyOf(r.Carrier, id); known[key] == nil {
				unknown = append(unknown, early{key, doc + ",", r})
			}
		}
	}
	if len(unknown) == 0 {
		return receipts, nil
	}
	var names []map[refKey]*bound
	all := rounds(unknown, func(e *early) refKey { return e.key })
	err = s.db.Write(ctx, "messages: receipts", func(ctx context.Context, tx *sqlstore.Tx) error {
		names = nil
		for _, round := range all {
			found, err := keep(ctx, tx, round)
			if err != nil {
				return err
			}
			names = append(names, found)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i, round := range all { // it may have been bound meanwhile
		for _, e := range round {
			names[i][e.key].name(e.of)
		}
	}
	return receipts, nil
}

// early is a receipt that came before its id was bound.
type early struct {
	key refKey
	doc string
	of  *message.Receipt
}

// keep keeps receipts until their ids are bound, and returns the ids that are.
func keep(ctx context.Context, tx *sqlstore.Tx, list []early) (map[refKey]*bound, error) {
	b := sqlstore.NewBatch("carrier text, ref text, receipt text")
	for _, e := range list {
		if len(e.doc) > earlyBytes {
			e.doc = ""
		}
		b.Add(e.key.carrier, e.key.id, e.doc)
	}
	now := tx.Now()
	return index(sqlstore.List(ctx, tx, "messages: receipts", keepEarly, scanBound,
		sqlstore.Millis(now.Add(earlyKept)), sqlstore.Millis(now), int64(earlyBytes), b))
}

// known looks up the parts that the ids of receipts name.
func (s *Store) known(ctx context.Context, receipts []message.Receipt) (map[refKey]*bound, error) {
	b := sqlstore.NewBatch("carrier text, ref text")
	for i := range receipts {
		for _, id := range receipts[i].IDs {
			b.Add(receipts[i].Carrier, id)
		}
	}
	if b.Len() == 0 {
		return nil, nil
	}
	return index(sqlstore.List(ctx, s.db, "messages: receipts", selectRefs, scanBound, sqlstore.Millis(s.db.Now()), b))
}

func index(list []bound, err error) (map[refKey]*bound, error) {
	out := make(map[refKey]*bound, len(list))
	for i := range list {
		out[list[i].key] = &list[i]
	}
	return out, err
}

// Receive records receipts of parts; those that are not Found are passed over.
func (s *Store) Receive(ctx context.Context, receipts []message.Receipt, now time.Time) ([]message.Message, error) {
	var changes []change
	for i := range receipts {
		if r := &receipts[i]; r.Found {
			changes = append(changes, change{Outcome: message.Outcome{PartRef: r.Part, State: r.State, At: r.At}, report: r.Line, now: now})
		}
	}
	return s.settle(ctx, "messages: receive", changes)
}
