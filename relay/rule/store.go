package rule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/iot"
)

// Store stores rules, their states and batches, alarms and mutes. It is safe for concurrent use.
type Store struct{ db *db.DB }

// NewStore returns the store in a database.
func NewStore(database *db.DB) *Store { return &Store{db: database} }

const ruleColumns = `account, doc, id, created, failures, failed_at, failure`

// enrolAfter is the time between saving a rule on silence and adding watches for its devices.
const enrolAfter = 3 * time.Second

func ruleFields(r *Rule) []any { return ownedRuleFields(new(relay.AccountID), r) }

func ownedRuleFields(acct *relay.AccountID, r *Rule) []any {
	doc := db.SealedOr(&r.Undecryptable, db.JSON(r), "rule", acct)
	return []any{acct, doc, &r.ID, db.NanoTime(&r.CreatedAt), &r.Failures.Count, db.Time(&r.Failures.LastAt), &r.Failures.Last}
}

// Create saves a new rule. It returns relay.KindConflict if the ID exists.
func (s *Store) Create(ctx context.Context, acct relay.AccountID, r Rule) error {
	const insert = `
		INSERT INTO rule (account, id, created, silent, doc)
		VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT DO NOTHING`
	label := "rule " + r.ID
	conflict := relay.Errorf(relay.KindConflict, "rule %s exists", r.ID)
	doc := db.Sealed(db.JSON(r), "rule", acct)
	return s.db.Write(ctx, label, func(ctx context.Context, tx *db.Tx) error {
		err := db.ChangeOr(ctx, tx, conflict, label, insert, acct, r.ID, db.Nanos(r.CreatedAt), r.On == OnSilent, doc)
		if err != nil {
			return err
		}
		return publish(ctx, tx, acct, r)
	})
}

// publish starts an enrolment of the account if the saved rule is an enabled rule on silence, and
// increments the version of the account's rules. It must be the last step of a transaction.
func publish(ctx context.Context, tx *db.Tx, acct relay.AccountID, r Rule) error {
	const enrol = `
		INSERT INTO rule_enrolment (account, due, after)
		VALUES ($1, $2, '')
		ON CONFLICT (account) DO UPDATE SET due = excluded.due, after = ''`
	label := "rule " + r.ID
	if r.On == OnSilent && r.Enabled {
		// Concurrent transactions that create devices may not see the rule and add no watches. The
		// enrolment is due after these transactions have ended.
		if err := tx.Run(ctx, label, enrol, acct, tx.Now().Add(enrolAfter)); err != nil {
			return err
		}
	}
	return tx.RunAll(ctx, label, db.Bump(iot.RulesVersionOf(acct)))
}

// Change calls change with a rule and saves the result. After a concurrent update, it calls change
// again. It returns relay.KindNotFound if there is no such rule, and the errors of change. If forget
// returns true, Change deletes the rule's states and clears its alarms.
func (s *Store) Change(ctx context.Context, acct relay.AccountID, id string, change func(*Rule) error, forget func(oldRule, newRule Rule) bool, now time.Time) (Rule, error) {
	const lock = "SELECT account, doc FROM rule WHERE account = $1 AND id = $2 {for update}"
	const update = `
		UPDATE rule
		SET silent = $1, doc = $2, failures = 0, failed_at = 0, failure = ''
		WHERE account = $3 AND id = $4`
	const sendBatch = "UPDATE rule_batch SET due = $1 WHERE account = $2 AND rule = $3 AND n > 0"
	label := "rule " + id
	return db.Transact(ctx, s.db, label, func(ctx context.Context, tx *db.Tx) (r Rule, err error) {
		doc, err := db.One(ctx, tx, label, lock, db.SealedText("rule"), acct, id)
		if err != nil {
			return r, err
		}
		var oldRule Rule
		if err := db.Decode([]byte(doc), &oldRule); err != nil {
			return r, err
		}
		if r, _, err = db.Edit(label, doc, change); err != nil {
			return r, err
		}
		r.Failures = Failures{}
		statements := []db.Statement{db.Do(update, r.On == OnSilent, db.Sealed(db.JSON(r), "rule", acct), acct, id)}
		if oldRule.Batch != r.Batch { // collected frames are sent at once
			statements = append(statements, db.Do(sendBatch, now, acct, id))
		}
		if forget(oldRule, r) {
			statements = append(statements, forgetRule(acct, id, now)...)
		}
		if err := tx.RunAll(ctx, label, statements...); err != nil {
			return r, err
		}
		return r, publish(ctx, tx, acct, r)
	})
}

// Delete deletes a rule with its states, its batch and its mutes, and clears its alarms. The alarms
// are not deleted.
func (s *Store) Delete(ctx context.Context, acct relay.AccountID, id string, now time.Time) error {
	label := "rule " + id
	return s.db.RunAll(ctx, label, slices.Concat(
		[]db.Statement{db.Do("DELETE FROM rule WHERE account = $1 AND id = $2", acct, id).Or(db.NotFound(label))},
		forgetRule(acct, id, now),
		[]db.Statement{
			db.Do("DELETE FROM rule_batch WHERE account = $1 AND rule = $2", acct, id),
			db.Do("DELETE FROM rule_item WHERE account = $1 AND rule = $2", acct, id),
			db.Do("DELETE FROM alarm_mute WHERE account = $1 AND rule = $2", acct, id),
			db.Bump(iot.RulesVersionOf(acct)),
		})...)
}

// forgetRule returns the statements that delete a rule's states and clear its alarms.
func forgetRule(acct relay.AccountID, id string, now time.Time) []db.Statement {
	const clearRaised = `
		UPDATE alarm
		SET state = 'cleared', cleared = {greatest}(raised, $1)
		WHERE account = $2 AND rule = $3 AND state = 'raised'`
	return []db.Statement{
		db.Do("DELETE FROM rule_state WHERE account = $1 AND rule = $2", acct, id),
		db.Do(clearRaised, now.UnixNano(), acct, id),
	}
}

// Rule loads a rule. It returns relay.KindNotFound if there is no such rule.
func (s *Store) Rule(ctx context.Context, acct relay.AccountID, id string) (Rule, error) {
	const query = "SELECT " + ruleColumns + " FROM rule WHERE account = $1 AND id = $2"
	r, err := db.One(ctx, s.db, "rule "+id, query, ruleFields, acct, id)
	if err == nil && r.Undecryptable {
		return Rule{}, fmt.Errorf("rule %s: %w", id, relay.ErrUndecryptable)
	}
	return r, err
}

// Rules lists an account's rules in order of creation.
func (s *Store) Rules(ctx context.Context, acct relay.AccountID) ([]Rule, error) {
	const query = `
		SELECT ` + ruleColumns + `
		FROM rule
		WHERE account = $1
		ORDER BY created, id`
	return db.List(ctx, s.db, "rules", query, ruleFields, acct)
}

// FindRules returns up to limit rules after cursor of an account, or of all accounts if acct is 0, in
// the order of account and time of creation.
func (s *Store) FindRules(ctx context.Context, acct relay.AccountID, cursor Cursor, limit int) ([]AccountRecord[Rule], error) {
	var w db.Where
	w.AndSet("account = ?", acct)
	w.And("(account, created, id) > (?, ?, ?)", cursor.Account, db.Nanos(cursor.CreatedAt), cursor.ID)
	return db.Page(ctx, s.db, "rules", "SELECT "+ruleColumns+" FROM rule", &w, "account, created, id", limit, func(r *AccountRecord[Rule]) []any {
		return ownedRuleFields(&r.Account, &r.Record)
	})
}

// CountRules counts an account's rules.
func (s *Store) CountRules(ctx context.Context, acct relay.AccountID) (int, error) {
	return db.Value[int](ctx, s.db, "rules", "SELECT COUNT(*) FROM rule WHERE account = $1", acct)
}

// AddFailures adds failures to the stored failures of rules.
func (s *Store) AddFailures(ctx context.Context, failures map[iot.Ref]Failures) error {
	const update = `
		UPDATE rule
		SET failures = rule.failures + b.count, failed_at = b.at, failure = b.reason
		FROM batch AS b
		WHERE rule.account = b.account AND rule.id = b.id`
	rows := db.NewBatch("account, id, count, at, reason")
	for ref, f := range failures {
		rows.Add(ref.Account, ref.ID, f.Count, f.LastAt, f.Last)
	}
	return s.db.Run(ctx, "rules: failures", update, rows)
}

// Sweep deletes the keys of frames that were sent in a batch more than itemRetention ago. It also
// deletes mutes that ended more than muteRetention ago.
func (s *Store) Sweep(ctx context.Context, now time.Time) error {
	return errors.Join(
		s.db.SweepExpired(ctx, "rules: sweep", "rule_item", "account, rule, record", "taken", now.Add(-itemRetention)),
		s.db.Run(ctx, "mutes: sweep", "DELETE FROM alarm_mute WHERE until < $1", db.Nanos(now.Add(-muteRetention))))
}
