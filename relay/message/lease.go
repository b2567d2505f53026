package message

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// waiting is how many messages of an account are due; atLeast if they were not all
// counted.
type waiting struct {
	account relay.AccountID
	n       int
	atLeast bool
}

const (
	leaseNoun = "messages: lease"
	// mostSharing is how many accounts share a lease if they have enough due for it.
	mostSharing = 50
	// countedShares is how many equal shares are counted of an account at most.
	countedShares = 2
)

// LeaseDue leases messages that are due, each account's oldest first; the accounts
// share what is asked for. It reads as many messages as are asked for and some of each
// account, however many are due. Messages that do not open are not returned: their parts
// that are due become Unknown, so that an operator can have them sent when they open again,
// and the error tells.
func (s *Store) LeaseDue(ctx context.Context, now, until time.Time, limit int) ([]Message, error) {
	all, err := s.waiting(ctx, now, limit)
	if err != nil {
		return nil, err
	}
	whole, shares := share(all, limit)
	if len(whole)+len(shares) == 0 {
		return nil, nil
	}
	leased, err := db.Transact(ctx, s.db, leaseNoun, func(ctx context.Context, tx *db.Tx) ([]state, error) {
		leased, err := due(ctx, tx, now, whole, shares)
		if err != nil {
			return nil, err
		}
		return leased, tx.Run(ctx, leaseNoun, `
UPDATE message_state SET due = $1 FROM batch
WHERE message_state.account = batch.account AND message_state.id = batch.id`, until, stateBatch(leased))
	})
	if err != nil {
		return nil, err
	}
	return s.openedOf(ctx, leaseNoun, leased, func(unopened []Message) error {
		if err := s.markUnopened(ctx, unopened, now); err != nil {
			return err
		}
		return fmt.Errorf("%s: %d messages have the state unknown, message %s of account %s is the first: %w", leaseNoun, len(unopened), unopened[0].ID, unopened[0].Account, relay.ErrUnopened)
	})
}

// unopenedReason is the reason of Unknown parts of a message that does not open.
const unopenedReason = relay.UnopenedReason + ", then resend the message"

// markUnopened gives the parts that are due of messages that do not open the state Unknown.
func (s *Store) markUnopened(ctx context.Context, unopened []Message, now time.Time) error {
	refs := make([]Ref, len(unopened))
	for i := range unopened {
		refs[i] = unopened[i].Ref()
	}
	return s.db.Write(ctx, leaseNoun, func(ctx context.Context, tx *db.Tx) error {
		states, err := lock(ctx, tx, leaseNoun, refs)
		if err != nil {
			return err
		}
		for _, st := range states {
			st.markUnknown(now, now, unopenedReason)
			for n := range st.parts {
				if st.parts[n].State == Sending && st.transition(n, Unknown, now) {
					st.parts[n].Reason = unopenedReason
				}
			}
			st.schedule(now, s.db.Retention())
		}
		return store(ctx, tx, leaseNoun, states)
	})
}

// waiting returns the accounts of which messages wait, one step in the index each, and
// how many are due.
func (s *Store) waiting(ctx context.Context, now time.Time, limit int) ([]waiting, error) {
	accounts, err := db.Values[relay.AccountID](ctx, s.db, leaseNoun, `
WITH RECURSIVE waiting(account) AS (
  SELECT CAST(-1 AS BIGINT)
  UNION ALL
  SELECT (SELECT s.account FROM message_state s WHERE s.due > 0 AND s.account > waiting.account ORDER BY s.account LIMIT 1)
  FROM waiting WHERE waiting.account IS NOT NULL)
SELECT account FROM waiting WHERE account >= 0`)
	if err != nil || len(accounts) == 0 {
		return nil, err
	}
	most := min(limit, countedShares*equalShare(limit, min(len(accounts), mostSharing)))
	all, err := db.List(ctx, s.db, leaseNoun, `
SELECT account, (SELECT COUNT(*) FROM (
  SELECT 1 FROM message_state s WHERE s.account = batch.account AND s.due > 0 AND s.due <= $1 LIMIT $2) AS due)
FROM batch`, func(w *waiting) []any {
		return []any{&w.account, &w.n, func() {
			if w.atLeast = w.n == most; w.atLeast {
				w.n = limit
			}
		}}
	}, now, most, db.Column("account", accounts))
	return slices.DeleteFunc(all, func(w waiting) bool { return w.n == 0 }), err
}

// equalShare is what each of n accounts gets of a limit, the last one maybe less.
func equalShare(limit, n int) int { return (limit + n - 1) / n }

// share shares a limit among the accounts: those that get all that they have due,
// and those that get less. If there are many accounts with enough due, it leaves most of
// them, at random, to the next leases.
func share(all []waiting, limit int) (whole, less []waiting) {
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	sharing, sum := 0, 0
	for sharing < len(all) && (sharing < mostSharing || sum < limit) {
		sum += all[sharing].n
		sharing++
	}
	all = all[:sharing]
	// What those with the fewest leave is for the others.
	slices.SortFunc(all, func(a, b waiting) int { return a.n - b.n })
	for i, w := range all {
		n := equalShare(limit, len(all)-i)
		if w.atLeast || w.n > n {
			less = append(less, waiting{account: w.account, n: n})
		} else {
			n = w.n
			whole = append(whole, w)
		}
		if limit -= n; limit == 0 {
			break
		}
	}
	return whole, less
}

// due locks messages that are due: one statement for all accounts that get
// everything, and one for each that has more than its share, which reads no more than
// that from the index.
func due(ctx context.Context, tx *db.Tx, now time.Time, whole, less []waiting) (leased []state, err error) {
	n := 0
	for _, w := range whole {
		n += w.n
	}
	accounts := db.BatchOf("account", whole, func(w *waiting) []any { return []any{w.account} })
	leased, err = db.List(ctx, tx, leaseNoun, `
SELECT `+stateColumns+` FROM batch CROSS JOIN message_state s
WHERE s.account = batch.account AND s.due > 0 AND s.due <= $1
ORDER BY s.due, s.id LIMIT $2 {skip locked}`, stateFields, now, n, accounts)
	for i := 0; i < len(less) && err == nil; i++ {
		var more []state
		more, err = db.List(ctx, tx, leaseNoun, leaseShare, stateFields, less[i].account, now, less[i].n)
		leased = append(leased, more...)
	}
	return leased, err
}

const leaseShare = `
SELECT ` + stateColumns + ` FROM message_state s
WHERE s.account = $1 AND s.due > 0 AND s.due <= $2
ORDER BY s.due, s.id LIMIT $3 {skip locked}`
