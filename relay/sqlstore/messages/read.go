package messages

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/credit"
	"github.com/penstock/penstock/relay/message"
	"github.com/penstock/penstock/relay/sqlstore"
)

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
func (s *Store) filled(ctx context.Context, noun string, states []*state) ([]message.Message, error) {
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
