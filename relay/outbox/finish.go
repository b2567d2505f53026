package outbox

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/penstock/penstock/relay/db"
)

const finishNoun = "deliveries: finish"

// finish moves deliveries that have not ended. A delivery that a second breaker parks keeps
// the deadline of the first. States are compared by NOT IN, as no index is read for that:
// PostgreSQL would read all that is under way when its statistics say that nothing is.
const finish = `UPDATE delivery SET state = b.state, reason = b.reason, due = b.due, leased = 0, waits = b.waits, endpoint = b.endpoint,
  held_until = CASE WHEN delivery.held_until = 0 THEN b.held_until ELSE delivery.held_until END,
  tries = delivery.tries + b.counted, expires = b.expires,
  place = CASE WHEN b.state IN ('queued', 'retrying') THEN delivery.place ELSE 0 END
FROM batch AS b WHERE delivery.id = b.id AND delivery.account = b.account
  AND delivery.state NOT IN ('delivered', 'simulated', 'dead')
RETURNING delivery.id, delivery.account, delivery.queue`

// lockUnmoved locks the deliveries whose outcomes moved nothing.
const lockUnmoved = `SELECT d.id, d.account FROM batch AS b JOIN delivery AS d ON d.id = b.id AND d.account = b.account
ORDER BY d.id, d.account {for update}`

// Finish records outcomes, each once: the key of its attempt says whether it is recorded
// already.
func (s *Store) Finish(ctx context.Context, os []Outcome) ([]Ref, error) {
	rounds := rounds(os)
	if len(rounds) == 0 {
		return nil, nil
	}
	return db.Transact(ctx, s.db, finishNoun, func(ctx context.Context, tx *db.Tx) (turns []Ref, err error) {
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

// ending is an outcome, and what came of it: whether it was skipped, whether it moved the
// delivery, and which ordered queue that is in.
type ending struct {
	*Outcome
	skipped, moved bool
	queue          string
}

func (e *ending) ref() Ref { return Ref{Account: e.Account, ID: e.ID} }

// rounds puts outcomes into batches that have each delivery once, in the order
// of their keys, so that two gateways lock rows in the same order.
func rounds(os []Outcome) [][]ending {
	endings := make([]ending, len(os))
	for i := range os {
		endings[i].Outcome = &os[i]
	}
	all := db.Rounds(endings, (*ending).ref)
	for _, round := range all {
		slices.SortFunc(round, func(a, b ending) int {
			return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Account, b.Account))
		})
	}
	return all
}

// finish records outcomes of different deliveries.
func (s *Store) finish(ctx context.Context, tx *db.Tx, round []ending) ([]Ref, error) {
	if err := saveAttempts(ctx, tx, round); err != nil {
		return nil, err
	}
	if err := s.move(ctx, tx, round); err != nil {
		return nil, err
	}
	if err := s.moveReplayed(ctx, tx, round); err != nil {
		return nil, err
	}
	added := make(map[State]int64)
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

// moveReplayed locks the deliveries of the outcomes that moved nothing: they had ended, and
// are moved if they were replayed since. The attempts of those that are gone are deleted.
func (s *Store) moveReplayed(ctx context.Context, tx *db.Tx, round []ending) error {
	var unmoved []Ref
	for i := range round {
		if e := &round[i]; !e.moved && !e.skipped {
			unmoved = append(unmoved, e.ref())
		}
	}
	found, err := db.List(ctx, tx, finishNoun, lockUnmoved, refFields, keys(unmoved))
	if err != nil {
		return err
	}
	isThere := refSet(found)
	gone := db.NewBatch("id, account, at")
	for i := range round {
		if e := &round[i]; !e.moved && !e.skipped && !isThere[e.ref()] {
			gone.Add(e.ID, e.Account, db.Nanos(e.Attempt.At))
			e.skipped = true // also if the delivery is created after this look
		}
	}
	err = tx.Run(ctx, finishNoun, `DELETE FROM delivery_attempt WHERE (delivery, account, at) IN (SELECT id, account, at FROM batch)`, gone)
	if err != nil {
		return err
	}
	return s.move(ctx, tx, round)
}

// move moves the deliveries that have not ended, once each.
func (s *Store) move(ctx context.Context, tx *db.Tx, round []ending) error {
	now := s.db.Now()
	rows := db.NewBatch("id, account, state, reason, due, waits, endpoint, held_until, counted, expires")
	for i := range round {
		e := &round[i]
		if e.moved || e.skipped {
			continue
		}
		due, waits, endpoint := e.NextAttemptAt, Wait(""), ""
		if e.State.Ended() {
			due = time.Time{}
		}
		if !e.ParkedUntil.IsZero() {
			waits, endpoint = WaitsForBreaker, e.Endpoint
		}
		rows.Add(e.ID, e.Account, e.State, e.Reason, due, waits, endpoint, e.ParkedUntil, !e.Uncounted, s.expires(e.State, now))
	}
	moved, err := db.List(ctx, tx, finishNoun, finish, (*member).fields, rows)
	queues := db.By(moved, func(m member) Ref { return m.ref })
	for i := range round {
		if m, ok := queues[round[i].ref()]; ok {
			round[i].moved, round[i].queue = true, m.queue
		}
	}
	return err
}

// expires returns when a delivery that comes to a state now is forgotten; the zero
// time is never.
func (s *Store) expires(state State, now time.Time) time.Time {
	keep := s.db.Retention()
	if state == Dead {
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
		due[queueKey{e.Account, e.queue}] = db.Millis(at)
	}
	return due
}
