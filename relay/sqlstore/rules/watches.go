package rules

import (
	"context"
	"slices"
	"time"

	"github.com/penstock/penstock/relay/rule"
	"github.com/penstock/penstock/relay/sqlstore"
)

// LeaseWatches takes devices that may be silent.
func (s *Store) LeaseWatches(ctx context.Context, now, until time.Time, most int) ([]rule.Watch, error) {
	return lease(ctx, s, "silence: due", "rule_watch", `
UPDATE rule_watch SET due = $1 WHERE (account, device) IN (
  SELECT account, device FROM rule_watch WHERE due > 0 AND due <= $2 ORDER BY due LIMIT $3 {skip locked}
) RETURNING account, device`, func(w *rule.Watch) []any { return []any{&w.Account, &w.DeviceID} }, until, now, most)
}

// MoveWatches sets when devices may be silent next.
func (s *Store) MoveWatches(ctx context.Context, leased time.Time, to []rule.Watch) error {
	return s.db.Run(ctx, "silence: next", `
UPDATE rule_watch SET due = b.due
FROM batch AS b WHERE rule_watch.account = b.account AND rule_watch.device = b.device AND rule_watch.due = $1`, leased,
		sqlstore.BatchOf("account bigint, device text, due bigint", to, func(w *rule.Watch) []any { return []any{w.Account, w.DeviceID, w.Due} }))
}

// enrolledAtOnce is how many accounts one call of LeaseEnrolments takes at most.
const enrolledAtOnce = 100

// LeaseEnrolments takes accounts whose devices have to be watched.
func (s *Store) LeaseEnrolments(ctx context.Context, now, until time.Time) ([]rule.Enrolment, error) {
	return lease(ctx, s, "silence: accounts", "rule_enrolment", `
UPDATE rule_enrolment SET due = $1 WHERE account IN (
  SELECT account FROM rule_enrolment WHERE due <= $2 ORDER BY account LIMIT $3 {skip locked}
) RETURNING account, after`, func(e *rule.Enrolment) []any { return []any{&e.Account, &e.After} },
		until, now, enrolledAtOnce)
}

// Enrol watches the next devices of an account. When there are no more, the enrolment
// ends, unless another rule has begun one meanwhile.
func (s *Store) Enrol(ctx context.Context, e *rule.Enrolment, now, leased time.Time, most int) (more bool, err error) {
	after, err := sqlstore.Transact(ctx, s.db, "silence: enrol", func(ctx context.Context, tx *sqlstore.Tx) (string, error) {
		added, err := sqlstore.Values[string](ctx, tx, "silence: enrol", `
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
