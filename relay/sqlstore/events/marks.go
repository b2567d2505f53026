// Package events keeps in SQL what became of the events of a node that were set
// aside. Marks is an event.Marks; the marks of any node can be read and changed
// from every gateway, by a Marks of that node.
package events

import (
	"cmp"
	"context"
	"maps"
	"math"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/sqlstore"
)

var _ event.Marks = (*Marks)(nil)

// Marks stores the states of one node's events.
type Marks struct {
	db   *sqlstore.DB
	node string
}

// New returns the marks of a node's journals.
func New(db *sqlstore.DB, node string) *Marks { return &Marks{db: db, node: node} }

// trimLimit is how many marks one transaction of Trim deletes.
const trimLimit = 5000

const (
	deleteMarks = `
DELETE FROM event_mark WHERE (node, kind, seq) IN (SELECT node, kind, seq FROM batch)`

	putMarks = `
INSERT INTO event_mark (node, kind, seq, state, id, reason, outcome, account, source, device)
SELECT node, kind, seq, state, id, reason, outcome, account, source, device FROM batch WHERE true
ON CONFLICT (node, kind, seq) DO UPDATE SET state = excluded.state, id = excluded.id, reason = excluded.reason,
  outcome = excluded.outcome, account = excluded.account, source = excluded.source, device = excluded.device`

	markColumns = `
SELECT seq, state, id, reason, outcome, account, source, device FROM event_mark WHERE node = $1 AND kind = $2 AND `

	marksBetween = markColumns + `seq BETWEEN $3 AND $4`

	marksInState = markColumns + `state = $3 AND seq < $4 ORDER BY seq DESC LIMIT $5`

	marksPutOff = markColumns + `state = $3 AND account > $4 ORDER BY account, seq LIMIT $5`

	countMarks = `
SELECT state, count(*) FROM event_mark WHERE node = $1 AND kind = $2 GROUP BY state`

	// A range, not a list, of sequences: it has one plan, whatever PostgreSQL
	// believes about the table.
	trimMarks = `
DELETE FROM event_mark WHERE node = $1 AND kind = $2 AND seq < COALESCE(
  (SELECT seq FROM event_mark WHERE node = $1 AND kind = $2 AND seq < $3 ORDER BY seq LIMIT 1 OFFSET $4), $3)`
)

const noun = "marks"

// Set records marks, in one transaction; one with state Done and no outcome
// forgets. Of several for one sequence the last counts.
func (s *Marks) Set(ctx context.Context, kind event.Kind, marks []event.Mark) error {
	done := sqlstore.NewBatch("node text, kind text, seq bigint")
	rest := sqlstore.NewBatch("node text, kind text, seq bigint, state text, id text, reason text, outcome text, account bigint, source text, device text")
	for _, m := range sqlstore.LastOfEach(marks, func(a, b event.Mark) int { return cmp.Compare(a.Seq, b.Seq) }) {
		if m.State == event.Done && m.Outcome == "" {
			done.Add(s.node, kind, number(m.Seq))
			continue
		}
		rest.Add(s.node, kind, number(m.Seq), m.State, m.ID, m.Reason, m.Outcome, m.Account, m.Source, m.Device)
	}
	return s.db.Write(ctx, noun, func(ctx context.Context, tx *sqlstore.Tx) error {
		if _, err := tx.Exec(ctx, noun, deleteMarks, done); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, noun, putMarks, rest)
		return err
	})
}

// fields are the columns of a mark.
func fields(m *event.Mark) []any {
	return []any{&m.Seq, &m.State, &m.ID, &m.Reason, &m.Outcome, &m.Account, &m.Source, &m.Device}
}

// Get returns the marks of a range of sequences.
func (s *Marks) Get(ctx context.Context, kind event.Kind, from, to uint64) (map[uint64]event.Mark, error) {
	all, err := sqlstore.List(ctx, s.db, noun, marksBetween, sqlstore.Into(fields), s.node, kind, number(from), number(to))
	return sqlstore.By(all, func(m event.Mark) uint64 { return m.Seq }), err
}

// List returns marks in a state below a sequence, newest first.
func (s *Marks) List(ctx context.Context, kind event.Kind, state event.State, before uint64, limit int) ([]event.Mark, error) {
	return sqlstore.List(ctx, s.db, noun, marksInState, sqlstore.Into(fields), s.node, kind, state, number(before), limit)
}

// PutOff returns marks of pending events, of the accounts after one.
func (s *Marks) PutOff(ctx context.Context, kind event.Kind, after account.ID, limit int) ([]event.Mark, error) {
	return sqlstore.List(ctx, s.db, noun, marksPutOff, sqlstore.Into(fields), s.node, kind, event.Pending, after, limit)
}

// Counts returns how many marks there are by state.
func (s *Marks) Counts(ctx context.Context, kind event.Kind) (map[event.State]int, error) {
	counts, err := sqlstore.Map[event.State, int](ctx, s.db, noun, countMarks, s.node, kind)
	if err != nil {
		return nil, err
	}
	out := map[event.State]int{event.Quarantined: 0, event.Unrouted: 0}
	maps.Copy(out, counts)
	return out, nil
}

// Trim forgets the marks below a sequence, a part of them at a time.
func (s *Marks) Trim(ctx context.Context, kind event.Kind, below uint64) error {
	return s.db.Sweep(ctx, noun, trimLimit, trimMarks, s.node, kind, number(below))
}

// number is a sequence as it is kept; one beyond what the column holds is the
// last.
func number(seq uint64) int64 { return int64(min(seq, math.MaxInt64)) }
