package outbox

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/penstock/penstock/relay/db"
)

const finishLabel = "deliveries: finish"

// Finish records outcomes in one transaction. An outcome changes nothing if an attempt with its
// time is already recorded. An outcome of a delivery that has already ended only adds its attempt.
// Finish returns the deliveries of ordered endpoints that are now due because the delivery before
// them has ended.
func (s *Store) Finish(ctx context.Context, outcomes []Outcome) (turns []Ref, err error) {
	// Each round has a delivery at most once and is sorted by keys, so that two gateways lock
	// rows in the same order.
	effects := make([]effect, len(outcomes))
	for i := range outcomes {
		effects[i].Outcome = &outcomes[i]
	}
	rounds := db.Rounds(effects, (*effect).ref)
	if len(rounds) == 0 {
		return nil, nil
	}
	for _, round := range rounds {
		slices.SortFunc(round, func(a, b effect) int {
			return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Account, b.Account))
		})
	}
	return db.Transact(ctx, s.db, finishLabel, func(ctx context.Context, tx *db.Tx) (turns []Ref, err error) {
		for _, round := range rounds {
			roundTurns, err := s.finish(ctx, tx, slices.Clone(round)) // the transaction may run again
			if err != nil {
				return nil, err
			}
			turns = append(turns, roundTurns...)
		}
		return turns, nil
	})
}

// effect is an outcome with its effect on the delivery.
type effect struct {
	*Outcome
	skipped bool   // the outcome was already recorded, or the delivery does not exist
	moved   bool   // the delivery has the outcome's state
	queue   string // the ordered queue of the delivery
}

func (e *effect) ref() Ref { return Ref{Account: e.Account, ID: e.ID} }

// finish records outcomes of different deliveries.
func (s *Store) finish(ctx context.Context, tx *db.Tx, round []effect) (turns []Ref, err error) {
	// 1. Save the attempts. Skip the outcomes with attempts that were saved before.
	if err := saveAttempts(ctx, tx, round); err != nil {
		return nil, err
	}
	// 2. Move the deliveries that have not ended. Then lock the remaining deliveries and try
	// again, because a delivery may have been replayed in between.
	if err := s.move(ctx, tx, round); err != nil {
		return nil, err
	}
	if err := skipMissing(ctx, tx, round); err != nil {
		return nil, err
	}
	if err := s.move(ctx, tx, round); err != nil {
		return nil, err
	}
	// 3. Save the texts of dead deliveries, give turns to the next deliveries of ordered queues,
	// and count the ended deliveries.
	var dead []Ref
	counts := make(map[State]int64)
	turnTimes := make(map[queueKey]int64)
	for i := range round {
		e := &round[i]
		if e.moved && e.State == Dead {
			dead = append(dead, e.ref())
		}
		if e.moved && e.State.Ended() {
			counts[e.State]++
		}
		if e.queue != "" && e.State.Ended() {
			endedAt := e.Attempt.At
			if endedAt.IsZero() {
				endedAt = s.db.Now()
			}
			turnTimes[queueKey{e.Account, e.queue}] = db.Millis(endedAt)
		}
	}
	if err := saveDeadTexts(ctx, tx, dead); err != nil {
		return nil, err
	}
	if turns, err = advance(ctx, tx, turnTimes); err != nil {
		return nil, err
	}
	return turns, addEnded(ctx, tx, counts)
}

// saveAttempts saves the attempts of a round, and skips the outcomes whose attempts were saved
// before.
func saveAttempts(ctx context.Context, tx *db.Tx, round []effect) error {
	const insert = `
		INSERT INTO delivery_attempt (delivery, account, at, duration, status, error, reason, response)
		SELECT id, account, at, duration, status, error, reason, response
		FROM batch
		WHERE true
		ORDER BY n
		ON CONFLICT (delivery, account, at) DO NOTHING
		RETURNING delivery, account`
	rows := db.NewBatch("id, account, at, duration, status, error, reason, response")
	for i := range round {
		e := &round[i]
		if a := &e.Attempt; !a.At.IsZero() {
			rows.Add(e.ID, e.Account, db.Nanos(a.At), int64(a.Duration), a.Status, a.Error, a.Reason, a.Response)
		}
	}
	saved, err := db.List(ctx, tx, finishLabel, insert, refFields, rows)
	isNew := refSet(saved)
	for i := range round {
		e := &round[i]
		e.skipped = !e.Attempt.At.IsZero() && !isNew[e.ref()]
	}
	return err
}

// skipMissing locks the deliveries that were not moved. It skips the outcomes of deliveries that do
// not exist, and deletes their attempts.
func skipMissing(ctx context.Context, tx *db.Tx, round []effect) error {
	const lock = `
		SELECT d.id, d.account
		FROM batch AS b
		JOIN delivery AS d ON d.id = b.id AND d.account = b.account
		ORDER BY d.id, d.account {for update}`
	const deleteAttempts = `
		DELETE FROM delivery_attempt
		WHERE (delivery, account, at) IN (SELECT id, account, at FROM batch)`
	var unmoved []Ref
	for i := range round {
		if e := &round[i]; !e.moved && !e.skipped {
			unmoved = append(unmoved, e.ref())
		}
	}
	locked, err := db.List(ctx, tx, finishLabel, lock, refFields, keys(unmoved))
	if err != nil {
		return err
	}
	exists := refSet(locked)
	missing := db.NewBatch("id, account, at")
	for i := range round {
		if e := &round[i]; !e.moved && !e.skipped && !exists[e.ref()] {
			missing.Add(e.ID, e.Account, db.Nanos(e.Attempt.At))
			e.skipped = true // even if the delivery is created after this query
		}
	}
	return tx.Run(ctx, finishLabel, deleteAttempts, missing)
}

// move sets the states of the deliveries that have not ended and were not moved before.
func (s *Store) move(ctx context.Context, tx *db.Tx, round []effect) error {
	// A delivery that a second breaker parks keeps the deadline of the first. States are
	// compared with NOT IN, which cannot use the index of states: PostgreSQL would read all
	// deliveries under way if its statistics have none.
	const update = `
		UPDATE delivery
		SET state = b.state, reason = b.reason, due = b.due, leased = 0,
		  waits = b.waits, endpoint = b.endpoint,
		  held_until = CASE WHEN delivery.held_until = 0 THEN b.held_until ELSE delivery.held_until END,
		  tries = delivery.tries + b.counted,
		  expires = b.expires,
		  place = CASE WHEN b.state IN ('queued', 'retrying') THEN delivery.place ELSE 0 END
		FROM batch AS b
		WHERE delivery.id = b.id AND delivery.account = b.account
		  AND delivery.state NOT IN ('delivered', 'simulated', 'dead')
		RETURNING delivery.id, delivery.account, delivery.queue`
	now := s.db.Now()
	rows := db.NewBatch("id, account, state, reason, due, waits, endpoint, held_until, counted, expires")
	for i := range round {
		e := &round[i]
		if e.moved || e.skipped {
			continue
		}
		due, waits, endpoint := e.NextAttemptAt, Wait(""), ""
		var expires time.Time // zero means never
		if e.State.Ended() {
			due = time.Time{}
			retention := s.db.Retention()
			if e.State == Dead {
				retention = s.db.DeadRetention()
			}
			if retention != 0 {
				expires = now.Add(retention)
			}
		}
		if !e.ParkedUntil.IsZero() {
			waits, endpoint = WaitsForBreaker, e.Endpoint
		}
		rows.Add(e.ID, e.Account, e.State, e.Reason, due, waits, endpoint, e.ParkedUntil, !e.Uncounted, expires)
	}
	moved, err := db.List(ctx, tx, finishLabel, update, (*member).fields, rows)
	members := db.IndexBy(moved, func(m member) Ref { return m.ref })
	for i := range round {
		if m, ok := members[round[i].ref()]; ok {
			round[i].moved, round[i].queue = true, m.queue
		}
	}
	return err
}
