package event

import (
	"cmp"
	"context"
	"maps"
	"math"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// Statuses stores the statuses of the events of one node. Each gateway can read and change the
// statuses of every node. An event without a status is done if it is before the checkpoint of its
// journal, else pending. An event with a stored status of Pending was deferred.
type Statuses struct {
	db   *db.DB
	node string
}

// NewStatuses returns the statuses of a node's journals.
func NewStatuses(database *db.DB, node string) *Statuses {
	return &Statuses{db: database, node: node}
}

// trimLimit is the largest number of statuses that one transaction of Trim deletes.
const trimLimit = 5000

const label = "statuses"

// Set stores statuses in one transaction. A status with State Done and neither Outcome nor Notes
// deletes the stored status. If statuses have the same sequence, the last status is stored.
func (s *Statuses) Set(ctx context.Context, kind Kind, statuses []Status) error {
	const deleteDone = `
		DELETE FROM event_mark
		WHERE (node, kind, seq) IN (SELECT node, kind, seq FROM batch)`
	const put = `
		INSERT INTO event_mark (node, kind, seq, state, id, reason, outcome, notes, account, source, device)
		SELECT node, kind, seq, state, id, reason, outcome, notes, account, source, device
		FROM batch
		WHERE true
		ON CONFLICT (node, kind, seq) DO UPDATE
		SET state = excluded.state,
		    id = excluded.id,
		    reason = excluded.reason,
		    outcome = excluded.outcome,
		    notes = excluded.notes,
		    account = excluded.account,
		    source = excluded.source,
		    device = excluded.device`
	done := db.NewBatch("node, kind, seq")
	changed := db.NewBatch("node, kind, seq, state, id, reason, outcome, notes, account, source, device")
	for _, status := range db.LastOfEach(statuses, func(a, b Status) int { return cmp.Compare(a.Seq, b.Seq) }) {
		seq := column(status.Seq)
		if status.State == Done && status.Outcome == "" && len(status.Notes) == 0 {
			done.Add(s.node, kind, seq)
			continue
		}
		changed.Add(s.node, kind, seq, status.State, status.ID, status.Reason, status.Outcome, db.JSON(status.Notes),
			status.Account, status.Source, status.Device)
	}
	return s.db.RunAll(ctx, label, db.Do(deleteDone, done), db.Do(put, changed))
}

// fields returns pointers to the fields of a status in the order of the selected columns.
func fields(status *Status) []any {
	return []any{
		&status.Seq, &status.State, &status.ID, &status.Reason, &status.Outcome, db.JSON(&status.Notes),
		&status.Account, &status.Source, &status.Device,
	}
}

// Get returns the statuses of a range of sequences, both ends included.
func (s *Statuses) Get(ctx context.Context, kind Kind, start, end uint64) (map[uint64]Status, error) {
	const query = `
		SELECT seq, state, id, reason, outcome, notes, account, source, device
		FROM event_mark
		WHERE node = $1
		  AND kind = $2
		  AND seq BETWEEN $3 AND $4`
	statuses, err := db.List(ctx, s.db, label, query, fields, s.node, kind, column(start), column(end))
	return db.IndexBy(statuses, func(status Status) uint64 { return status.Seq }), err
}

// List returns the statuses in a state with a sequence below limitSeq, newest first.
func (s *Statuses) List(ctx context.Context, kind Kind, state State, limitSeq uint64, limit int) ([]Status, error) {
	const query = `
		SELECT seq, state, id, reason, outcome, notes, account, source, device
		FROM event_mark
		WHERE node = $1
		  AND kind = $2
		  AND state = $3
		  AND seq < $4
		ORDER BY seq DESC
		LIMIT $5`
	return db.List(ctx, s.db, label, query, fields, s.node, kind, state, column(limitSeq), limit)
}

// Deferred returns the statuses of deferred events of the accounts after lastAccount, by account
// and sequence.
func (s *Statuses) Deferred(ctx context.Context, kind Kind, lastAccount relay.AccountID, limit int) ([]Status, error) {
	const query = `
		SELECT seq, state, id, reason, outcome, notes, account, source, device
		FROM event_mark
		WHERE node = $1
		  AND kind = $2
		  AND state = $3
		  AND account > $4
		ORDER BY account, seq
		LIMIT $5`
	return db.List(ctx, s.db, label, query, fields, s.node, kind, Pending, lastAccount, limit)
}

// Counts returns the number of stored statuses by state.
func (s *Statuses) Counts(ctx context.Context, kind Kind) (map[State]int, error) {
	const query = `
		SELECT state, count(*)
		FROM event_mark
		WHERE node = $1
		  AND kind = $2
		GROUP BY state`
	stored, err := db.Map[State, int](ctx, s.db, label, query, s.node, kind)
	counts := map[State]int{Quarantined: 0, Unrouted: 0}
	maps.Copy(counts, stored)
	return counts, err
}

// Trim deletes the statuses below firstSeq, the first sequence in the journal. Each transaction
// deletes up to trimLimit statuses.
func (s *Statuses) Trim(ctx context.Context, kind Kind, firstSeq uint64) error {
	// The plan of a range of sequences, unlike that of a list, does not depend on the estimates of
	// PostgreSQL.
	const statement = `
		DELETE FROM event_mark
		WHERE node = $1
		  AND kind = $2
		  AND seq < COALESCE(
			(SELECT seq
			 FROM event_mark
			 WHERE node = $1 AND kind = $2 AND seq < $3
			 ORDER BY seq
			 LIMIT 1 OFFSET $4), $3)`
	return s.db.Sweep(ctx, label, trimLimit, statement, s.node, kind, column(firstSeq))
}

// column converts a sequence to the type of the column. Sequences beyond its range become the
// largest value.
func column(seq uint64) int64 { return int64(min(seq, math.MaxInt64)) }
