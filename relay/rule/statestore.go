package rule

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/outbox"
)

const stateColumns = `s.device, s.rule, s.alarm, s.raised_at, s.since, s.heard, s.frame_at, s.record, s.repeats, s.ran_at, s.due, s.began`

// stateFields are stateColumns.
func stateFields(st *PairState) []any {
	return []any{
		&st.DeviceID, &st.RuleID, &st.AlarmID, db.NanoTime(&st.RaisedAt), db.NanoTime(&st.Since), db.NanoTime(&st.At),
		db.NanoTime(&st.FrameAt), &st.Record, &st.Repeats, db.NanoTime(&st.RanAt), db.Time(&st.Due), db.JSON(&st.Began),
	}
}

// PairStates returns the states of rules for devices.
func (s *Store) PairStates(ctx context.Context, acct relay.AccountID, deviceIDs []string) ([]PairState, error) {
	return db.List(ctx, s.db, "rule states", `
SELECT `+stateColumns+` FROM batch AS b JOIN rule_state AS s ON s.account = b.account AND s.device = b.device`, stateFields,
		db.AccountColumn(acct, "device", deviceIDs))
}

// Decide locks states, and saves what decide makes of them.
func (s *Store) Decide(ctx context.Context, acct relay.AccountID, pairs []Pair, until time.Time, decide func([]PairState) (Decision, error)) ([]outbox.Delivery, error) {
	pairs = db.FirstOfEach(pairs, func(a, b Pair) int {
		return cmp.Or(strings.Compare(a.DeviceID, b.DeviceID), strings.Compare(a.RuleID, b.RuleID))
	})
	return db.Transact(ctx, s.db, "rule states: decide", func(ctx context.Context, tx *db.Tx) ([]outbox.Delivery, error) {
		pairs, err := enabled(ctx, tx, acct, pairs)
		if err != nil {
			return nil, err
		}
		keys := db.BatchOf("account, device, rule", pairs, func(p *Pair) []any { return []any{acct, p.DeviceID, p.RuleID} })
		// Rows are made so that they can be locked; not for devices that were deleted.
		if err := tx.Run(ctx, "rule states: add", `
INSERT INTO rule_state (account, device, rule)
SELECT b.account, b.device, b.rule FROM batch AS b
WHERE EXISTS (SELECT 1 FROM device AS d WHERE d.account = b.account AND d.id = b.device)
ORDER BY b.n
ON CONFLICT (account, device, rule) DO NOTHING`, keys); err != nil {
			return nil, err
		}
		locked, err := db.List(ctx, tx, "rule states: lock", `
SELECT `+stateColumns+` FROM batch AS b JOIN rule_state AS s ON s.account = b.account AND s.device = b.device AND s.rule = b.rule
ORDER BY s.device, s.rule {for update}`, stateFields, keys)
		if err != nil {
			return nil, err
		}
		d, err := decide(locked)
		if err != nil {
			return nil, err
		}
		if err := save(ctx, tx, acct, &d, keys); err != nil {
			return nil, err
		}
		return outbox.Create(ctx, tx, d.Deliveries, until)
	})
}

// enabled leaves out the pairs whose rule was disabled or deleted meanwhile.
func enabled(ctx context.Context, tx *db.Tx, acct relay.AccountID, pairs []Pair) (left []Pair, err error) {
	ids := make([]string, len(pairs))
	for i := range pairs {
		ids[i] = pairs[i].RuleID
	}
	rows := db.AccountColumn(acct, "rule", db.FirstOfEach(ids, strings.Compare))
	// The rules stay as they are until the end of the transaction.
	rules, err := db.List(ctx, tx, "rule states: rules", `
SELECT `+ruleColumns+` FROM rule
WHERE (account, id) IN (SELECT account, rule FROM batch) ORDER BY id {for share}`, ruleFields, rows)
	if err != nil {
		return nil, err
	}
	is := db.By(rules, func(r Rule) string { return r.ID })
	for _, p := range pairs {
		if is[p.RuleID].Enabled {
			left = append(left, p)
		}
	}
	return left, nil
}

// clearAlarms finds the alarms by their keys: the expression keeps the engine from the index
// of all that are raised, which it would read for each.
const clearAlarms = `
UPDATE alarm SET state = 'cleared', cleared = b.cleared, cleared_by = b.cleared_by
FROM batch AS b WHERE alarm.account = b.account AND alarm.id = b.id AND alarm.state || '' = 'raised'`

// save saves a decision about states but for its deliveries. A state without a frame is
// not kept.
func save(ctx context.Context, tx *db.Tx, acct relay.AccountID, d *Decision, keys *db.Batch) error {
	return tx.RunAll(ctx, "rule states: save", db.Do(`
UPDATE rule_state SET alarm = b.alarm, raised_at = b.raised_at, since = b.since, began = b.began,
  heard = b.heard, frame_at = b.frame_at, record = b.record, repeats = b.repeats, ran_at = b.ran_at, due = b.due
FROM batch AS b WHERE rule_state.account = b.account AND rule_state.device = b.device AND rule_state.rule = b.rule`, stateRows(acct, d.States)), db.Do(`
INSERT INTO alarm (account, id, rule, device, state, raised, raised_by, doc)
SELECT account, id, rule, device, 'raised', raised, raised_by, doc FROM batch WHERE true
ON CONFLICT (account, id) DO NOTHING`, alarmRows(acct, d.Raised)), db.Do(clearAlarms, clearedRows(acct, d.Cleared)), db.Do(`
UPDATE rule_watch SET due = $1
FROM batch AS b WHERE rule_watch.account = b.account AND rule_watch.device = b.device`, tx.Now(), db.AccountColumn(acct, "device", d.Watch)), db.Do(`
DELETE FROM rule_state WHERE heard = 0
AND (account, device, rule) IN (SELECT b.account, b.device, b.rule FROM batch AS b)`, keys))
}

func stateRows(acct relay.AccountID, all []PairState) *db.Batch {
	return db.BatchOf("account, "+strings.ReplaceAll(stateColumns, "s.", ""), all, func(st *PairState) []any {
		values := append([]any{acct}, stateFields(st)...)
		if st.Began == nil {
			values[len(values)-1] = ""
		}
		return values
	})
}

func alarmRows(acct relay.AccountID, all []Alarm) *db.Batch {
	return db.BatchOf("account, id, rule, device, raised, raised_by, doc", all, func(a *Alarm) []any {
		return []any{acct, a.ID, a.RuleID, a.DeviceID, db.Nanos(a.RaisedAt), a.RaisedBy, db.JSON(documentOf(*a))}
	})
}

func clearedRows(acct relay.AccountID, all []Alarm) *db.Batch {
	return db.BatchOf("account, id, cleared, cleared_by", all, func(a *Alarm) []any {
		return []any{acct, a.ID, db.Nanos(a.ClearedAt), a.ClearedBy}
	})
}

// LeaseDue takes states that are due.
func (s *Store) LeaseDue(ctx context.Context, now, until time.Time, most int) ([]Owned[PairState], error) {
	return lease(ctx, s, "rule states: due", "rule_state", `
UPDATE rule_state SET due = $1 WHERE (account, device, rule) IN (
  SELECT account, device, rule FROM rule_state WHERE due > 0 AND due <= $2 ORDER BY due LIMIT $3 {skip locked}
) RETURNING account, device, rule`, func(o *Owned[PairState]) []any {
		return []any{&o.Account, &o.Of.DeviceID, &o.Of.RuleID}
	}, until, now, most)
}

// lease runs a statement that leases rows of a table until a time, if one is due.
func lease[T any](ctx context.Context, s *Store, noun, table, statement string, fields func(*T) []any, until, now time.Time, most int) ([]T, error) {
	due, err := db.Values[int64](ctx, s.db, noun, "SELECT due FROM "+table+" WHERE due > 0 AND due <= $1 LIMIT 1", now)
	if err != nil || len(due) == 0 {
		return nil, err
	}
	return db.Returning(ctx, s.db, noun, statement, fields, until, now, most)
}

// LeaseWatches takes devices that may be silent.
func (s *Store) LeaseWatches(ctx context.Context, now, until time.Time, most int) ([]Watch, error) {
	return lease(ctx, s, "silence: due", "rule_watch", `
UPDATE rule_watch SET due = $1 WHERE (account, device) IN (
  SELECT account, device FROM rule_watch WHERE due > 0 AND due <= $2 ORDER BY due LIMIT $3 {skip locked}
) RETURNING account, device`, func(w *Watch) []any { return []any{&w.Account, &w.DeviceID} }, until, now, most)
}

// MoveWatches sets when devices may be silent next.
func (s *Store) MoveWatches(ctx context.Context, leased time.Time, to []Watch) error {
	return s.db.Run(ctx, "silence: next", `
UPDATE rule_watch SET due = b.due
FROM batch AS b WHERE rule_watch.account = b.account AND rule_watch.device = b.device AND rule_watch.due = $1`, leased,
		db.BatchOf("account, device, due", to, func(w *Watch) []any { return []any{w.Account, w.DeviceID, w.Due} }))
}

// enrolledAtOnce is how many accounts one call of LeaseEnrolments takes at most.
const enrolledAtOnce = 100

// LeaseEnrolments takes accounts whose devices have to be watched.
func (s *Store) LeaseEnrolments(ctx context.Context, now, until time.Time) ([]Enrolment, error) {
	return lease(ctx, s, "silence: accounts", "rule_enrolment", `
UPDATE rule_enrolment SET due = $1 WHERE account IN (
  SELECT account FROM rule_enrolment WHERE due <= $2 ORDER BY account LIMIT $3 {skip locked}
) RETURNING account, after`, func(e *Enrolment) []any { return []any{&e.Account, &e.After} },
		until, now, enrolledAtOnce)
}

// Enrol watches the next devices of an account. When there are no more, the enrolment
// ends, unless another rule has begun one meanwhile.
func (s *Store) Enrol(ctx context.Context, e *Enrolment, now, leased time.Time, most int) (more bool, err error) {
	after, err := db.Transact(ctx, s.db, "silence: enrol", func(ctx context.Context, tx *db.Tx) (string, error) {
		added, err := db.Values[string](ctx, tx, "silence: enrol", `
INSERT INTO rule_watch (account, device, due)
SELECT account, id, CAST($1 AS BIGINT) FROM device WHERE account = $2 AND id > $3 ORDER BY id LIMIT $4
ON CONFLICT (account, device) DO UPDATE SET due = excluded.due
RETURNING device`, now, e.Account, e.After, most)
		if err != nil {
			return "", err
		}
		if more = len(added) == most; !more {
			return e.After, tx.Run(ctx, "silence: enrol", "DELETE FROM rule_enrolment WHERE account = $1 AND due = $2", e.Account, leased)
		}
		last := slices.Max(added)
		n, err := tx.Exec(ctx, "silence: enrol", "UPDATE rule_enrolment SET after = $1 WHERE account = $2 AND due = $3", last, e.Account, leased)
		more = n > 0 // else another rule has begun it anew
		return last, err
	})
	if err != nil {
		return false, err
	}
	e.After = after
	return more, nil
}
