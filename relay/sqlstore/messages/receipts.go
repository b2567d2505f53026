package messages

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/penstock/penstock/relay"
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

// boundPart is a part that an id names, and its message's destination.
type boundPart struct {
	part   message.PartRef
	number string
}

// bound is what is kept of an id: the part that was bound to it last, and those
// before, because an SMSC may use an id twice. Message 0 is none.
type bound struct {
	key refKey
	boundPart
	early   string
	earlier string
}

func (b *bound) fields() []any {
	return []any{&b.key.carrier, &b.key.id, &b.part.Account, &b.part.ID, &b.part.Part, &b.number, &b.early, &b.earlier}
}

// parts are those that the id names, the last first. An entry of earlier that was
// cut off has no comma behind it.
func (b *bound) parts() []boundPart {
	if b == nil || b.part.ID == 0 {
		return nil
	}
	list := []boundPart{b.boundPart}
	for entry := range strings.SplitAfterSeq(b.earlier, ",") {
		var n boundPart
		if _, err := fmt.Sscanf(entry, "%d %d %d %s", &n.part.Account, &n.part.ID, &n.part.Part, &n.number); err == nil && strings.HasSuffix(entry, ",") {
			n.number = strings.TrimSuffix(n.number, ",")
			list = append(list, n)
		}
	}
	return list
}

// agrees reports whether a receipt is about the part. The receipt's first id is
// as the network wrote it: that counts unless the receipt names another number.
// Another id may be that of another message.
func (b *bound) agrees(n *boundPart, r *message.Receipt) bool {
	if n.number == "" || len(r.Numbers) == 0 {
		return true
	}
	if slices.ContainsFunc(r.Numbers, func(number string) bool { return ending(number) == ending(n.number) }) {
		return true
	}
	return r.Destination == "" && (len(r.IDs) == 0 || b.key == keyOf(r.Carrier, r.IDs[0]))
}

// ending is what is the same in all ways to write a number.
func ending(number string) string {
	const subscriber = 7
	return number[max(0, len(number)-subscriber):]
}

// name gives a receipt the part that it is about, if it has none yet: of several
// the last.
func (b *bound) name(r *message.Receipt) {
	if r.Found {
		return
	}
	list := b.parts()
	if i := slices.IndexFunc(list, func(n boundPart) bool { return b.agrees(&n, r) }); i >= 0 {
		r.Part, r.Found = list[i].part, true
	}
}

// Bind keeps which part a carrier's ids name, and returns the receipts that came
// before.
func (s *Store) Bind(ctx context.Context, bindings []message.Binding) ([]message.Receipt, error) {
	var all []bound
	for _, b := range bindings {
		for _, id := range b.IDs {
			all = append(all, bound{key: keyOf(b.Carrier, id), boundPart: boundPart{b.Part, b.Number}})
		}
	}
	rounds := sqlstore.Rounds(all, func(b *bound) refKey { return b.key })
	return sqlstore.Transact(ctx, s.db, "messages: bind", func(ctx context.Context, tx *sqlstore.Tx) (early []message.Receipt, err error) {
		for _, round := range rounds {
			receipts, err := bind(ctx, tx, round)
			if err != nil {
				return nil, err
			}
			early = append(early, receipts...)
		}
		return early, nil
	})
}

// bind binds ids that differ.
func bind(ctx context.Context, tx *sqlstore.Tx, ids []bound) (early []message.Receipt, err error) {
	b := sqlstore.BatchOf("carrier, ref, account, message, part, number", ids, func(b *bound) []any {
		return []any{b.key.carrier, b.key.id, b.part.Account, b.part.ID, b.part.Part, b.number}
	})
	now := tx.Now()
	// A part that was bound before goes in front of those before it. Receipts that came before
	// their id was bound are kept, to be read again if the binding is repeated.
	found, err := boundByKey(sqlstore.List(ctx, tx, "messages: bind", `
INSERT INTO message_ref (carrier, ref, account, message, part, number, early, earlier, expires)
SELECT carrier, ref, account, message, part, number, '', '', $1 FROM batch WHERE true ORDER BY carrier, ref
ON CONFLICT (carrier, ref) DO UPDATE
SET account = excluded.account, message = excluded.message, part = excluded.part, number = excluded.number, expires = excluded.expires,
  early = CASE WHEN message_ref.expires <= $2 THEN '' ELSE message_ref.early END,
  earlier = CASE
    WHEN message_ref.expires <= $2 OR message_ref.message = 0 THEN ''
    WHEN message_ref.account = excluded.account AND message_ref.message = excluded.message
      AND message_ref.part = excluded.part AND message_ref.number = excluded.number THEN message_ref.earlier
    ELSE substr(CAST(message_ref.account AS TEXT) || ' ' || CAST(message_ref.message AS TEXT) || ' ' || CAST(message_ref.part AS TEXT)
      || ' ' || message_ref.number || ',' || message_ref.earlier, 1, 1000) END
RETURNING carrier, ref, account, message, part, number, early, earlier`, (*bound).fields, now.Add(refKept), now, b))
	for i := 0; i < len(ids) && err == nil; i++ {
		if one := found[ids[i].key]; one != nil && one.early != "" {
			early, err = one.appendEarly(early)
		}
	}
	return early, err
}

// appendEarly appends the receipts that came before the id was bound, and are
// about the part that is bound now: of several that a receipt may be about it is
// the first that was bound.
func (b *bound) appendEarly(early []message.Receipt) ([]message.Receipt, error) {
	var list []message.Receipt
	if err := json.Unmarshal([]byte("["+strings.TrimSuffix(b.early, ",")+"]"), &list); err != nil {
		return nil, relay.Errorf(relay.KindUnexpected, "messages: early receipt of %s: %w", b.key.id, err)
	}
	parts := b.parts()
	slices.Reverse(parts)
	for _, r := range list {
		i := slices.IndexFunc(parts, func(n boundPart) bool { return b.agrees(&n, &r) })
		if i >= 0 && parts[i].part == b.part {
			r.Part, r.Found = b.part, true
			early = append(early, r)
		}
	}
	return early, nil
}

// Match finds the parts of receipts.
func (s *Store) Match(ctx context.Context, receipts []message.Receipt) ([]message.Receipt, error) {
	refs, err := s.lookUp(ctx, receipts)
	if err != nil {
		return nil, err
	}
	var unmatched []earlyReceipt
	for i := range receipts {
		r := &receipts[i]
		for _, id := range r.IDs {
			refs[keyOf(r.Carrier, id)].name(r)
		}
		if r.Found {
			continue
		}
		doc, err := sqlstore.Encode(r)
		if err != nil {
			return nil, fmt.Errorf("messages: receipt: encode: %w", err)
		}
		for n, id := range r.IDs {
			// The first id may be bound to another part too, when it was used twice.
			if key := keyOf(r.Carrier, id); n == 0 || refs[key] == nil {
				unmatched = append(unmatched, earlyReceipt{key, doc + ",", r})
			}
		}
	}
	if len(unmatched) == 0 {
		return receipts, nil
	}
	all := sqlstore.Rounds(unmatched, func(e *earlyReceipt) refKey { return e.key })
	names, err := sqlstore.Transact(ctx, s.db, "messages: receipts", func(ctx context.Context, tx *sqlstore.Tx) ([]map[refKey]*bound, error) {
		names := make([]map[refKey]*bound, len(all))
		for i, round := range all {
			found, err := keepEarlyReceipts(ctx, tx, round)
			if err != nil {
				return nil, err
			}
			names[i] = found
		}
		return names, nil
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

// earlyReceipt is a receipt that came before its id was bound.
type earlyReceipt struct {
	key refKey
	doc string
	of  *message.Receipt
}

// keepEarlyReceipts keeps receipts until their ids are bound, and returns the ids that
// are.
func keepEarlyReceipts(ctx context.Context, tx *sqlstore.Tx, list []earlyReceipt) (map[refKey]*bound, error) {
	b := sqlstore.NewBatch("carrier, ref, receipt")
	for _, e := range list {
		if len(e.doc) > earlyBytes {
			e.doc = ""
		}
		b.Add(e.key.carrier, e.key.id, e.doc)
	}
	now := tx.Now()
	// An id that is bound meanwhile keeps its part; one that has expired is as if it had never
	// been there.
	return boundByKey(sqlstore.List(ctx, tx, "messages: receipts", `
INSERT INTO message_ref (carrier, ref, account, message, part, number, early, earlier, expires)
SELECT carrier, ref, 0, 0, 0, '', receipt, '', $1 FROM batch WHERE true ORDER BY carrier, ref
ON CONFLICT (carrier, ref) DO UPDATE
SET account = CASE WHEN message_ref.expires <= $2 THEN 0 ELSE message_ref.account END,
  message = CASE WHEN message_ref.expires <= $2 THEN 0 ELSE message_ref.message END,
  earlier = CASE WHEN message_ref.expires <= $2 THEN '' ELSE message_ref.earlier END,
  expires = CASE WHEN message_ref.expires <= $2 THEN excluded.expires ELSE message_ref.expires END,
  early = CASE
    WHEN message_ref.expires <= $2 THEN excluded.early
    WHEN octet_length(message_ref.early) + octet_length(excluded.early) <= $3 THEN message_ref.early || excluded.early
    ELSE message_ref.early END
RETURNING carrier, ref, account, message, part, number, '', earlier`, (*bound).fields,
		now.Add(earlyKept), now, earlyBytes, b))
}

// lookUp returns the parts that the ids of receipts name.
func (s *Store) lookUp(ctx context.Context, receipts []message.Receipt) (map[refKey]*bound, error) {
	b := sqlstore.NewBatch("carrier, ref")
	for i := range receipts {
		for _, id := range receipts[i].IDs {
			b.Add(receipts[i].Carrier, id)
		}
	}
	return boundByKey(sqlstore.List(ctx, s.db, "messages: receipts", `
SELECT r.carrier, r.ref, r.account, r.message, r.part, r.number, '', r.earlier FROM batch CROSS JOIN message_ref r
WHERE r.carrier = batch.carrier AND r.ref = batch.ref AND r.message > 0 AND r.expires > $1`, (*bound).fields, s.db.Now(), b))
}

// boundByKey finds what is kept of ids.
func boundByKey(list []bound, err error) (map[refKey]*bound, error) {
	return sqlstore.Index(list, err, func(b *bound) refKey { return b.key })
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
