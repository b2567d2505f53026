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
	// boundTime is the time for which a carrier's id of a part is stored. It is longer than
	// networks try to reach a phone.
	boundTime = 14 * 24 * time.Hour
	// earlyTime is the time for which a receipt that arrived before its id was bound is
	// stored.
	earlyTime = 24 * time.Hour
	// maxEarlyBytes bounds the size of the receipts that are stored for one id.
	maxEarlyBytes = 16 << 10
	// maxClockSkew is the largest difference between the clocks of gateways.
	maxClockSkew = time.Minute
)

// idKey is the key of a carrier's id in the database.
type idKey struct{ carrier, id string }

// idKeyOf returns the key of an id, in which the database replaces characters that it cannot
// store, see db.Batch.
func idKeyOf(carrier, id string) idKey {
	return idKey{carrier, strings.ReplaceAll(strings.ToValidUTF8(id, "\ufffd"), "\x00", "\ufffd")}
}

// boundPart is a part to which an id is bound.
type boundPart struct {
	part   PartRef
	number string // the message's destination
}

// boundID is a row of message_ref: the part to which an id was bound last, with message 0 if
// the id is not bound, and the earlier parts, because an SMSC may use an id twice.
type boundID struct {
	key idKey
	boundPart
	earlyReceipts string // receipts that arrived before the id was bound, as JSON, each with a comma after it
	earlierParts  string // "account message part number,", the latest first; the last may be cut off
}

func (b *boundID) fields() []any {
	return []any{&b.key.carrier, &b.key.id, &b.part.Account, &b.part.ID, &b.part.Part, &b.number, &b.earlyReceipts, &b.earlierParts}
}

// parts returns the parts to which the id was bound, the latest first.
func (b *boundID) parts() []boundPart {
	if b == nil || b.part.ID == 0 {
		return nil
	}
	parts := []boundPart{b.boundPart}
	for entry := range strings.SplitAfterSeq(b.earlierParts, ",") {
		var p boundPart
		n, _ := fmt.Sscanf(entry, "%d %d %d %s", &p.part.Account, &p.part.ID, &p.part.Part, &p.number)
		if n == 4 && strings.HasSuffix(entry, ",") {
			p.number = strings.TrimSuffix(p.number, ",")
			parts = append(parts, p)
		}
	}
	return parts
}

// agrees reports whether a receipt may be about the part. If the numbers differ, b must be the
// receipt's first id, which the carrier assigned, and the receipt must have no Destination: the
// other ids of a receipt may belong to other messages.
func (b *boundID) agrees(p *boundPart, r *Receipt) bool {
	if p.number == "" || len(r.Numbers) == 0 {
		return true
	}
	if slices.ContainsFunc(r.Numbers, func(number string) bool { return suffix(number) == suffix(p.number) }) {
		return true
	}
	return r.Destination == "" && (len(r.IDs) == 0 || b.key == idKeyOf(r.Carrier, r.IDs[0]))
}

// suffix returns the end of a number or a name, which is the same in all notations.
func suffix(address string) string {
	const subscriberDigits = 7
	return strings.ToLower(address[max(0, len(address)-subscriberDigits):])
}

// match sets the Part of a receipt that is not Matched to the latest part that agrees.
func (b *boundID) match(r *Receipt) {
	if r.Matched {
		return
	}
	parts := b.parts()
	if i := slices.IndexFunc(parts, func(p boundPart) bool { return b.agrees(&p, r) }); i >= 0 {
		r.Part, r.Matched = parts[i].part, true
	}
}

// indexBoundIDs indexes the ids that db.List has returned.
func indexBoundIDs(ids []boundID, err error) (map[idKey]*boundID, error) {
	return db.Index(ids, err, func(b *boundID) idKey { return b.key })
}

// SaveCarrierIDs binds carriers' ids to parts and returns the Matched and the Ambiguous receipts
// that arrived earlier with any of the ids. An id that was bound to another part is then
// bound to both.
func (s *Store) SaveCarrierIDs(ctx context.Context, ids []CarrierID) ([]Receipt, error) {
	bindings := make([]boundID, len(ids))
	for i, id := range ids {
		bindings[i] = boundID{key: idKeyOf(id.Carrier, id.ID), boundPart: boundPart{id.Part, id.Number}}
	}
	rounds := db.Rounds(bindings, func(b *boundID) idKey { return b.key })
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
	if err != nil || !slices.ContainsFunc(early, func(r Receipt) bool { return !r.Matched }) {
		return early, err
	}
	if err := s.matchOtherBases(ctx, early); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(early, func(r Receipt) bool { return !r.Matched && !r.Ambiguous }), nil
}

// bind binds distinct ids and returns the receipts that arrived before.
func bind(ctx context.Context, tx *db.Tx, ids []boundID) (early []Receipt, err error) {
	// The part to which the id was bound moves to the front of earlier. The early receipts
	// stay, so that a repeated binding returns them again.
	const statement = `
		INSERT INTO message_ref (carrier, ref, account, message, part, number, early, earlier, expires)
		SELECT carrier, ref, account, message, part, number, '', '', $1
		FROM batch
		WHERE true
		ORDER BY carrier, ref
		ON CONFLICT (carrier, ref) DO UPDATE
		SET account = excluded.account,
		  message = excluded.message,
		  part = excluded.part,
		  number = excluded.number,
		  expires = excluded.expires,
		  early = CASE WHEN message_ref.expires <= $2 THEN '' ELSE message_ref.early END,
		  earlier = CASE
		    WHEN message_ref.expires <= $2 OR message_ref.message = 0 THEN ''
		    WHEN message_ref.account = excluded.account
		      AND message_ref.message = excluded.message
		      AND message_ref.part = excluded.part
		      AND message_ref.number = excluded.number
		    THEN message_ref.earlier
		    ELSE substr(
		      CAST(message_ref.account AS TEXT) || ' ' || CAST(message_ref.message AS TEXT) || ' '
		      || CAST(message_ref.part AS TEXT) || ' ' || message_ref.number || ',' || message_ref.earlier,
		      1, 1000
		    )
		  END
		RETURNING carrier, ref, account, message, part, number, early, earlier`
	batch := db.BatchOf("carrier, ref, account, message, part, number", ids, func(b *boundID) []any {
		return []any{b.key.carrier, b.key.id, b.part.Account, b.part.ID, b.part.Part, b.number}
	})
	now := tx.Now()
	stored, err := indexBoundIDs(db.List(ctx, tx, "messages: bind", statement, (*boundID).fields, now.Add(boundTime), now, batch))
	for i := 0; i < len(ids) && err == nil; i++ {
		if b := stored[ids[i].key]; b != nil && b.earlyReceipts != "" {
			early, err = b.appendEarly(early)
		}
	}
	return early, err
}

// appendEarly appends the early receipts that are about the part that is bound now. A receipt
// that agrees with several parts is about the first that was bound. A receipt that has the id
// only in another base is not Matched yet.
func (b *boundID) appendEarly(early []Receipt) ([]Receipt, error) {
	var receipts []Receipt
	if err := json.Unmarshal([]byte("["+strings.TrimSuffix(b.earlyReceipts, ",")+"]"), &receipts); err != nil {
		return nil, relay.Errorf(relay.KindUnexpected, "messages: early receipt of %s: %w", b.key.id, err)
	}
	parts := b.parts()
	slices.Reverse(parts)
	for _, r := range receipts {
		i := slices.IndexFunc(parts, func(p boundPart) bool { return b.agrees(&p, &r) })
		if i < 0 || parts[i].part != b.part {
			continue
		}
		if r.Matched = slices.ContainsFunc(r.IDs, func(id string) bool { return b.key == idKeyOf(r.Carrier, id) }); r.Matched {
			r.Part = b.part
		}
		early = append(early, r)
	}
	return early, nil
}

// Match sets the Part of each receipt that is not Matched, by the first bound id of the receipt.
// If the id is bound to several parts, Match sets the latest part that agrees.
//
// An id in another base counts only for a part that has not ended and whose message has the
// addresses of the receipt. While another such part waits for the carrier's answer, the
// receipt is Ambiguous, and the caller matches it again later. A receipt that matches nothing is
// stored for a day, so that SaveCarrierIDs can return it, and Matched stays false.
func (s *Store) Match(ctx context.Context, receipts []Receipt) ([]Receipt, error) {
	// 1. Match by the ids of the receipts, then by the ids in other bases.
	boundIDs, err := s.boundIDs(ctx, receipts)
	if err != nil {
		return nil, err
	}
	hasOtherBase := false
	stored := make([]bool, len(receipts)) // receipts that were Ambiguous, which an earlier call stored
	for i := range receipts {
		r := &receipts[i]
		stored[i], r.Ambiguous = r.Ambiguous, false
		for _, id := range r.IDs {
			boundIDs[idKeyOf(r.Carrier, id)].match(r)
		}
		hasOtherBase = hasOtherBase || !r.Matched && slices.ContainsFunc(r.OtherBases, func(id string) bool { return boundIDs[idKeyOf(r.Carrier, id)] != nil })
	}
	if hasOtherBase {
		if err := s.matchOtherBases(ctx, receipts); err != nil {
			return nil, err
		}
	}

	// 2. Store the receipts that match nothing, under each of their ids.
	var unmatched []earlyReceipt
	for i := range receipts {
		r := &receipts[i]
		if r.Matched || stored[i] {
			continue
		}
		doc, err := db.Encode(r)
		if err != nil {
			return nil, fmt.Errorf("messages: receipt: encode: %w", err)
		}
		for n, id := range slices.Concat(r.IDs, r.OtherBases) {
			// The first id may be bound to another part too, if the carrier uses it twice.
			if key := idKeyOf(r.Carrier, id); n == 0 || boundIDs[key] == nil {
				unmatched = append(unmatched, earlyReceipt{key, doc + ",", r})
			}
		}
	}
	if len(unmatched) == 0 {
		return receipts, nil
	}
	rounds := db.Rounds(unmatched, func(e *earlyReceipt) idKey { return e.key })
	found, err := db.Transact(ctx, s.db, matchLabel, func(ctx context.Context, tx *db.Tx) ([]map[idKey]*boundID, error) {
		found := make([]map[idKey]*boundID, len(rounds))
		for i, round := range rounds {
			if found[i], err = storeEarly(ctx, tx, round); err != nil {
				return nil, err
			}
		}
		return found, nil
	})
	if err != nil {
		return nil, err
	}

	// 3. Match the receipts whose ids were bound in the meantime.
	for i, round := range rounds {
		for _, e := range round {
			if slices.ContainsFunc(e.receipt.IDs, func(id string) bool { return e.key == idKeyOf(e.receipt.Carrier, id) }) {
				found[i][e.key].match(e.receipt)
			} else if len(found[i][e.key].parts()) > 0 {
				e.receipt.Ambiguous = true
			}
		}
	}
	for i := range receipts {
		receipts[i].Ambiguous = receipts[i].Ambiguous && !receipts[i].Matched
	}
	return receipts, nil
}

const matchLabel = "messages: receipts"

// boundIDs returns those ids of the receipts that are bound to a part.
func (s *Store) boundIDs(ctx context.Context, receipts []Receipt) (map[idKey]*boundID, error) {
	const statement = `
		SELECT r.carrier, r.ref, r.account, r.message, r.part, r.number, '', r.earlier
		FROM batch
		CROSS JOIN message_ref r
		WHERE r.carrier = batch.carrier
		  AND r.ref = batch.ref
		  AND r.message > 0
		  AND r.expires > $1`
	ids := db.NewBatch("carrier, ref")
	for _, r := range receipts {
		if r.Matched {
			continue
		}
		for _, id := range slices.Concat(r.IDs, r.OtherBases) {
			ids.Add(r.Carrier, id)
		}
	}
	return indexBoundIDs(db.List(ctx, s.db, matchLabel, statement, (*boundID).fields, s.db.Now(), ids))
}

// earlyReceipt is a receipt that arrived before its id was bound.
type earlyReceipt struct {
	key     idKey
	doc     string
	receipt *Receipt
}

// storeEarly stores receipts until their ids are bound, and returns the rows of the ids.
func storeEarly(ctx context.Context, tx *db.Tx, receipts []earlyReceipt) (map[idKey]*boundID, error) {
	// An id that was bound in the meantime keeps its part. An expired row counts as missing.
	const statement = `
		INSERT INTO message_ref (carrier, ref, account, message, part, number, early, earlier, expires)
		SELECT carrier, ref, 0, 0, 0, '', receipt, '', $1
		FROM batch
		WHERE true
		ORDER BY carrier, ref
		ON CONFLICT (carrier, ref) DO UPDATE
		SET account = CASE WHEN message_ref.expires <= $2 THEN 0 ELSE message_ref.account END,
		  message = CASE WHEN message_ref.expires <= $2 THEN 0 ELSE message_ref.message END,
		  earlier = CASE WHEN message_ref.expires <= $2 THEN '' ELSE message_ref.earlier END,
		  expires = CASE WHEN message_ref.expires <= $2 THEN excluded.expires ELSE message_ref.expires END,
		  early = CASE
		    WHEN message_ref.expires <= $2 THEN excluded.early
		    WHEN octet_length(message_ref.early) + octet_length(excluded.early) <= $3
		    THEN message_ref.early || excluded.early
		    ELSE message_ref.early
		  END
		RETURNING carrier, ref, account, message, part, number, '', earlier`
	b := db.NewBatch("carrier, ref, receipt")
	for _, e := range receipts {
		if len(e.doc) > maxEarlyBytes {
			e.doc = ""
		}
		b.Add(e.key.carrier, e.key.id, e.doc)
	}
	now := tx.Now()
	return indexBoundIDs(db.List(ctx, tx, matchLabel, statement, (*boundID).fields, now.Add(earlyTime), now, maxEarlyBytes, b))
}
