package message

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
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

// keyOf has the id as the database keeps it, see db.Batch.
func keyOf(carrier, id string) refKey {
	return refKey{carrier, strings.ReplaceAll(strings.ToValidUTF8(id, "\ufffd"), "\x00", "\ufffd")}
}

// boundPart is a part that an id names, and its message's destination.
type boundPart struct {
	part   PartRef
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
func (b *bound) agrees(n *boundPart, r *Receipt) bool {
	if n.number == "" || len(r.Numbers) == 0 {
		return true
	}
	if slices.ContainsFunc(r.Numbers, func(number string) bool { return ending(number) == ending(n.number) }) {
		return true
	}
	return r.Destination == "" && (len(r.IDs) == 0 || b.key == keyOf(r.Carrier, r.IDs[0]))
}

// ending is what is the same in all ways to write a number or a name.
func ending(address string) string {
	const subscriber = 7
	return strings.ToLower(address[max(0, len(address)-subscriber):])
}

// name gives a receipt the part that it is about, if it has none yet: of several
// the last.
func (b *bound) name(r *Receipt) {
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
func (s *Store) Bind(ctx context.Context, bindings []Binding) ([]Receipt, error) {
	var all []bound
	for _, b := range bindings {
		for _, id := range b.IDs {
			all = append(all, bound{key: keyOf(b.Carrier, id), boundPart: boundPart{b.Part, b.Number}})
		}
	}
	rounds := db.Rounds(all, func(b *bound) refKey { return b.key })
	early, err := db.Transact(ctx, s.db, "messages: bind", func(ctx context.Context, tx *db.Tx) (early []Receipt, err error) {
		for _, round := range rounds {
			receipts, err := bind(ctx, tx, round)
			if err != nil {
				return nil, err
			}
			early = append(early, receipts...)
		}
		return early, nil
	})
	if err != nil || !slices.ContainsFunc(early, func(r Receipt) bool { return !r.Found }) {
		return early, err
	}
	if err := s.matchOtherBases(ctx, early); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(early, func(r Receipt) bool { return !r.Found && !r.Held }), nil
}

// bind binds ids that differ.
func bind(ctx context.Context, tx *db.Tx, ids []bound) (early []Receipt, err error) {
	b := db.BatchOf("carrier, ref, account, message, part, number", ids, func(b *bound) []any {
		return []any{b.key.carrier, b.key.id, b.part.Account, b.part.ID, b.part.Part, b.number}
	})
	now := tx.Now()
	// A part that was bound before goes in front of those before it. Receipts that came before
	// their id was bound are kept, to be read again if the binding is repeated.
	found, err := boundByKey(db.List(ctx, tx, "messages: bind", `
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
// the first that was bound. A receipt with the id in another base is not Found yet.
func (b *bound) appendEarly(early []Receipt) ([]Receipt, error) {
	var list []Receipt
	if err := json.Unmarshal([]byte("["+strings.TrimSuffix(b.early, ",")+"]"), &list); err != nil {
		return nil, relay.Errorf(relay.KindUnexpected, "messages: early receipt of %s: %w", b.key.id, err)
	}
	parts := b.parts()
	slices.Reverse(parts)
	for _, r := range list {
		i := slices.IndexFunc(parts, func(n boundPart) bool { return b.agrees(&n, &r) })
		if i >= 0 && parts[i].part == b.part {
			if r.Found = slices.ContainsFunc(r.IDs, func(id string) bool { return b.key == keyOf(r.Carrier, id) }); r.Found {
				r.Part = b.part
			}
			early = append(early, r)
		}
	}
	return early, nil
}

// Match finds the parts of receipts.
func (s *Store) Match(ctx context.Context, receipts []Receipt) ([]Receipt, error) {
	refs, err := s.lookUp(ctx, receipts)
	if err != nil {
		return nil, err
	}
	otherBase := false
	wasHeld := make([]bool, len(receipts)) // and is kept
	for i := range receipts {
		r := &receipts[i]
		wasHeld[i], r.Held = r.Held, false
		nameExactly(refs, r)
		otherBase = otherBase || !r.Found && slices.ContainsFunc(r.OtherBases, func(id string) bool { return refs[keyOf(r.Carrier, id)] != nil })
	}
	if otherBase {
		if err := s.matchOtherBases(ctx, receipts); err != nil {
			return nil, err
		}
	}
	var unmatched []earlyReceipt
	for i := range receipts {
		r := &receipts[i]
		if r.Found || wasHeld[i] {
			continue
		}
		doc, err := db.Encode(r)
		if err != nil {
			return nil, fmt.Errorf("messages: receipt: encode: %w", err)
		}
		for n, id := range slices.Concat(r.IDs, r.OtherBases) {
			// The first id may be bound to another part too, when it was used twice.
			if key := keyOf(r.Carrier, id); n == 0 || refs[key] == nil {
				unmatched = append(unmatched, earlyReceipt{key, doc + ",", r})
			}
		}
	}
	if len(unmatched) == 0 {
		return receipts, nil
	}
	all := db.Rounds(unmatched, func(e *earlyReceipt) refKey { return e.key })
	names, err := db.Transact(ctx, s.db, "messages: receipts", func(ctx context.Context, tx *db.Tx) ([]map[refKey]*bound, error) {
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
			if slices.ContainsFunc(e.of.IDs, func(id string) bool { return e.key == keyOf(e.of.Carrier, id) }) {
				names[i][e.key].name(e.of)
			} else if len(names[i][e.key].parts()) > 0 {
				e.of.Held = true
			}
		}
	}
	for i := range receipts {
		receipts[i].Held = receipts[i].Held && !receipts[i].Found
	}
	return receipts, nil
}

// nameExactly gives a receipt the part that one of its ids names.
func nameExactly(refs map[refKey]*bound, r *Receipt) {
	for _, id := range r.IDs {
		refs[keyOf(r.Carrier, id)].name(r)
	}
}

// matchOtherBases finds the parts of receipts that are not Found by their ids in other
// bases. A receipt may arrive before the answer that has its id. So it is Held if it may
// be about a part without an answer.
func (s *Store) matchOtherBases(ctx context.Context, receipts []Receipt) error {
	// The ids are looked up after the parts without an answer: one that is answered
	// in between is bound.
	unanswered, err := s.unanswered(ctx)
	if err != nil {
		return err
	}
	refs, err := s.lookUp(ctx, receipts)
	if err != nil {
		return err
	}
	sent, err := s.sentMessages(ctx, refs)
	if err != nil {
		return err
	}
	for i := range receipts {
		r := &receipts[i]
		if nameExactly(refs, r); r.Found {
			continue
		}
		for _, id := range r.OtherBases {
			parts := refs[keyOf(r.Carrier, id)].parts()
			n := slices.IndexFunc(parts, func(b boundPart) bool { return sent[b.part.Ref].awaits(b.part.Part, r) })
			if n < 0 {
				continue
			}
			r.Held = slices.ContainsFunc(unanswered, func(m sentMessage) bool { return m.mayBeAnswered(r, parts[n].part) })
			if r.Found = !r.Held; r.Found {
				r.Part = parts[n].part
			}
			break
		}
	}
	return nil
}

// sentMessage is a message and the states of its parts.
type sentMessage struct {
	originator, number string
	state
}

const sentColumns = `m.originator, m.destination, ` + stateColumns

func sentFields(m *sentMessage) []any {
	return append([]any{&m.originator, &m.number}, stateFields(&m.state)...)
}

// unanswered returns the messages with parts that were submitted and are not answered.
func (s *Store) unanswered(ctx context.Context) ([]sentMessage, error) {
	return db.List(ctx, s.db, "messages: unanswered", `
SELECT `+sentColumns+`
FROM message_state s
JOIN message m ON m.account = s.account AND m.id = s.id
WHERE (s.states & 2) = 2`, sentFields)
}

// sentMessages returns the messages that ids name.
func (s *Store) sentMessages(ctx context.Context, refs map[refKey]*bound) (map[Ref]*sentMessage, error) {
	var parts []boundPart
	for _, b := range refs {
		parts = append(parts, b.parts()...)
	}
	list, err := db.List(ctx, s.db, "messages: receipts", `
SELECT `+sentColumns+`
FROM batch
CROSS JOIN message_state s
JOIN message m ON m.account = s.account AND m.id = s.id
WHERE s.account = batch.account AND s.id = batch.id`, sentFields,
		refBatch(distinct(parts, func(b *boundPart) Ref { return b.part.Ref })))
	return db.Index(list, err, func(m *sentMessage) Ref { return m.Ref })
}

// maxClockSkew is the largest difference between the clocks of gateways.
const maxClockSkew = time.Minute

// agrees reports whether the addresses of a receipt are those of the message, and the
// receipt arrived after a time in milliseconds. A missing address agrees with all.
func (m *sentMessage) agrees(r *Receipt, since int64) bool {
	among := func(list []string, address string) bool {
		return address == "" || slices.ContainsFunc(list, func(a string) bool { return ending(a) == ending(address) })
	}
	return since <= db.Millis(r.At.Add(maxClockSkew)) &&
		(len(r.Numbers) == 0 || among(r.Numbers, m.number)) &&
		(len(r.Addresses) < 2 || among(r.Addresses, m.originator))
}

// awaits reports whether a part of the message has not ended, or has ended by this very
// receipt, and the receipt agrees with the message.
func (m *sentMessage) awaits(n int, r *Receipt) bool {
	if m == nil || n >= len(m.parts) || !m.agrees(r, m.scheduled) {
		return false
	}
	p, arrived := &m.parts[n], db.Millis(r.At)
	return !p.State.Ended() ||
		p.State == r.State && (p.Changed == arrived || r.Line != "" && p.Report == r.Line) ||
		r.State == Buffered && p.Buffered == arrived
}

// mayBeAnswered reports whether the receipt may be about a part of the message that waits
// for the carrier's answer, other than the given part.
func (m *sentMessage) mayBeAnswered(r *Receipt, except PartRef) bool {
	for n := range m.parts {
		p := &m.parts[n]
		if p.State == Sending && p.Carrier == r.Carrier && m.agrees(r, p.Changed) && (PartRef{Ref: m.Ref, Part: n}) != except {
			return true
		}
	}
	return false
}

// earlyReceipt is a receipt that came before its id was bound.
type earlyReceipt struct {
	key refKey
	doc string
	of  *Receipt
}

// keepEarlyReceipts keeps receipts until their ids are bound, and returns the ids that
// are.
func keepEarlyReceipts(ctx context.Context, tx *db.Tx, list []earlyReceipt) (map[refKey]*bound, error) {
	b := db.NewBatch("carrier, ref, receipt")
	for _, e := range list {
		if len(e.doc) > earlyBytes {
			e.doc = ""
		}
		b.Add(e.key.carrier, e.key.id, e.doc)
	}
	now := tx.Now()
	// An id that is bound meanwhile keeps its part; one that has expired is as if it had never
	// been there.
	return boundByKey(db.List(ctx, tx, "messages: receipts", `
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
func (s *Store) lookUp(ctx context.Context, receipts []Receipt) (map[refKey]*bound, error) {
	b := db.NewBatch("carrier, ref")
	for i := range receipts {
		for _, id := range slices.Concat(receipts[i].IDs, receipts[i].OtherBases) {
			b.Add(receipts[i].Carrier, id)
		}
	}
	return boundByKey(db.List(ctx, s.db, "messages: receipts", `
SELECT r.carrier, r.ref, r.account, r.message, r.part, r.number, '', r.earlier FROM batch CROSS JOIN message_ref r
WHERE r.carrier = batch.carrier AND r.ref = batch.ref AND r.message > 0 AND r.expires > $1`, (*bound).fields, s.db.Now(), b))
}

// boundByKey finds what is kept of ids.
func boundByKey(list []bound, err error) (map[refKey]*bound, error) {
	return db.Index(list, err, func(b *bound) refKey { return b.key })
}

// Receive records receipts of parts; those that are not Found are passed over.
func (s *Store) Receive(ctx context.Context, receipts []Receipt, now time.Time) ([]Message, error) {
	var changes []change
	for i := range receipts {
		if r := &receipts[i]; r.Found {
			changes = append(changes, change{Outcome: Outcome{PartRef: r.Part, State: r.State, At: r.At}, report: r.Line, now: now})
		}
	}
	return s.settle(ctx, "messages: receive", changes)
}
