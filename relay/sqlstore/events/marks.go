package events

import (
	"cmp"
	"context"
	"database/sql"
	"math"
	"slices"

	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/sqlstore"
)

var _ event.Marks = (*Marks)(nil)

// Marks keeps what became of one node's events.
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

	countMarks = `
SELECT state, count(*) FROM event_mark WHERE node = $1 AND kind = $2 GROUP BY state`

	// A range, not a list, of sequences: it has one plan, whatever PostgreSQL
	// believes about the table.
	trimMarks = `
DELETE FROM event_mark WHERE node = $1 AND kind = $2 AND seq < COALESCE(
  (SELECT seq FROM event_mark WHERE node = $1 AND kind = $2 AND seq < $3 ORDER BY seq LIMIT 1 OFFSET $4), $3)`
)

const noun = "marks"

// Set records marks, in one transaction; one with state Done forgets. Of several
// for one sequence the last counts.
func (s *Marks) Set(ctx context.Context, kind event.Kind, marks []event.Mark) error {
	done := sqlstore.NewBatch("node text, kind text, seq bigint")
	rest := sqlstore.NewBatch("node text, kind text, seq bigint, state text, id text, reason text, outcome text, account bigint, source text, device text")
	for _, m := range lastOfEach(marks) {
		if m.State == event.Done {
			done.Add(s.node, string(kind), number(m.Seq))
			continue
		}
		rest.Add(s.node, string(kind), number(m.Seq), string(m.State), m.ID, m.Reason, m.Outcome, int64(m.Account), m.Source, m.Device)
	}
	if done.Len()+rest.Len() == 0 {
		return nil
	}
	return s.db.Write(ctx, noun, func(ctx context.Context, tx *sqlstore.Tx) error {
		for _, change := range []struct {
			statement string
			of        *sqlstore.Batch
		}{{deleteMarks, done}, {putMarks, rest}} {
			if change.of.Len() == 0 {
				continue
			}
			if _, err := tx.Exec(ctx, noun, change.statement, change.of); err != nil {
				return err
			}
		}
		return nil
	})
}

// lastOfEach is the last mark of each sequence, in the order of the sequences.
func lastOfEach(marks []event.Mark) []event.Mark {
	out := slices.Clone(marks)
	slices.Reverse(out)
	slices.SortStableFunc(out, func(a, b event.Mark) int { return cmp.Compare(a.Seq, b.Seq) })
	return slices.CompactFunc(out, func(a, b event.Mark) bool { return a.Seq == b.Seq })
}

// Get returns the marks of a range of sequences.
func (s *Marks) Get(ctx context.Context, kind event.Kind, from, to uint64) (map[uint64]event.Mark, error) {
	all, err := sqlstore.List(ctx, s.db, noun, marksBetween, scanMark, s.node, string(kind), number(from), number(to))
	out := make(map[uint64]event.Mark, len(all))
	for _, m := range all {
		out[m.Seq] = m
	}
	return out, err
}

// List returns marks in a state below a sequence, newest first.
func (s *Marks) List(ctx context.Context, kind event.Kind, state event.State, before uint64, limit int) ([]event.Mark, error) {
	return sqlstore.List(ctx, s.db, noun, marksInState, scanMark, s.node, string(kind), string(state), number(before), int64(limit))
}

// Counts returns how many marks there are by state.
func (s *Marks) Counts(ctx context.Context, kind event.Kind) (map[event.State]int, error) {
	type count struct {
		state event.State
		n     int
	}
	all, err := sqlstore.List(ctx, s.db, noun, countMarks, func(row *sql.Rows, c *count) error {
		return row.Scan((*string)(&c.state), &c.n)
	}, s.node, string(kind))
	if err != nil {
		return nil, err
	}
	out := map[event.State]int{event.Quarantined: 0, event.Unrouted: 0}
	for _, c := range all {
		out[c.state] = c.n
	}
	return out, nil
}

// Trim forgets the marks below a sequence, a part of them at a time.
func (s *Marks) Trim(ctx context.Context, kind event.Kind, below uint64) error {
	for {
		n, err := s.db.Exec(ctx, noun, trimMarks, s.node, string(kind), number(below), int64(trimLimit))
		if err != nil || n < trimLimit {
			return err
		}
	}
}

func scanMark(row *sql.Rows, m *event.Mark) error {
	return row.Scan(&m.Seq, (*string)(&m.State), &m.ID, &m.Reason, &m.Outcome, (*int64)(&m.Account), &m.Source, &m.Device)
}

// number is a sequence as it is kept; one beyond what the column holds is the
// last.
func number(seq uint64) int64 { return int64(min(seq, math.MaxInt64)) }
