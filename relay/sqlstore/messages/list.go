package messages

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/credit"
	"github.com/penstock/penstock/relay/message"
	"github.com/penstock/penstock/relay/sqlstore"
)

// The messages with ids of a page, which the statement has in front.
const selectPage = `
SELECT ` + messageColumns + ` FROM page CROSS JOIN message m CROSS JOIN message_state s
WHERE m.account = $1 AND m.id = page.id AND s.account = $1 AND s.id = page.id
ORDER BY page.id DESC`

const pageOfAll = `
WITH page AS MATERIALIZED (
  SELECT id FROM message m WHERE account = $1 AND id < $2 ORDER BY id DESC LIMIT $3)`

// pageOfState has the condition of a state, see inState.
const pageOfState = `
WITH page AS MATERIALIZED (
  SELECT id FROM message_state s WHERE account = $1 AND id < $2 AND %s ORDER BY id DESC LIMIT $3)`

// pageOfNumber reads no more than a page from the index of each number, and has
// another condition.
const pageOfNumber = `
WITH page AS MATERIALIZED (
  SELECT id FROM (
    SELECT id FROM message m WHERE account = $1 AND destination = $4 AND id < $2 %[1]s ORDER BY id DESC LIMIT $3) AS d
  UNION
  SELECT id FROM (
    SELECT id FROM message m WHERE account = $1 AND originator = $4 AND id < $2 %[1]s ORDER BY id DESC LIMIT $3) AS o
  ORDER BY id DESC LIMIT $3)`

// As subqueries that answer one value, the conditions below are looked up row by
// row: PostgreSQL joins no whole tables for them.
const andInState = `AND (SELECT %s FROM message_state s WHERE s.account = m.account AND s.id = m.id)`

const andOfNumber = ` AND (
    SELECT m.destination = $4 OR m.originator = $4 FROM message m WHERE m.account = s.account AND m.id = s.id)`

// inState is the condition of a state as its index has it. It is an equation, for
// PostgreSQL takes those to hold of few rows.
func inState(s message.State) string {
	if s == message.Pending || s == message.Sending {
		return fmt.Sprintf("s.due > 0 AND (s.states & %[1]d) = %[1]d", stateBit(s))
	}
	return fmt.Sprintf("(s.settled & %[1]d) = %[1]d", stateBit(s))
}

// newest is above all ids.
const newest = math.MaxInt64

// List returns messages of an account, newest first.
func (s *Store) List(ctx context.Context, f message.Filter) ([]message.Message, message.ID, error) {
	const noun = "messages: list"
	if len(f.IDs) > 0 {
		list, err := s.named(ctx, noun, &f)
		return list, 0, err
	}
	before := cmp.Or(int64(f.Before), newest)
	page, err := s.page(ctx, noun, &f, before)
	if err != nil {
		return nil, 0, err
	}
	args := []any{f.Account, before, f.Limit}
	if f.Number != "" {
		args = append(args, f.Number)
	}
	list, err := sqlstore.List(ctx, s.db, noun, page+selectPage, messageFields, args...)
	if err != nil || len(list) < f.Limit || len(list) == 0 {
		return list, 0, err
	}
	return list, list[len(list)-1].ID, nil
}

// rareState is how many messages are looked through for a number if no more are in
// a state; more are looked through for the state if they have the number.
const rareState = 2000

// page is the part of the statement that finds the page.
func (s *Store) page(ctx context.Context, noun string, f *message.Filter, before int64) (string, error) {
	switch {
	case f.State == "" && f.Number == "":
		return pageOfAll, nil
	case f.Number == "":
		return fmt.Sprintf(pageOfState, inState(f.State)), nil
	case f.State == "":
		return fmt.Sprintf(pageOfNumber, ""), nil
	}
	n, err := sqlstore.Value[int](ctx, s.db, noun, fmt.Sprintf(`
SELECT COUNT(*) FROM (SELECT 1 FROM message_state s WHERE account = $1 AND id < $2 AND %s LIMIT $3) AS found`, inState(f.State)), f.Account, before, rareState)
	if n < rareState {
		return fmt.Sprintf(pageOfState, inState(f.State)+andOfNumber), err
	}
	return fmt.Sprintf(pageOfNumber, fmt.Sprintf(andInState, inState(f.State))), err
}

// named returns the messages that a filter names.
func (s *Store) named(ctx context.Context, noun string, f *message.Filter) ([]message.Message, error) {
	b := sqlstore.BatchOf("account, id", f.IDs, func(id *message.ID) []any { return []any{f.Account, id} })
	list, err := sqlstore.List(ctx, s.db, noun, `
SELECT `+messageColumns+` FROM batch CROSS JOIN message m CROSS JOIN message_state s
WHERE m.account = batch.account AND m.id = batch.id AND s.account = batch.account AND s.id = batch.id
ORDER BY batch.n`, messageFields, b)
	return slices.DeleteFunc(list, func(m message.Message) bool { return !f.Selects(&m) }), err
}

// Unreported returns messages with unreported changes.
func (s *Store) Unreported(ctx context.Context, before time.Time, limit int) ([]message.Message, error) {
	return sqlstore.List(ctx, s.db, "messages: list unreported", `
SELECT `+messageColumns+` FROM message_state s JOIN message m ON m.account = s.account AND m.id = s.id
WHERE s.untold > 0 AND s.untold <= $1
ORDER BY s.untold, s.account, s.id LIMIT $2`, messageFields, before, limit)
}

// MarkReported marks messages as reported unless their version has changed.
func (s *Store) MarkReported(ctx context.Context, ms []message.Message) error {
	b := sqlstore.BatchOf("account, id, version", ms, func(m *message.Message) []any {
		return []any{m.Account, m.ID, m.Version}
	})
	return s.db.Run(ctx, "messages: mark reported", `
WITH reported AS MATERIALIZED (
  SELECT s.account, s.id FROM batch CROSS JOIN message_state s
  WHERE s.account = batch.account AND s.id = batch.id AND s.version = batch.version
  ORDER BY s.account, s.id {for update})
UPDATE message_state SET untold = 0 FROM reported
WHERE message_state.account = reported.account AND message_state.id = reported.id`, b)
}

// Forget removes messages whose time is over.
func (s *Store) Forget(ctx context.Context, now time.Time) error {
	const noun = "messages: forget"
	return s.db.Repeat(ctx, noun, sqlstore.SweepMost, func(ctx context.Context, tx *sqlstore.Tx) (int, error) {
		gone, err := sqlstore.List(ctx, tx, noun, `
WITH gone AS MATERIALIZED (
  SELECT account, id FROM message_state WHERE expires > 0 AND expires <= $1 ORDER BY expires LIMIT $2 {skip locked})
DELETE FROM message_state WHERE (account, id) IN (SELECT account, id FROM gone)
RETURNING account, id`, refFields, now, sqlstore.SweepMost)
		if err != nil {
			return 0, err
		}
		return len(gone), tx.Run(ctx, noun, `
DELETE FROM message WHERE (account, id) IN (SELECT account, id FROM batch)`, refBatch(gone))
	})
}

const messageColumns = `m.doc, s.parts, s.version`

// messageFields are messageColumns.
func messageFields(m *message.Message) []any {
	var parts []part
	return []any{sqlstore.JSON(m), sqlstore.JSON(&parts), &m.Version, func() {
		fill(m, parts)
		parts = nil
	}}
}

// Get loads a message.
func (s *Store) Get(ctx context.Context, acct account.ID, id message.ID) (message.Message, error) {
	return sqlstore.One(ctx, s.db, "message "+id.String(), `
SELECT `+messageColumns+` FROM message m JOIN message_state s ON s.account = m.account AND s.id = m.id
WHERE m.account = $1 AND m.id = $2`, messageFields, acct, id)
}

// filled are messages in the states that are given.
func (s *Store) filled(ctx context.Context, noun string, states []state) ([]message.Message, error) {
	return sqlstore.List(ctx, s.db, noun, `
SELECT batch.n, m.doc FROM batch CROSS JOIN message m
WHERE m.account = batch.account AND m.id = batch.id ORDER BY batch.n`, func(m *message.Message) []any {
		var n int
		return []any{&n, sqlstore.JSON(m), func() {
			m.Version = states[n-1].version
			fill(m, states[n-1].parts)
		}}
	}, stateBatch(states))
}

// Pending lists the pending parts of an account.
func (s *Store) Pending(ctx context.Context, acct account.ID, offset, limit int) ([]message.Entry, int, error) {
	const noun = "messages: pending"
	total, err := sqlstore.Value[int](ctx, s.db, noun, `
SELECT CAST(COALESCE(SUM(pending), 0) AS BIGINT) FROM message_state WHERE account = $1 AND due > 0 AND pending > 0`, acct)
	if err != nil || offset >= total || limit <= 0 {
		return nil, total, err
	}
	type row struct {
		m      message.Message
		before int
	}
	// before is how many pending parts there are in messages with lower ids.
	list, err := sqlstore.List(ctx, s.db, noun, `
WITH page AS MATERIALIZED (
  SELECT id, upto - pending AS before FROM (
    SELECT id, pending, SUM(pending) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) AS upto FROM (
      SELECT id, pending FROM message_state WHERE account = $1 AND due > 0 AND pending > 0 ORDER BY id LIMIT $4) AS first) AS counted
  WHERE upto > $2 ORDER BY id LIMIT $3)
SELECT CAST(page.before AS BIGINT), `+messageColumns+` FROM page
CROSS JOIN message m CROSS JOIN message_state s
WHERE m.account = $1 AND m.id = page.id AND s.account = $1 AND s.id = page.id
ORDER BY page.id`, func(r *row) []any {
		return append([]any{&r.before}, messageFields(&r.m)...)
	}, acct, offset, limit, offset+limit)
	var entries []message.Entry
	for i := range list {
		at := list[i].before
		for n := range list[i].m.Parts {
			if list[i].m.Parts[n].State != message.Pending {
				continue
			}
			if at >= offset && len(entries) < limit {
				entries = append(entries, list[i].m.EntryOf(n))
			}
			at++
		}
	}
	return entries, total, err
}

// Delete removes a pending part and refunds it.
func (s *Store) Delete(ctx context.Context, acct account.ID, entry message.ID, now time.Time) error {
	noun := "message " + entry.String()
	return s.db.Write(ctx, noun, func(ctx context.Context, tx *sqlstore.Tx) error {
		st, err := sqlstore.One(ctx, tx, noun, `
SELECT `+stateColumns+` FROM message_state s WHERE s.account = $1 AND s.id <= $2 ORDER BY s.id DESC LIMIT 1 {for update}`, stateFields, acct, entry)
		if err != nil {
			return err
		}
		part := entry - st.ID
		if part >= message.ID(len(st.parts)) || !st.transition(int(part), message.Removed, now) {
			return relay.Errorf(relay.KindNotFound, "%s: not pending", noun)
		}
		st.schedule(now, s.db.Retention())
		if err := store(ctx, tx, noun, map[message.Ref]*state{st.Ref: &st}); err != nil {
			return err
		}
		return refund(ctx, tx, []credit.Change{refundOf(acct, entry, now)})
	})
}
