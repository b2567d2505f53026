package message

import (
	"context"
	"slices"
	"time"

	"github.com/penstock/penstock/relay/db"
)

// row is the variable state of a message, a row of message_state.
type row struct {
	Ref
	partCount       int
	scheduled       int64
	wantsReport     bool
	parts           []partState
	due             int64
	unreportedSince int64 // the column untold: the time of the first unreported change; 0 if there is none
	expires         int64
	version         int64
	changed         bool // the row has changed since it was read
}

// partState is the variable state of a part. Its times are in milliseconds.
type partState struct {
	State State `json:"state"`
	// Due is the time of the next submission; 0 means the time for which the message is
	// scheduled.
	Due int64 `json:"due,omitempty"`
	// Changed is the time of the last change of State; 0 means the time at which the message
	// was received.
	Changed int64 `json:"changed,omitempty"`
	// Call is the id of the call of MarkSending that last set the part to Sending.
	Call      string `json:"call,omitempty"`
	Carrier   string `json:"carrier,omitempty"`
	CarrierID string `json:"ref,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Report    string `json:"report,omitempty"`
	// Buffered is the time at which the network last buffered the part.
	Buffered int64 `json:"buffered,omitempty"`
	// Resent is the time at which an operator last resent the part.
	Resent int64 `json:"resent,omitempty"`
}

const rowColumns = `s.account, s.id, s.part_count, s.scheduled, s.report, s.parts, s.due, s.untold, s.expires, s.version`

// rowFields returns pointers to the fields of r in the order of rowColumns.
func rowFields(r *row) []any {
	return []any{
		&r.Account, &r.ID, &r.partCount, &r.scheduled, &r.wantsReport, db.JSON(&r.parts), &r.due, &r.unreportedSince, &r.expires, &r.version,
		func() { // called after the row has been read, see db.List
			for len(r.parts) < r.partCount { // the column is empty until the first change
				r.parts = append(r.parts, partState{State: Pending})
			}
		},
	}
}

// lockRows locks the rows of messages and returns the rows that exist.
func lockRows(ctx context.Context, tx *db.Tx, label string, refs []Ref) (map[Ref]*row, error) {
	const statement = `
		SELECT ` + rowColumns + `
		FROM batch
		CROSS JOIN message_state s
		WHERE s.account = batch.account
		  AND s.id = batch.id
		ORDER BY s.account, s.id {for update}`
	rows, err := db.List(ctx, tx, label, statement, rowFields, refBatch(refs))
	return db.Index(rows, err, func(r *row) Ref { return r.Ref })
}

func refBatch(refs []Ref) *db.Batch { return db.BatchOf("account, id", refs, refFields) }

func rowKeys(rows []row) *db.Batch {
	return db.BatchOf("account, id", rows, func(r *row) []any { return refFields(&r.Ref) })
}

func refFields(r *Ref) []any { return []any{&r.Account, &r.ID} }

// distinctRefs returns the messages of items without duplicates.
func distinctRefs[T any](items []T, ref func(*T) Ref) (refs []Ref) {
	seen := make(map[Ref]bool, len(items))
	for i := range items {
		if r := ref(&items[i]); !seen[r] {
			seen[r] = true
			refs = append(refs, r)
		}
	}
	return refs
}

func saveRows(ctx context.Context, tx *db.Tx, label string, rows map[Ref]*row) error {
	const statement = `
		UPDATE message_state
		SET parts = batch.parts,
		  pending = batch.pending,
		  states = batch.states,
		  settled = batch.states & ` + settledStates + `,
		  due = batch.due,
		  untold = batch.untold,
		  expires = batch.expires,
		  version = batch.version
		FROM batch
		WHERE message_state.account = batch.account
		  AND message_state.id = batch.id`
	b := db.NewBatch("account, id, parts, pending, states, due, untold, expires, version")
	for _, r := range rows {
		if !r.changed {
			continue
		}
		pending, states := 0, int64(0)
		for i := range r.parts {
			if r.parts[i].State == Pending {
				pending++
			}
			states |= stateBit(r.parts[i].State)
		}
		b.Add(r.Account, r.ID, db.JSON(r.parts), pending, states, r.due, r.unreportedSince, r.expires, r.version)
	}
	return tx.Run(ctx, label, statement, b)
}

// settledStates has the bits of all states except Pending and Sending, see stateBit.
const settledStates = "508"

// stateBit returns the bit of a state in the columns states and settled of message_state.
// settled lacks the bits of Pending and Sending. The schema's indexes contain the bits.
func stateBit(s State) int64 {
	order := []State{Pending, Sending, Accepted, Buffered, Delivered, Undelivered, Rejected, Unknown, Removed}
	if bit := slices.Index(order, s); bit >= 0 {
		return 1 << bit
	}
	return 0
}

// transition changes the state of a part if the new state may follow the current one. It
// reports whether the state was changed.
func (r *row) transition(part int, state State, now time.Time) bool {
	p := &r.parts[part]
	if !slices.Contains(state.From(), p.State) {
		return false
	}
	p.State, p.Changed = state, db.Millis(now)
	if state == Buffered {
		p.Buffered = p.Changed
	}
	r.version++
	r.changed = true
	return true
}

// schedule sets the time at which the message is due next, or at which it expires if no part
// waits. While a part is due or being sent, an existing lease is kept.
func (r *row) schedule(now time.Time, retention time.Duration) {
	keepsLease, nextDue := false, int64(0)
	for i := range r.parts {
		switch p := &r.parts[i]; p.State {
		case Sending:
			keepsLease = true
		case Pending:
			due := p.Due
			if due == 0 {
				due = r.scheduled
			}
			keepsLease = keepsLease || due <= db.Millis(now)
			if nextDue == 0 || due < nextDue {
				nextDue = due
			}
		}
	}
	r.expires = 0
	if keepsLease && r.due > 0 {
		return
	}
	if r.due = nextDue; nextDue == 0 {
		r.expires = db.Millis(now.Add(retention))
	}
}

// fill sets the variable fields of a message. A message that cannot be decrypted gets parts without
// content.
func (r *row) fill(m *Message) {
	if m.Undecryptable {
		m.Parts, m.ScheduledFor = make([]Part, r.partCount), db.FromMillis(r.scheduled)
	}
	timeOr := func(ms int64, fallback time.Time) time.Time {
		if ms > 0 {
			return db.FromMillis(ms)
		}
		return fallback
	}
	for n := range m.Parts {
		p := &m.Parts[n]
		p.State, p.ScheduledAt, p.ChangedAt = Pending, m.ScheduledFor, m.ReceivedAt
		if n >= len(r.parts) {
			continue
		}
		state := &r.parts[n]
		p.State, p.Carrier, p.CarrierID, p.Reason, p.Report = state.State, state.Carrier, state.CarrierID, state.Reason, state.Report
		p.ScheduledAt, p.ChangedAt = timeOr(state.Due, m.ScheduledFor), timeOr(state.Changed, m.ReceivedAt)
		p.BufferedAt, p.ResentAt = timeOr(state.Buffered, time.Time{}), timeOr(state.Resent, time.Time{})
	}
}
