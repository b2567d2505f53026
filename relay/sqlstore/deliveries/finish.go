package deliveries

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/sqlstore"
)

// isNew is false of an outcome whose attempt is recorded already. at is how its
// time stands in JSON: no text in an attempt holds it, as quotes are escaped there.
const isNew = `(b.at = '' OR delivery.attempts NOT LIKE '%' || b.at || '%')`

// addAttempt leaves an uncounted attempt out if its reason is that of the last, so
// that our own faults and the probes of breakers, which may repeat without end, do
// not grow the record.
const addAttempt = `attempts = CASE WHEN b.counted = 0 AND delivery.reason = b.reason THEN delivery.attempts ELSE delivery.attempts || b.attempt END`

// States are compared by NOT IN, as no index is read for that: PostgreSQL would
// read all that is under way when its statistics say that nothing is.
const (
	// deliver is finish for the usual outcome: an attempt that ended the delivery,
	// with nothing to say about it.
	deliver = `UPDATE delivery SET state = b.state, reason = '', due = 0, leased = 0, waits = '', endpoint = '', place = 0,
  tries = delivery.tries + 1, expires = $1, attempts = delivery.attempts || b.attempt
FROM batch AS b WHERE delivery.id = b.id AND delivery.account = b.account
  AND delivery.state NOT IN ('delivered', 'simulated', 'dead') AND delivery.attempts NOT LIKE '%' || b.at || '%'
RETURNING delivery.id, delivery.account, delivery.queue`

	// finish moves deliveries that have not ended. The wait for breakers ends when
	// the first one would have.
	finish = `UPDATE delivery SET state = b.state, reason = b.reason, due = b.due, leased = 0, waits = b.waits, endpoint = b.endpoint,
  held_until = CASE WHEN delivery.held_until = 0 THEN b.held_until ELSE delivery.held_until END,
  tries = delivery.tries + b.counted, expires = b.expires,
  place = CASE WHEN b.state IN ('queued', 'retrying') THEN delivery.place ELSE 0 END,
  ` + addAttempt + `
FROM batch AS b WHERE delivery.id = b.id AND delivery.account = b.account
  AND delivery.state NOT IN ('delivered', 'simulated', 'dead') AND ` + isNew + `
RETURNING delivery.id, delivery.account, delivery.queue`

	// finishEnded adds to deliveries that have ended their attempts.
	finishEnded = `UPDATE delivery SET ` + addAttempt + `
FROM batch AS b WHERE delivery.id = b.id AND delivery.account = b.account
  AND delivery.state NOT IN ('queued', 'retrying') AND b.at <> '' AND ` + isNew
)

// Finish records outcomes. Those that move a delivery take one statement; the
// others, and those of ordered endpoints and of dead deliveries, take more.
func (s *Store) Finish(ctx context.Context, os []outbox.Outcome) (turns []outbox.Ref, err error) {
	rounds, err := rounds(os)
	if err != nil || len(rounds) == 0 {
		return nil, err
	}
	err = s.db.Write(ctx, "deliveries: finish", func(ctx context.Context, tx *sqlstore.Tx) error {
		turns = nil
		for _, round := range rounds {
			next, err := s.finish(ctx, tx, round)
			if err != nil {
				return err
			}
			turns = append(turns, next...)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return turns, nil
}

// ending is an outcome with its attempt as JSON, and what came of it: whether it
// moved the delivery, and which ordered queue that is in.
type ending struct {
	*outbox.Outcome
	attempt, at string

	moved bool
	queue string
}

func (e *ending) ref() outbox.Ref { return outbox.Ref{Account: e.Account, ID: e.ID} }

// usual reports whether deliver can record it.
func (e *ending) usual() bool {
	return (e.State == outbox.Delivered || e.State == outbox.Simulated) && e.Reason == "" && e.at != "" && !e.Uncounted && e.HeldUntil.IsZero()
}

// rounds puts outcomes into batches that have each delivery once, in the order
// of their keys, so that two gateways lock rows in the same order.
func rounds(os []outbox.Outcome) (all [][]ending, err error) {
	seen := make(map[outbox.Ref]int, len(os))
	for i := range os {
		e := ending{Outcome: &os[i]}
		if err := e.encode(); err != nil {
			return nil, err
		}
		round := seen[e.ref()]
		seen[e.ref()]++
		if round == len(all) {
			all = append(all, nil)
		}
		all[round] = append(all[round], e)
	}
	for _, round := range all {
		slices.SortFunc(round, func(a, b ending) int {
			return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Account, b.Account))
		})
	}
	return all, nil
}

func (e *ending) encode() (err error) {
	if e.Attempt.At.IsZero() {
		return nil
	}
	attempt := e.Attempt
	attempt.At = attempt.At.UTC() // one moment, one text
	if e.attempt, err = sqlstore.Encode(attempt); err != nil {
		return fmt.Errorf("delivery %s: encode: %w", e.ID, err)
	}
	e.attempt += ","
	e.at = `at":"` + attempt.At.Format(time.RFC3339Nano) + `"`
	return nil
}

// finish records outcomes of different deliveries.
func (s *Store) finish(ctx context.Context, tx *sqlstore.Tx, round []ending) ([]outbox.Ref, error) {
	for i := range round { // of a run that was undone
		round[i].moved, round[i].queue = false, ""
	}
	if err := s.move(ctx, tx, round); err != nil {
		return nil, err
	}
	left, added := 0, make(map[outbox.State]int64)
	for _, e := range round {
		switch {
		case !e.moved:
			left++
		case e.State.Ended():
			added[e.State]++
		}
	}
	if left > 0 {
		rows := s.endings(round, func(e *ending) bool { return !e.moved })
		if _, err := tx.Exec(ctx, "deliveries: finish", finishEnded, rows); err != nil {
			return nil, err
		}
	}
	if added[outbox.Dead] > 0 {
		if err := bury(ctx, tx, round); err != nil {
			return nil, err
		}
	}
	turns, err := advanceAll(ctx, tx, s.released(round))
	if err != nil {
		return nil, err
	}
	return turns, addEnded(ctx, tx, added)
}

// move moves the deliveries that have not ended.
func (s *Store) move(ctx context.Context, tx *sqlstore.Tx, round []ending) error {
	usual := sqlstore.NewBatch("id text, account bigint, state text, at text, attempt text")
	for i := range round {
		if e := &round[i]; e.usual() {
			usual.Add(e.ID, int64(e.Account), string(e.State), e.at, e.attempt)
		}
	}
	if usual.Len() > 0 {
		moved, err := sqlstore.List(ctx, tx, "deliveries: finish", deliver, scanMember, s.expires(outbox.Delivered, s.db.Now()), usual)
		if err != nil {
			return err
		}
		mark(round, moved)
	}
	if usual.Len() < len(round) {
		others := s.endings(round, func(e *ending) bool { return !e.usual() })
		moved, err := sqlstore.List(ctx, tx, "deliveries: finish", finish, scanMember, others)
		if err != nil {
			return err
		}
		mark(round, moved)
	}
	return nil
}

// mark notes which outcomes moved their deliveries.
func mark(round []ending, moved []member) {
	queues := make(map[outbox.Ref]string, len(moved))
	for _, m := range moved {
		queues[m.ref] = m.queue
	}
	for i := range round {
		if queue, ok := queues[round[i].ref()]; ok {
			round[i].moved, round[i].queue = true, queue
		}
	}
}

// endings is some outcomes as a batch of finish.
func (s *Store) endings(round []ending, some func(*ending) bool) *sqlstore.Batch {
	now := s.db.Now()
	rows := sqlstore.NewBatch("id text, account bigint, state text, reason text, due bigint, waits text, endpoint text, held_until bigint, " +
		"counted bigint, expires bigint, at text, attempt text")
	for i := range round {
		e := &round[i]
		if !some(e) {
			continue
		}
		due, waits, endpoint := e.NextAttemptAt, "", ""
		if e.State.Ended() {
			due = time.Time{}
		}
		if !e.HeldUntil.IsZero() {
			waits, endpoint = string(outbox.WaitsForBreaker), e.Endpoint
		}
		rows.Add(e.ID, int64(e.Account), string(e.State), e.Reason, due, waits, endpoint, e.HeldUntil,
			!e.Uncounted, s.expires(e.State, now), e.at, e.attempt)
	}
	return rows
}

// expires returns when a delivery that comes to a state now is forgotten; 0 is
// never.
func (s *Store) expires(state outbox.State, now time.Time) int64 {
	keep := s.db.Retention()
	if state == outbox.Dead {
		keep = s.db.DeadRetention()
	}
	if keep == 0 || !state.Ended() {
		return 0
	}
	return sqlstore.Millis(now.Add(keep))
}

// released returns the ordered queues in which a delivery has ended, and when the
// next is due.
func (s *Store) released(round []ending) map[queueKey]int64 {
	due := make(map[queueKey]int64)
	for _, e := range round {
		if e.queue == "" || !e.State.Ended() {
			continue
		}
		at := e.Attempt.At
		if at.IsZero() {
			at = s.db.Now()
		}
		due[queueKey{e.Account, e.queue}] = sqlstore.Millis(at)
	}
	return due
}

// scanMember reads a row of id, account and queue.
func scanMember(row *sql.Rows, m *member) error {
	var acct int64
	err := row.Scan(&m.ref.ID, &acct, &m.queue)
	m.ref.Account = account.ID(acct)
	return err
}
