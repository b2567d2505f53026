package deliveries

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/sqlstore"
)

// isNew is true for an outcome whose attempt is not recorded yet. It searches the JSON
// of the attempts for b.at, the field "at" with the time: quotes inside texts are
// escaped, so that only a field can match.
const isNew = `(b.at = '' OR delivery.attempts NOT LIKE '%' || b.at || '%')`

// addAttempt leaves an uncounted attempt out if its reason is that of the last, so
// that our own faults and the probes of breakers, which may repeat without end, do
// not grow the record.
const addAttempt = `attempts = CASE WHEN b.counted = 0 AND delivery.reason = b.reason THEN delivery.attempts ELSE delivery.attempts || b.attempt END`

// States are compared by NOT IN, as no index is read for that: PostgreSQL would
// read all that is under way when its statistics say that nothing is.
const (
	// finish moves deliveries that have not ended. A delivery that a second
	// breaker parks keeps the deadline of the first.
	finish = `UPDATE delivery SET state = b.state, reason = b.reason, due = b.due, leased = 0, waits = b.waits, endpoint = b.endpoint,
  held_until = CASE WHEN delivery.held_until = 0 THEN b.held_until ELSE delivery.held_until END,
  tries = delivery.tries + b.counted, expires = b.expires,
  place = CASE WHEN b.state IN ('queued', 'retrying') THEN delivery.place ELSE 0 END,
  ` + addAttempt + `
FROM batch AS b WHERE delivery.id = b.id AND delivery.account = b.account
  AND delivery.state NOT IN ('delivered', 'simulated', 'dead') AND ` + isNew + `
RETURNING delivery.id, delivery.account, delivery.queue`

	// lockUnmoved locks the deliveries whose outcomes moved nothing.
	lockUnmoved = `SELECT d.id, d.account, d.queue FROM batch AS b JOIN delivery AS d ON d.id = b.id AND d.account = b.account
ORDER BY d.id, d.account {for update}`
)

const finishNoun = "deliveries: finish"

// Finish records outcomes. Those that move a delivery take one statement; the
// others, and those of ordered endpoints and of dead deliveries, take more.
func (s *Store) Finish(ctx context.Context, os []outbox.Outcome) ([]outbox.Ref, error) {
	rounds, err := rounds(os)
	if err != nil || len(rounds) == 0 {
		return nil, err
	}
	return sqlstore.Transact(ctx, s.db, finishNoun, func(ctx context.Context, tx *sqlstore.Tx) (turns []outbox.Ref, err error) {
		for _, round := range rounds {
			next, err := s.finish(ctx, tx, slices.Clone(round)) // what is found of them is not true when the transaction runs again
			if err != nil {
				return nil, err
			}
			turns = append(turns, next...)
		}
		return turns, nil
	})
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

// usual reports whether the statement for the usual outcome can record it.
func (e *ending) usual() bool {
	return (e.State == outbox.Delivered || e.State == outbox.Simulated) && e.Reason == "" && e.at != "" && !e.Uncounted && e.ParkedUntil.IsZero()
}

// rounds puts outcomes into batches that have each delivery once, in the order
// of their keys, so that two gateways lock rows in the same order.
func rounds(os []outbox.Outcome) ([][]ending, error) {
	endings := make([]ending, len(os))
	for i := range os {
		endings[i].Outcome = &os[i]
		if err := endings[i].encode(); err != nil {
			return nil, err
		}
	}
	all := sqlstore.Rounds(endings, (*ending).ref)
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
		return fmt.Errorf("delivery %s: %w", e.ID, err)
	}
	e.attempt += ","
	e.at = `at":"` + attempt.At.Format(time.RFC3339Nano) + `"`
	return nil
}

// finish records outcomes of different deliveries.
func (s *Store) finish(ctx context.Context, tx *sqlstore.Tx, round []ending) ([]outbox.Ref, error) {
	if err := s.move(ctx, tx, round); err != nil {
		return nil, err
	}
	if err := s.finishUnmoved(ctx, tx, round); err != nil {
		return nil, err
	}
	added := make(map[outbox.State]int64)
	for _, e := range round {
		if e.moved && e.State.Ended() {
			added[e.State]++
		}
	}
	if err := indexDead(ctx, tx, round); err != nil {
		return nil, err
	}
	turns, err := advanceAll(ctx, tx, s.released(round))
	if err != nil {
		return nil, err
	}
	return turns, addEnded(ctx, tx, added)
}

// finishUnmoved records the outcomes that moved nothing. Their deliveries had ended, and
// may have been replayed since: they are locked, and moved if so.
func (s *Store) finishUnmoved(ctx context.Context, tx *sqlstore.Tx, round []ending) error {
	var unmoved []outbox.Ref
	for i := range round {
		if !round[i].moved {
			unmoved = append(unmoved, round[i].ref())
		}
	}
	if _, err := sqlstore.List(ctx, tx, finishNoun, lockUnmoved, (*member).fields, keys(unmoved)); err != nil {
		return err
	}
	if err := s.move(ctx, tx, round); err != nil {
		return err
	}
	return tx.Run(ctx, finishNoun, `
UPDATE delivery SET `+addAttempt+`
FROM batch AS b WHERE delivery.id = b.id AND delivery.account = b.account
  AND delivery.state NOT IN ('queued', 'retrying') AND b.at <> '' AND `+isNew, s.endings(round, func(e *ending) bool { return !e.moved }))
}

// move moves the deliveries that have not ended, once each.
func (s *Store) move(ctx context.Context, tx *sqlstore.Tx, round []ending) error {
	// The usual outcome is one counted attempt that delivered or simulated the delivery,
	// without a reason.
	usual := sqlstore.NewBatch("id, account, state, at, attempt")
	for i := range round {
		if e := &round[i]; !e.moved && e.usual() {
			usual.Add(e.ID, e.Account, e.State, e.at, e.attempt)
		}
	}
	moved, err := sqlstore.List(ctx, tx, finishNoun, `
UPDATE delivery SET state = b.state, reason = '', due = 0, leased = 0, waits = '', endpoint = '', place = 0,
  tries = delivery.tries + 1, expires = $1, attempts = delivery.attempts || b.attempt
FROM batch AS b WHERE delivery.id = b.id AND delivery.account = b.account
  AND delivery.state NOT IN ('delivered', 'simulated', 'dead') AND delivery.attempts NOT LIKE '%' || b.at || '%'
RETURNING delivery.id, delivery.account, delivery.queue`, (*member).fields, s.expires(outbox.Delivered, s.db.Now()), usual)
	if err != nil {
		return err
	}
	others := s.endings(round, func(e *ending) bool { return !e.moved && !e.usual() })
	more, err := sqlstore.List(ctx, tx, finishNoun, finish, (*member).fields, others)
	if err != nil {
		return err
	}
	of := sqlstore.By(append(moved, more...), func(m member) outbox.Ref { return m.ref })
	for i := range round {
		if m, moved := of[round[i].ref()]; moved {
			round[i].moved, round[i].queue = true, m.queue
		}
	}
	return nil
}

// endings is some outcomes as a batch of finish.
func (s *Store) endings(round []ending, some func(*ending) bool) *sqlstore.Batch {
	now := s.db.Now()
	rows := sqlstore.NewBatch("id, account, state, reason, due, waits, endpoint, held_until, " +
		"counted, expires, at, attempt")
	for i := range round {
		e := &round[i]
		if !some(e) {
			continue
		}
		due, waits, endpoint := e.NextAttemptAt, outbox.Wait(""), ""
		if e.State.Ended() {
			due = time.Time{}
		}
		if !e.ParkedUntil.IsZero() {
			waits, endpoint = outbox.WaitsForBreaker, e.Endpoint
		}
		rows.Add(e.ID, e.Account, e.State, e.Reason, due, waits, endpoint, e.ParkedUntil,
			!e.Uncounted, s.expires(e.State, now), e.at, e.attempt)
	}
	return rows
}

// expires returns when a delivery that comes to a state now is forgotten; the zero
// time is never.
func (s *Store) expires(state outbox.State, now time.Time) time.Time {
	keep := s.db.Retention()
	if state == outbox.Dead {
		keep = s.db.DeadRetention()
	}
	if keep == 0 || !state.Ended() {
		return time.Time{}
	}
	return now.Add(keep)
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
