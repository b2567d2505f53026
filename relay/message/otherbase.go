package message

import (
	"context"
	"slices"

	"github.com/penstock/penstock/relay/db"
)

// matchOtherBases matches receipts by their ids and then by the ids in other bases. It skips
// receipts that are Matched. A receipt may arrive before the carrier's answer with the id, so a
// receipt is Ambiguous if it may be about a part without an answer.
func (s *Store) matchOtherBases(ctx context.Context, receipts []Receipt) error {
	const selectUnanswered = `
		SELECT ` + sentColumns + `
		FROM message_state s
		JOIN message m ON m.account = s.account AND m.id = s.id
		WHERE (s.states & 2) = 2`
	const selectBound = `
		SELECT ` + sentColumns + `
		FROM batch
		CROSS JOIN message_state s
		JOIN message m ON m.account = s.account AND m.id = s.id
		WHERE s.account = batch.account
		  AND s.id = batch.id`
	// The parts without an answer are read first: the id of a part that is answered in
	// between is then found.
	unanswered, err := db.List(ctx, s.db, "messages: unanswered", selectUnanswered, sentFields)
	if err != nil {
		return err
	}
	boundIDs, err := s.boundIDs(ctx, receipts)
	if err != nil {
		return err
	}
	var parts []boundPart
	for _, b := range boundIDs {
		parts = append(parts, b.parts()...)
	}
	boundMessages, err := db.List(ctx, s.db, matchLabel, selectBound, sentFields, refBatch(distinctRefs(parts, func(p *boundPart) Ref { return p.part.Ref })))
	sentByRef, err := db.Index(boundMessages, err, func(m *sentMessage) Ref { return m.Ref })
	if err != nil {
		return err
	}
	for i := range receipts {
		r := &receipts[i]
		for _, id := range r.IDs {
			boundIDs[idKeyOf(r.Carrier, id)].match(r)
		}
		if r.Matched {
			continue
		}
		for _, id := range r.OtherBases {
			parts := boundIDs[idKeyOf(r.Carrier, id)].parts()
			n := slices.IndexFunc(parts, func(p boundPart) bool { return sentByRef[p.part.Ref].awaits(p.part.Part, r) })
			if n < 0 {
				continue
			}
			r.Ambiguous = slices.ContainsFunc(unanswered, func(m sentMessage) bool {
				for index, p := range m.parts {
					if p.State == Sending && p.Carrier == r.Carrier && m.agrees(r, p.Changed) && (PartRef{Ref: m.Ref, Part: index}) != parts[n].part {
						return true
					}
				}
				return false
			})
			if r.Matched = !r.Ambiguous; r.Matched {
				r.Part = parts[n].part
			}
			break
		}
	}
	return nil
}

// sentMessage is a message's addresses and the states of its parts.
type sentMessage struct {
	originator, number string
	row
}

const sentColumns = `m.originator, m.destination, ` + rowColumns

// sentFields returns pointers to the fields of m in the order of sentColumns.
func sentFields(m *sentMessage) []any {
	return append([]any{&m.originator, &m.number}, rowFields(&m.row)...)
}

// agrees reports whether the message has the addresses of a receipt, and the receipt arrived
// after startMillis, or at most maxClockSkew before. A missing address agrees
// with any address.
func (m *sentMessage) agrees(r *Receipt, startMillis int64) bool {
	contains := func(addresses []string, address string) bool {
		return address == "" || slices.ContainsFunc(addresses, func(a string) bool { return suffix(a) == suffix(address) })
	}
	return startMillis <= db.Millis(r.At.Add(maxClockSkew)) &&
		(len(r.Numbers) == 0 || contains(r.Numbers, m.number)) &&
		(len(r.Addresses) < 2 || contains(r.Addresses, m.originator))
}

// awaits reports whether the receipt agrees with the message, and the part has not ended or
// was already changed by this very receipt.
func (m *sentMessage) awaits(part int, r *Receipt) bool {
	if m == nil || part >= len(m.parts) || !m.agrees(r, m.scheduled) {
		return false
	}
	p, arrivedAt := &m.parts[part], db.Millis(r.At)
	return !p.State.Ended() ||
		p.State == r.State && (p.Changed == arrivedAt || r.Line != "" && p.Report == r.Line) ||
		r.State == Buffered && p.Buffered == arrivedAt
}
