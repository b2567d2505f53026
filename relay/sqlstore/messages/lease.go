package messages

import (
	"context"
	"slices"
	"time"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/message"
	"github.com/penstock/penstock/relay/sqlstore"
)

// waiting is how many messages of an account are due.
type waiting struct {
	account account.ID
	n       int
}

// LeaseDue leases messages that are due, each account's oldest first; the accounts
// share what is asked for.
func (s *Store) LeaseDue(ctx context.Context, now, until time.Time, limit int) ([]message.Message, error) {
	const noun = "messages: lease"
	// The accounts of which messages wait, one step in the index each, and how many are due,
	// up to what is asked for.
	all, err := sqlstore.List(ctx, s.db, noun, `
WITH RECURSIVE waiting(account) AS (
  SELECT MIN(account) FROM message_state WHERE due > 0
  UNION ALL
  SELECT (SELECT MIN(s.account) FROM message_state s WHERE s.due > 0 AND s.account > waiting.account)
  FROM waiting WHERE waiting.account IS NOT NULL)
SELECT account, (SELECT COUNT(*) FROM (
  SELECT 1 FROM message_state s WHERE s.account = waiting.account AND s.due > 0 AND s.due <= $1 LIMIT $2) AS due)
FROM waiting WHERE account IS NOT NULL`, func(w *waiting) []any {
		return []any{&w.account, &w.n}
	}, now, limit)
	if err != nil {
		return nil, err
	}
	whole, shares := share(all, limit)
	if len(whole)+len(shares) == 0 {
		return nil, nil
	}
	leased, err := sqlstore.Transact(ctx, s.db, noun, func(ctx context.Context, tx *sqlstore.Tx) ([]state, error) {
		leased, err := due(ctx, tx, now, whole, shares)
		if err != nil {
			return nil, err
		}
		return leased, tx.Run(ctx, noun, `
UPDATE message_state SET due = $1 FROM batch
WHERE message_state.account = batch.account AND message_state.id = batch.id`, until, stateBatch(leased))
	})
	if err != nil {
		return nil, err
	}
	return s.filled(ctx, noun, leased)
}

// share shares a limit among the accounts: those that get all that they have due,
// and those that get less.
func share(all []waiting, limit int) (whole, less []waiting) {
	all = slices.DeleteFunc(all, func(w waiting) bool { return w.n == 0 })
	// What those with the fewest leave is for the others.
	slices.SortFunc(all, func(a, b waiting) int { return a.n - b.n })
	for i, w := range all {
		left := len(all) - i
		n := min((limit+left-1)/left, w.n)
		switch {
		case n == 0:
			return whole, less
		case n == w.n:
			whole = append(whole, w)
		default:
			less = append(less, waiting{w.account, n})
		}
		limit -= n
	}
	return whole, less
}

// due locks messages that are due: one statement for all accounts that get
// everything, and one for each that has more than its share.
func due(ctx context.Context, tx *sqlstore.Tx, now time.Time, whole, less []waiting) (leased []state, err error) {
	const noun = "messages: lease"
	n := 0
	for _, w := range whole {
		n += w.n
	}
	accounts := sqlstore.BatchOf("account", whole, func(w *waiting) []any { return []any{w.account} })
	leased, err = sqlstore.List(ctx, tx, noun, `
SELECT `+stateColumns+` FROM batch CROSS JOIN message_state s
WHERE s.account = batch.account AND s.due > 0 AND s.due <= $1
ORDER BY s.due, s.id LIMIT $2 {skip locked}`, stateFields, now, n, accounts)
	for i := 0; i < len(less) && err == nil; i++ {
		var more []state
		more, err = sqlstore.List(ctx, tx, noun, `
SELECT `+stateColumns+` FROM message_state s
WHERE s.account = $1 AND s.due > 0 AND s.due <= $2
ORDER BY s.due, s.id LIMIT $3 {skip locked}`, stateFields, less[i].account, now, less[i].n)
		leased = append(leased, more...)
	}
	return leased, err
}
