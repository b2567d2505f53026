package message

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// Lease is the right to submit a message's pending parts.
type Lease = relay.Lease[Ref]

const (
	leaseLabel = "messages: lease"
	// maxSharing is the largest number of accounts that share a call of LeaseDue if they have
	// enough messages due.
	maxSharing = 50
	// countedShares bounds the count of an account's due messages, as a multiple of an equal
	// share of the limit.
	countedShares = 2
)

// dueCount is the number of messages of an account that are due.
type dueCount struct {
	account relay.AccountID
	n       int
	stopped bool // the count stopped early; n is the limit of LeaseDue
}

// LeaseDue leases due messages of all accounts, the oldest of each account first. The
// accounts share the limit. The number of messages that LeaseDue reads depends on the limit,
// not on the number that is due. A part that is Sending may have been submitted to its Carrier: the
// process that leased the message stopped or lost the lease before it saved the outcome.
//
// Messages that cannot be decrypted are not returned. Their due parts become Unknown, so that an
// operator can resend them once they can be decrypted, and LeaseDue returns an error together with
// the other messages.
func (s *Store) LeaseDue(ctx context.Context, now, leaseUntil time.Time, limit int) ([]Message, error) {
	// lockAll reads all due messages of the accounts whose messages fit into the limit,
	// lockShare those of one account with more, in the order of the index.
	const lockAll = `
		SELECT ` + rowColumns + `
		FROM batch
		CROSS JOIN message_state s
		WHERE s.account = batch.account
		  AND s.due > 0
		  AND s.due <= $1
		ORDER BY s.due, s.id
		LIMIT $2 {skip locked}`
	const updateDue = `
		UPDATE message_state
		SET due = $1
		FROM batch
		WHERE message_state.account = batch.account
		  AND message_state.id = batch.id`
	counts, err := s.countDue(ctx, now, limit)
	if err != nil || len(counts) == 0 {
		return nil, err
	}
	complete, partial := share(counts, limit)
	leased, err := db.Transact(ctx, s.db, leaseLabel, func(ctx context.Context, tx *db.Tx) ([]row, error) {
		n := 0
		for _, c := range complete {
			n += c.n
		}
		accounts := db.BatchOf("account", complete, func(c *dueCount) []any { return []any{c.account} })
		leased, err := db.List(ctx, tx, leaseLabel, lockAll, rowFields, now, n, accounts)
		for i := 0; i < len(partial) && err == nil; i++ {
			var rows []row
			rows, err = db.List(ctx, tx, leaseLabel, lockShare, rowFields, partial[i].account, now, partial[i].n)
			leased = append(leased, rows...)
		}
		if err != nil {
			return nil, err
		}
		return leased, tx.Run(ctx, leaseLabel, updateDue, leaseUntil, rowKeys(leased))
	})
	if err != nil {
		return nil, err
	}
	messages, undecryptable, err := s.messagesOf(ctx, leaseLabel, leased)
	if err != nil || len(undecryptable) == 0 {
		return messages, err
	}
	if err := s.markUndecryptable(ctx, undecryptable, now); err != nil {
		return messages, err
	}
	return messages, fmt.Errorf("%s: %d messages have the state unknown, message %s of account %s is the first: %w",
		leaseLabel, len(undecryptable), undecryptable[0].ID, undecryptable[0].Account, relay.ErrUndecryptable)
}

const lockShare = `
	SELECT ` + rowColumns + `
	FROM message_state s
	WHERE s.account = $1
	  AND s.due > 0
	  AND s.due <= $2
	ORDER BY s.due, s.id
	LIMIT $3 {skip locked}`

// countDue counts the due messages of each account that has due messages. It finds each account
// by one step in the index.
func (s *Store) countDue(ctx context.Context, now time.Time, limit int) ([]dueCount, error) {
	const selectAccounts = `
		WITH RECURSIVE waiting(account) AS (
		  SELECT CAST(-1 AS BIGINT)
		  UNION ALL
		  SELECT (
		    SELECT s.account
		    FROM message_state s
		    WHERE s.due > 0
		      AND s.account > waiting.account
		    ORDER BY s.account
		    LIMIT 1
		  )
		  FROM waiting
		  WHERE waiting.account IS NOT NULL
		)
		SELECT account
		FROM waiting
		WHERE account >= 0`
	const countMessages = `
		SELECT account, (
		  SELECT COUNT(*)
		  FROM (
		    SELECT 1
		    FROM message_state s
		    WHERE s.account = batch.account
		      AND s.due > 0
		      AND s.due <= $1
		    LIMIT $2
		  ) AS due
		)
		FROM batch`
	accounts, err := db.Values[relay.AccountID](ctx, s.db, leaseLabel, selectAccounts)
	if err != nil || len(accounts) == 0 {
		return nil, err
	}
	maxCount := min(limit, countedShares*equalShare(limit, min(len(accounts), maxSharing)))
	fields := func(c *dueCount) []any {
		return []any{&c.account, &c.n, func() {
			if c.stopped = c.n == maxCount; c.stopped {
				c.n = limit
			}
		}}
	}
	counts, err := db.List(ctx, s.db, leaseLabel, countMessages, fields, now, maxCount, db.Column("account", accounts))
	return slices.DeleteFunc(counts, func(c dueCount) bool { return c.n == 0 }), err
}

func equalShare(limit, n int) int { return (limit + n - 1) / n }

// share divides a limit among the accounts. All due messages of the accounts in complete are
// leased, but only n messages of each account in partial. If more than maxSharing accounts
// have enough due messages, share chooses accounts at random.
func share(counts []dueCount, limit int) (complete, partial []dueCount) {
	rand.Shuffle(len(counts), func(i, j int) { counts[i], counts[j] = counts[j], counts[i] })
	accounts, sum := 0, 0
	for accounts < len(counts) && (accounts < maxSharing || sum < limit) {
		sum += counts[accounts].n
		accounts++
	}
	counts = counts[:accounts]
	// Accounts with few due messages come first, because the others share the remaining limit.
	slices.SortFunc(counts, func(a, b dueCount) int { return a.n - b.n })
	for i, c := range counts {
		n := equalShare(limit, len(counts)-i)
		if c.stopped || c.n > n {
			partial = append(partial, dueCount{account: c.account, n: n})
		} else {
			n = c.n
			complete = append(complete, c)
		}
		if limit -= n; limit == 0 {
			break
		}
	}
	return complete, partial
}

// Renew extends leases and returns the messages whose lease the caller still has. Neither
// Renew nor Release changes a message without waiting parts, or one that another process has
// leased since.
func (s *Store) Renew(ctx context.Context, leases []Lease, leaseUntil time.Time) ([]Ref, error) {
	return s.moveDue(ctx, "messages: renew", leases, leaseUntil)
}

// Release ends leases and makes the messages due at the given time.
func (s *Store) Release(ctx context.Context, leases []Lease, due time.Time) error {
	_, err := s.moveDue(ctx, "messages: release", leases, due)
	return err
}

// moveLeases sets the due time of messages whose lease the caller still has: a lease that another
// process has taken since ends later. Because of due + 0, SQLite finds the messages by their keys;
// otherwise it would read all queued messages of the account in the index of due for each of them.
const moveLeases = `
	WITH leased AS MATERIALIZED (
	  SELECT s.account, s.id
	  FROM batch
	  CROSS JOIN message_state s
	  WHERE s.account = batch.account
	    AND s.id = batch.id
	    AND s.due + 0 BETWEEN 1 AND batch.ends
	  ORDER BY s.account, s.id {for update}
	)
	UPDATE message_state
	SET due = $1
	FROM leased
	WHERE message_state.account = leased.account
	  AND message_state.id = leased.id
	RETURNING message_state.account, message_state.id`

func (s *Store) moveDue(ctx context.Context, label string, leases []Lease, due time.Time) ([]Ref, error) {
	leases = db.LastOfEach(leases, func(a, b Lease) int {
		return cmp.Or(cmp.Compare(a.Ref.Account, b.Ref.Account), cmp.Compare(a.Ref.ID, b.Ref.ID))
	})
	b := db.BatchOf("account, id, ends", leases, func(l *Lease) []any { return []any{l.Ref.Account, l.Ref.ID, l.End} })
	return db.Returning(ctx, s.db, label, moveLeases, refFields, due, b)
}
