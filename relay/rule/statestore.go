package rule

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/outbox"
)

const stateColumns = `s.device, s.rule, s.alarm, s.raised_at, s.since, s.heard, s.frame_at, s.record, s.repeats, s.ran_at, s.due, s.began`

func stateFields(st *PairState) []any {
	return []any{
		&st.DeviceID, &st.RuleID, &st.AlarmID, db.NanoTime(&st.RaisedAt), db.NanoTime(&st.Since), db.NanoTime(&st.ChangedAt),
		db.NanoTime(&st.FrameAt), &st.Record, &st.Repeats, db.NanoTime(&st.ActionsRanAt), db.Time(&st.Due), db.JSON(&st.StartOccurrence),
	}
}

// PairStates returns the states of an account's rules for devices. Most pairs have no state.
func (s *Store) PairStates(ctx context.Context, acct relay.AccountID, deviceIDs []string) ([]PairState, error) {
	const query = `
		SELECT ` + stateColumns + `
		FROM batch AS b
		JOIN rule_state AS s ON s.account = b.account AND s.device = b.device`
	return db.List(ctx, s.db, "rule states", query, stateFields, db.AccountColumn(acct, "device", deviceIDs))
}

// SaveDecision locks the states of pairs, calls decide with them and saves the decision in one
// transaction. It skips pairs with a disabled or deleted rule. It returns the new deliveries, which
// are leased until leaseUntil. decide may be called more than once.
func (s *Store) SaveDecision(ctx context.Context, acct relay.AccountID, pairs []Pair, leaseUntil time.Time, decide func([]PairState) (Decision, error)) ([]outbox.Delivery, error) {
	const lockRules = `
		SELECT ` + ruleColumns + `
		FROM rule
		WHERE (account, id) IN (SELECT account, rule FROM batch)
		ORDER BY id {for share}`
	// insert adds missing states so that they can be locked, except for deleted devices.
	const insert = `
		INSERT INTO rule_state (account, device, rule)
		SELECT b.account, b.device, b.rule
		FROM batch AS b
		WHERE EXISTS (SELECT 1 FROM device AS d WHERE d.account = b.account AND d.id = b.device)
		ORDER BY b.n
		ON CONFLICT (account, device, rule) DO NOTHING`
	const lock = `
		SELECT ` + stateColumns + `
		FROM batch AS b
		JOIN rule_state AS s ON s.account = b.account AND s.device = b.device AND s.rule = b.rule
		ORDER BY s.device, s.rule {for update}`
	pairs = db.FirstOfEach(pairs, func(a, b Pair) int {
		return cmp.Or(strings.Compare(a.DeviceID, b.DeviceID), strings.Compare(a.RuleID, b.RuleID))
	})
	return db.Transact(ctx, s.db, "rule states: decide", func(ctx context.Context, tx *db.Tx) ([]outbox.Delivery, error) {
		// 1. Lock the rules and remove the pairs of disabled or deleted rules.
		ruleIDs := db.BatchOf("account, rule", db.FirstOfEach(pairs, func(a, b Pair) int {
			return strings.Compare(a.RuleID, b.RuleID)
		}), func(p *Pair) []any { return []any{acct, p.RuleID} })
		rules, err := db.List(ctx, tx, "rule states: rules", lockRules, ruleFields, ruleIDs)
		if err != nil {
			return nil, err
		}
		byID := db.IndexBy(rules, func(r Rule) string { return r.ID })
		pairs := slices.DeleteFunc(slices.Clone(pairs), func(p Pair) bool { return !byID[p.RuleID].Enabled })

		// 2. Lock the states.
		keys := db.BatchOf("account, device, rule", pairs, func(p *Pair) []any { return []any{acct, p.DeviceID, p.RuleID} })
		if err := tx.Run(ctx, "rule states: add", insert, keys); err != nil {
			return nil, err
		}
		locked, err := db.List(ctx, tx, "rule states: lock", lock, stateFields, keys)
		if err != nil {
			return nil, err
		}

		// 3. Save the decision.
		d, err := decide(locked)
		if err != nil {
			return nil, err
		}
		if err := save(ctx, tx, acct, &d, keys); err != nil {
			return nil, err
		}
		return outbox.Create(ctx, tx, d.Deliveries, leaseUntil)
	})
}

// clearAlarms appends an empty string to state before it compares it, so that the engine does not use
// the index of raised alarms. With that index, the engine would read all raised alarms for each ID.
const clearAlarms = `
		UPDATE alarm
		SET state = 'cleared', cleared = b.cleared, cleared_by = b.cleared_by
		FROM batch AS b
		WHERE alarm.account = b.account AND alarm.id = b.id
		  AND alarm.state || '' = 'raised'`

// save saves a decision without its deliveries. It deletes the states that SaveDecision has added if the
// decision does not change them.
func save(ctx context.Context, tx *db.Tx, acct relay.AccountID, d *Decision, keys *db.Batch) error {
	const updateStates = `
		UPDATE rule_state
		SET alarm = b.alarm, raised_at = b.raised_at, since = b.since, began = b.began, heard = b.heard,
		  frame_at = b.frame_at, record = b.record, repeats = b.repeats, ran_at = b.ran_at, due = b.due
		FROM batch AS b
		WHERE rule_state.account = b.account AND rule_state.device = b.device AND rule_state.rule = b.rule`
	const insertAlarms = `
		INSERT INTO alarm (account, id, rule, device, state, raised, raised_by, doc)
		SELECT account, id, rule, device, 'raised', raised, raised_by, doc
		FROM batch
		WHERE true
		ON CONFLICT (account, id) DO NOTHING`
	const checkSilence = `
		UPDATE rule_watch
		SET due = $1
		FROM batch AS b
		WHERE rule_watch.account = b.account AND rule_watch.device = b.device`
	const deleteUnused = `
		DELETE FROM rule_state
		WHERE heard = 0
		  AND (account, device, rule) IN (SELECT b.account, b.device, b.rule FROM batch AS b)`
	states := db.BatchOf("account, "+strings.ReplaceAll(stateColumns, "s.", ""), d.States, func(st *PairState) []any {
		values := append([]any{acct}, stateFields(st)...)
		if st.StartOccurrence == nil {
			values[len(values)-1] = ""
		}
		return values
	})
	raised := db.BatchOf("account, id, rule, device, raised, raised_by, doc", d.Raised, func(a *Alarm) []any {
		return []any{acct, a.ID, a.RuleID, a.DeviceID, db.Nanos(a.RaisedAt), a.RaisedBy, db.JSON(documentOf(*a))}
	})
	cleared := db.BatchOf("account, id, cleared, cleared_by", d.Cleared, func(a *Alarm) []any {
		return []any{acct, a.ID, db.Nanos(a.ClearedAt), a.ClearedBy}
	})
	return tx.RunAll(ctx, "rule states: save",
		db.Do(updateStates, states),
		db.Do(insertAlarms, raised),
		db.Do(clearAlarms, cleared),
		db.Do(checkSilence, tx.Now(), db.AccountColumn(acct, "device", d.SilenceChecks)),
		db.Do(deleteUnused, keys))
}

// LeaseDue leases due states, oldest first, by setting Due to leaseUntil. Until then, no other gateway
// leases them. The records have only the account and the ids of the device and the rule.
func (s *Store) LeaseDue(ctx context.Context, now, leaseUntil time.Time, limit int) ([]AccountRecord[PairState], error) {
	const update = `
		UPDATE rule_state
		SET due = $1
		WHERE (account, device, rule) IN (
		  SELECT account, device, rule
		  FROM rule_state
		  WHERE due > 0 AND due <= $2
		  ORDER BY due
		  LIMIT $3 {skip locked})
		RETURNING account, device, rule`
	return lease(ctx, s, "rule states: due", "rule_state", update, func(o *AccountRecord[PairState]) []any {
		return []any{&o.Account, &o.Record.DeviceID, &o.Record.RuleID}
	}, leaseUntil, now, limit)
}

// lease runs a statement that leases rows of a table if the table has a due row. The check needs no
// write transaction.
func lease[T any](ctx context.Context, s *Store, label, table, statement string, fields func(*T) []any, leaseUntil, now time.Time, limit int) ([]T, error) {
	due, err := db.Values[int64](ctx, s.db, label, "SELECT due FROM "+table+" WHERE due > 0 AND due <= $1 LIMIT 1", now)
	if err != nil || len(due) == 0 {
		return nil, err
	}
	return db.Returning(ctx, s.db, label, statement, fields, leaseUntil, now, limit)
}

// LeaseWatches leases due watches like LeaseDue. The watches have no Due.
func (s *Store) LeaseWatches(ctx context.Context, now, leaseUntil time.Time, limit int) ([]Watch, error) {
	const update = `
		UPDATE rule_watch
		SET due = $1
		WHERE (account, device) IN (
		  SELECT account, device
		  FROM rule_watch
		  WHERE due > 0 AND due <= $2
		  ORDER BY due
		  LIMIT $3 {skip locked})
		RETURNING account, device`
	return lease(ctx, s, "silence: due", "rule_watch", update, func(w *Watch) []any {
		return []any{&w.Account, &w.DeviceID}
	}, leaseUntil, now, limit)
}

// RescheduleWatches sets Due of watches that were leased until leasedUntil. A zero Due means never. It
// skips watches that have changed since they were leased.
func (s *Store) RescheduleWatches(ctx context.Context, leasedUntil time.Time, watches []Watch) error {
	const update = `
		UPDATE rule_watch
		SET due = b.due
		FROM batch AS b
		WHERE rule_watch.account = b.account AND rule_watch.device = b.device
		  AND rule_watch.due = $1`
	return s.db.Run(ctx, "silence: next", update, leasedUntil,
		db.BatchOf("account, device, due", watches, func(w *Watch) []any { return []any{w.Account, w.DeviceID, w.Due} }))
}

// firstCheckAfter is the age at which a new device is first checked for silence.
const firstCheckAfter = time.Minute

// OnDevice implements iot.DeviceHook. Its statements add a watch for a new device if the account has
// rules on silence, make the watch of a changed device due, and delete the states of a deleted device
// and clear its alarms.
func OnDevice(tx *db.Tx, acct relay.AccountID, deviceID string, e iot.DeviceEvent) []db.Statement {
	const watch = `
		INSERT INTO rule_watch (account, device, due)
		SELECT CAST($1 AS BIGINT), $2, CAST($3 AS BIGINT)
		WHERE EXISTS (SELECT 1 FROM rule WHERE account = $4 AND silent = 1)
		ON CONFLICT (account, device) DO NOTHING`
	const check = "UPDATE rule_watch SET due = $1 WHERE account = $2 AND device = $3"
	const clearRaised = `
		UPDATE alarm
		SET state = 'cleared', cleared = {greatest}(raised, $1)
		WHERE account = $2 AND device = $3 AND state = 'raised'`
	switch e {
	case iot.DeviceCreated:
		return []db.Statement{db.Do(watch, acct, deviceID, tx.Now().Add(firstCheckAfter), acct)}
	case iot.DeviceChanged:
		return []db.Statement{db.Do(check, tx.Now(), acct, deviceID)}
	}
	return []db.Statement{
		db.Do("DELETE FROM rule_state WHERE account = $1 AND device = $2", acct, deviceID),
		db.Do("DELETE FROM rule_watch WHERE account = $1 AND device = $2", acct, deviceID),
		db.Do(clearRaised, db.Nanos(tx.Now()), acct, deviceID),
	}
}

// maxEnrolments is the largest number of accounts that one call of LeaseEnrolments leases.
const maxEnrolments = 100

// LeaseEnrolments leases accounts with a new rule on silence that need watches for their
// devices.
func (s *Store) LeaseEnrolments(ctx context.Context, now, leaseUntil time.Time) ([]Enrolment, error) {
	const update = `
		UPDATE rule_enrolment
		SET due = $1
		WHERE account IN (
		  SELECT account
		  FROM rule_enrolment
		  WHERE due <= $2
		  ORDER BY account
		  LIMIT $3 {skip locked})
		RETURNING account, after`
	return lease(ctx, s, "silence: accounts", "rule_enrolment", update, func(e *Enrolment) []any {
		return []any{&e.Account, &e.LastDeviceID}
	}, leaseUntil, now, maxEnrolments)
}

// Enrol adds watches for the next devices of an account that was leased until leasedUntil. It reports
// whether there are more devices. After the last device it deletes the enrolment, unless another rule
// has started it again.
func (s *Store) Enrol(ctx context.Context, e *Enrolment, now, leasedUntil time.Time, limit int) (hasMore bool, err error) {
	const label = "silence: enrol"
	const insert = `
		INSERT INTO rule_watch (account, device, due)
		SELECT account, id, CAST($1 AS BIGINT)
		FROM device
		WHERE account = $2 AND id > $3
		ORDER BY id
		LIMIT $4
		ON CONFLICT (account, device) DO UPDATE SET due = excluded.due
		RETURNING device`
	const end = "DELETE FROM rule_enrolment WHERE account = $1 AND due = $2"
	const proceed = "UPDATE rule_enrolment SET after = $1 WHERE account = $2 AND due = $3"
	lastAdded, err := db.Transact(ctx, s.db, label, func(ctx context.Context, tx *db.Tx) (string, error) {
		added, err := db.Values[string](ctx, tx, label, insert, now, e.Account, e.LastDeviceID, limit)
		if err != nil {
			return "", err
		}
		if hasMore = len(added) == limit; !hasMore {
			return e.LastDeviceID, tx.Run(ctx, label, end, e.Account, leasedUntil)
		}
		lastID := slices.Max(added)
		n, err := tx.Exec(ctx, label, proceed, lastID, e.Account, leasedUntil)
		hasMore = n > 0 // otherwise another rule has started the enrolment again
		return lastID, err
	})
	if err != nil {
		return false, err
	}
	e.LastDeviceID = lastAdded
	return hasMore, nil
}
