package event

import (
	"cmp"
	"context"
	"maps"
	"math"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// Statuses stores the states of one node's events.
type Statuses struct {
	db   *db.DB
	node string
}

// NewStatuses returns the statuses of a node's journals.
func NewStatuses(database *db.DB, node string) *Statuses { return &Statuses{db: database, node: node} }

// trimLimit is how many statuses one transaction of Trim deletes.
const trimLimit = 5000

const selectStatuses = `
SELECT seq, state, id, reason, outcome, notes, account, source, device FROM event_mark WHERE node = $1 AND kind = $2 AND `

const noun = "statuses"

// Set records statuses, in one transaction; one with state Done and neither
// outcome nor notes forgets. Of several for one sequence the last counts.
func (s *Statuses) Set(ctx context.Context, kind Kind, statuses []Status) error {
	done := db.NewBatch("node, kind, seq")
	changed := db.NewBatch("node, kind, seq, state, id, reason, outcome, notes, account, source, device")
	for _, m := range db.LastOfEach(statuses, func(a, b Status) int { return cmp.Compare(a.Seq, b.Seq) }) {
		if m.State == Done && m.Outcome == "" && len(m.Notes) == 0 {
			done.Add(s.node, kind, number(m.Seq))
			continue
		}
		changed.Add(s.node, kind, number(m.Seq), m.State, m.ID, m.Reason, m.Outcome, db.JSON(m.Notes), m.Account, m.Source, m.Device)
	}
	return s.db.RunAll(ctx, noun,
		db.Do("DELETE FROM event_mark WHERE (node, kind, seq) IN (SELECT node, kind, seq FROM batch)", done),
		db.Do(db.UpsertAll("event_mark", "node, kind, seq", "state, id, reason, outcome, notes, account, source, device"), changed))
}

// fields are the columns of a status.
func fields(m *Status) []any {
	return []any{&m.Seq, &m.State, &m.ID, &m.Reason, &m.Outcome, db.JSON(&m.Notes), &m.Account, &m.Source, &m.Device}
}

// Get returns the statuses of a range of sequences.
func (s *Statuses) Get(ctx context.Context, kind Kind, from, to uint64) (map[uint64]Status, error) {
	all, err := db.List(ctx, s.db, noun, selectStatuses+"seq BETWEEN $3 AND $4", fields, s.node, kind, number(from), number(to))
	return db.By(all, func(m Status) uint64 { return m.Seq }), err
}

// List returns statuses in a state below a sequence, newest first.
func (s *Statuses) List(ctx context.Context, kind Kind, state State, before uint64, limit int) ([]Status, error) {
	return db.List(ctx, s.db, noun, selectStatuses+"state = $3 AND seq < $4 ORDER BY seq DESC LIMIT $5", fields,
		s.node, kind, state, number(before), limit)
}

// Deferred returns the statuses of pending events, of the accounts after one.
func (s *Statuses) Deferred(ctx context.Context, kind Kind, after relay.AccountID, limit int) ([]Status, error) {
	return db.List(ctx, s.db, noun, selectStatuses+"state = $3 AND account > $4 ORDER BY account, seq LIMIT $5", fields,
		s.node, kind, Pending, after, limit)
}

// Counts returns how many statuses there are by state.
func (s *Statuses) Counts(ctx context.Context, kind Kind) (map[State]int, error) {
	counts, err := db.Map[State, int](ctx, s.db, noun, `
SELECT state, count(*) FROM event_mark WHERE node = $1 AND kind = $2 GROUP BY state`, s.node, kind)
	out := map[State]int{Quarantined: 0, Unrouted: 0}
	maps.Copy(out, counts)
	return out, err
}

// Trim forgets the statuses below a sequence, a part of them at a time.
func (s *Statuses) Trim(ctx context.Context, kind Kind, below uint64) error {
	// A range, not a list, of sequences: it has one plan, whatever PostgreSQL believes about the
	// table.
	return s.db.Sweep(ctx, noun, trimLimit, `
DELETE FROM event_mark WHERE node = $1 AND kind = $2 AND seq < COALESCE(
  (SELECT seq FROM event_mark WHERE node = $1 AND kind = $2 AND seq < $3 ORDER BY seq LIMIT 1 OFFSET $4), $3)`, s.node, kind, number(below))
}

// number is a sequence as it is kept; one beyond what the column holds is the
// last.
func number(seq uint64) int64 { return int64(min(seq, math.MaxInt64)) }
