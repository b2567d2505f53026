package rule

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/iot"
)

// Store keeps rules and alarms. It is safe for concurrent use.
type Store struct{ db *db.DB }

// NewStore returns the store in a database.
func NewStore(database *db.DB) *Store { return &Store{db: database} }

const ruleColumns = `account, doc, id, created, failures, failed_at, failure`

// enrolAfter is how long after a rule for silent devices was saved its devices are
// watched.
const enrolAfter = 3 * time.Second

func ruleFields(r *Rule) []any { return ownedRule(new(relay.AccountID), r) }

// ownedRule returns where ruleColumns are read to, with the account of the rule.
func ownedRule(acct *relay.AccountID, r *Rule) []any {
	return []any{acct, db.SealedOr(&r.Unopened, db.JSON(r), "rule", acct), &r.ID, db.NanoTime(&r.CreatedAt), &r.Failures.Count, db.Time(&r.Failures.LastAt), &r.Failures.Last}
}

// Create saves a rule.
func (s *Store) Create(ctx context.Context, acct relay.AccountID, r Rule) error {
	noun := "rule " + r.ID
	return s.db.Write(ctx, noun, func(ctx context.Context, tx *db.Tx) error {
		insert := db.Do(`
INSERT INTO rule (account, id, created, silent, doc) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING`, acct, r.ID, db.Nanos(r.CreatedAt), r.On == OnSilent, db.Sealed(db.JSON(r), "rule", acct))
		exists := relay.Errorf(relay.KindConflict, "rule %s exists", r.ID)
		return tx.RunAll(ctx, noun, append([]db.Statement{insert.Or(exists)}, saved(tx, acct, r)...)...)
	})
}

// saved has devices watched if the rule looks for silent ones, and counts the version
// of the account's rules up, last of all.
func saved(tx *db.Tx, acct relay.AccountID, r Rule) (all []db.Statement) {
	if r.On == OnSilent && r.Enabled {
		// The enrolment comes a little later than the rule, when devices that were created without
		// it have been saved.
		all = append(all, db.Do(`
INSERT INTO rule_enrolment (account, due, after) VALUES ($1, $2, '')
ON CONFLICT (account) DO UPDATE SET due = excluded.due, after = ''`, acct, tx.Now().Add(enrolAfter)))
	}
	return append(all, db.Bump(iot.RulesVersionOf(acct)))
}

// Change saves what change makes of a rule.
func (s *Store) Change(ctx context.Context, acct relay.AccountID, id string, change func(*Rule) error, forget func(was, is Rule) bool, now time.Time) (Rule, error) {
	noun := "rule " + id
	return db.Transact(ctx, s.db, noun, func(ctx context.Context, tx *db.Tx) (r Rule, err error) {
		doc, err := db.One(ctx, tx, noun, "SELECT account, doc FROM rule WHERE account = $1 AND id = $2 {for update}", db.SealedText("rule"), acct, id)
		if err != nil {
			return r, err
		}
		var was Rule
		if err := db.Decode([]byte(doc), &was); err != nil {
			return r, err
		}
		r, _, err = db.Edit(noun, doc, change)
		if err != nil {
			return r, err
		}
		r.Failures = Failures{}
		all := []db.Statement{db.Do(`
UPDATE rule SET silent = $1, doc = $2, failures = 0, failed_at = 0, failure = '' WHERE account = $3 AND id = $4`, r.On == OnSilent, db.Sealed(db.JSON(r), "rule", acct), acct, id)}
		if was.Batch != r.Batch { // what was collected is sent at once
			all = append(all, db.Do("UPDATE rule_batch SET due = $1 WHERE account = $2 AND rule = $3 AND n > 0", now, acct, id))
		}
		if forget(was, r) {
			all = append(all, forgetRule(acct, id, now)...)
		}
		return r, tx.RunAll(ctx, noun, append(all, saved(tx, acct, r)...)...)
	})
}

// Delete deletes a rule with what belongs to it, but for alarms, which are history.
func (s *Store) Delete(ctx context.Context, acct relay.AccountID, id string, now time.Time) error {
	noun := "rule " + id
	return s.db.RunAll(ctx, noun, slices.Concat(
		[]db.Statement{db.Do("DELETE FROM rule WHERE account = $1 AND id = $2", acct, id).Or(db.NotFound(noun))},
		forgetRule(acct, id, now),
		[]db.Statement{
			db.Do("DELETE FROM rule_batch WHERE account = $1 AND rule = $2", acct, id),
			db.Do("DELETE FROM rule_item WHERE account = $1 AND rule = $2", acct, id),
			db.Bump(iot.RulesVersionOf(acct)),
		})...)
}

// forgetRule deletes a rule's states for devices, and clears its alarms.
func forgetRule(acct relay.AccountID, id string, now time.Time) []db.Statement {
	return []db.Statement{
		db.Do("DELETE FROM rule_state WHERE account = $1 AND rule = $2", acct, id),
		db.Do("UPDATE alarm SET state = 'cleared', cleared = {greatest}(raised, $1) WHERE account = $2 AND rule = $3 AND state = 'raised'", now.UnixNano(), acct, id),
	}
}

// Rule loads a rule.
func (s *Store) Rule(ctx context.Context, acct relay.AccountID, id string) (Rule, error) {
	r, err := db.One(ctx, s.db, "rule "+id, `SELECT `+ruleColumns+` FROM rule WHERE account = $1 AND id = $2`, ruleFields, acct, id)
	if err == nil && r.Unopened {
		return Rule{}, fmt.Errorf("rule %s: %w", id, relay.ErrUnopened)
	}
	return r, err
}

// Rules lists an account's rules.
func (s *Store) Rules(ctx context.Context, acct relay.AccountID) ([]Rule, error) {
	return db.List(ctx, s.db, "rules", `SELECT `+ruleColumns+` FROM rule WHERE account = $1 ORDER BY created, id`, ruleFields, acct)
}

// FindRules returns rules of one or all accounts after one, by account and creation.
func (s *Store) FindRules(ctx context.Context, acct relay.AccountID, after Ref, limit int) ([]Owned[Rule], error) {
	var w db.Where
	w.AndSet("account = ?", acct)
	w.And("(account, created, id) > (?, ?, ?)", after.Account, db.Nanos(after.CreatedAt), after.ID)
	return db.Page(ctx, s.db, "rules", "SELECT "+ruleColumns+" FROM rule", &w, "account, created, id", limit, func(r *Owned[Rule]) []any {
		return ownedRule(&r.Account, &r.Of)
	})
}

// CountRules counts an account's rules.
func (s *Store) CountRules(ctx context.Context, acct relay.AccountID) (int, error) {
	return db.Value[int](ctx, s.db, "rules", "SELECT COUNT(*) FROM rule WHERE account = $1", acct)
}

// Fail adds failures to those of rules.
func (s *Store) Fail(ctx context.Context, all []Failed) error {
	return s.db.Run(ctx, "rules: failures", `
UPDATE rule SET failures = rule.failures + b.count, failed_at = b.at, failure = b.reason
FROM batch AS b WHERE rule.account = b.account AND rule.id = b.id`,
		db.BatchOf("account, id, count, at, reason", all, func(f *Failed) []any {
			return []any{f.Account, f.RuleID, f.Count, f.LastAt, f.Last}
		}))
}

// Sweep deletes frames of batches that were sent long ago.
func (s *Store) Sweep(ctx context.Context, now time.Time) error {
	return s.db.SweepExpired(ctx, "rules: sweep", "rule_item", "account, rule, record", "taken", now.Add(-itemsKept))
}
