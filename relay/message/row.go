package message

import (
	"context"
	"slices"
	"time"

	"github.com/penstock/penstock/relay/db"
)

// part is where a part of a message stands.
type part struct {
	State State `json:"state"`
	// Due is when it is tried again; 0: when the message was to be sent.
	Due int64 `json:"due,omitempty"`
	// Changed is when its state changed; 0: when the message was received.
	Changed int64 `json:"changed,omitempty"`
	// Call names the call of Begin that had it handed over last.
	Call    string `json:"call,omitempty"`
	Carrier string `json:"carrier,omitempty"`
	Ref     string `json:"ref,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Report  string `json:"report,omitempty"`
	// Buffered is when the network buffered it last, in milliseconds.
	Buffered int64 `json:"buffered,omitempty"`
	// Resent is when an operator resent it last, in milliseconds.
	Resent int64 `json:"resent,omitempty"`
}

// state is what changes of a message, a row of message_state.
type state struct {
	Ref
	count           int // of the parts
	scheduled       int64
	report          bool
	parts           []part
	due             int64
	unreportedSince int64
	expires         int64
	version         int64
	changed         bool // since it was read
}

const stateColumns = `s.account, s.id, s.part_count, s.scheduled, s.report, s.parts, s.due, s.untold, s.expires, s.version`

// stateFields are stateColumns.
func stateFields(s *state) []any {
	return []any{&s.Account, &s.ID, &s.count, &s.scheduled, &s.report, db.JSON(&s.parts), &s.due, &s.unreportedSince, &s.expires, &s.version, func() {
		for len(s.parts) < s.count { // all are as they were saved
			s.parts = append(s.parts, part{State: Pending})
		}
	}}
}

// lock reads the states of messages and keeps others from changing them. Those
// that are gone are left out.
func lock(ctx context.Context, tx *db.Tx, noun string, refs []Ref) (map[Ref]*state, error) {
	return byRef(db.List(ctx, tx, noun, `
SELECT `+stateColumns+` FROM batch CROSS JOIN message_state s
WHERE s.account = batch.account AND s.id = batch.id
ORDER BY s.account, s.id {for update}`, stateFields, refBatch(refs)))
}

func byRef(list []state, err error) (map[Ref]*state, error) {
	return db.Index(list, err, func(s *state) Ref { return s.Ref })
}

// refBatch names messages; each once.
func refBatch(refs []Ref) *db.Batch {
	return db.BatchOf("account, id", refs, refFields)
}

// stateBatch names the messages of states.
func stateBatch(states []state) *db.Batch {
	return db.BatchOf("account, id", states, func(s *state) []any { return refFields(&s.Ref) })
}

func refFields(r *Ref) []any { return []any{&r.Account, &r.ID} }

// store writes back those of the states that have changed.
func store(ctx context.Context, tx *db.Tx, noun string, all map[Ref]*state) error {
	b := db.NewBatch("account, id, parts, pending, states, due, untold, expires, version")
	for _, s := range all {
		if !s.changed {
			continue
		}
		pending, states := s.summary()
		b.Add(s.Account, s.ID, db.JSON(s.parts), pending, states, s.due, s.unreportedSince, s.expires, s.version)
	}
	return tx.Run(ctx, noun, `
UPDATE message_state SET parts = batch.parts, pending = batch.pending, states = batch.states, settled = batch.states & 508, due = batch.due,
  untold = batch.untold, expires = batch.expires, version = batch.version
FROM batch WHERE message_state.account = batch.account AND message_state.id = batch.id`, b)
}

// summary is how many parts are pending, and the bits of the states that parts
// have.
func (s *state) summary() (pending int, states int64) {
	for i := range s.parts {
		if s.parts[i].State == Pending {
			pending++
		}
		states |= stateBit(s.parts[i].State)
	}
	return pending, states
}

// stateBit is a state's bit in message_state.states, and in settled, which is states
// without the first two, as the schema has it in its indexes.
func stateBit(s State) int64 {
	order := []State{
		Pending, Sending, Accepted, Buffered, Delivered, Undelivered,
		Rejected, Unknown, Removed,
	}
	if bit := slices.Index(order, s); bit >= 0 {
		return 1 << bit
	}
	return 0
}

// transition gives a part another state, if that may follow the present one, and
// reports whether it did.
func (s *state) transition(n int, to State, at time.Time) bool {
	p := &s.parts[n]
	if !slices.Contains(to.From(), p.State) {
		return false
	}
	p.State, p.Changed = to, db.Millis(at)
	if to == Buffered {
		p.Buffered = p.Changed
	}
	s.version++
	s.changed = true
	return true
}

// schedule sets when the message is due next, or when it expires if no part of it
// waits. If a part is due now or being sent, an existing lease is kept.
func (s *state) schedule(now time.Time, retention time.Duration) {
	leased, next := false, int64(0)
	for i := range s.parts {
		switch p := &s.parts[i]; p.State {
		case Sending:
			leased = true
		case Pending:
			at := p.Due
			if at == 0 {
				at = s.scheduled
			}
			leased = leased || at <= db.Millis(now)
			if next == 0 || at < next {
				next = at
			}
		}
	}
	s.expires = 0
	if leased && s.due > 0 {
		return
	}
	if s.due = next; next == 0 {
		s.expires = db.Millis(now.Add(retention))
	}
}

// fill sets what changes of a message's parts. Of a message that does not open it makes
// the parts, without their content.
func fill(m *Message, s *state) {
	if m.Unopened {
		m.Parts, m.ScheduledFor = make([]Part, s.count), db.Moment(s.scheduled)
	}
	parts := s.parts
	for n := range m.Parts {
		p := &m.Parts[n]
		p.State, p.ScheduledAt, p.ChangedAt = Pending, m.ScheduledFor, m.ReceivedAt
		if n >= len(parts) {
			continue
		}
		is := &parts[n]
		p.State, p.Carrier, p.Ref, p.Reason, p.Report = is.State, is.Carrier, is.Ref, is.Reason, is.Report
		if is.Due > 0 {
			p.ScheduledAt = db.Moment(is.Due)
		}
		if is.Changed > 0 {
			p.ChangedAt = db.Moment(is.Changed)
		}
		if is.Buffered > 0 {
			p.BufferedAt = db.Moment(is.Buffered)
		}
		if is.Resent > 0 {
			p.ResentAt = db.Moment(is.Resent)
		}
	}
}
