package message

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/credit"
	"github.com/penstock/penstock/relay/db"
)

// List returns messages of an account, newest first.
func (s *Store) List(ctx context.Context, f Filter) ([]Message, ID, error) {
	const label = "messages: list"
	if len(f.IDs) > 0 {
		list, err := s.named(ctx, label, &f)
		return list, 0, err
	}
	args := []any{f.Account, cmp.Or(int64(f.Before), newest), f.Limit}
	if f.Number != "" {
		args = append(args, f.Number)
	}
	list, err := db.List(ctx, s.db, label, pageOf(&f), messageFields, args...)
	if err != nil || len(list) < f.Limit || len(list) == 0 {
		return list, 0, err
	}
	return list, list[len(list)-1].ID, nil
}

// newest is above all ids.
const newest = math.MaxInt64

// pageOf returns the statement that reads a page. It finds the ids first: in the index of
// a number and of a state if the filter has one, else by the key.
func pageOf(f *Filter) string {
	const selectPage = `
		WITH page AS MATERIALIZED (%s
		  ORDER BY id DESC
		  LIMIT $3
		)
		SELECT ` + messageColumns + `
		FROM page
		CROSS JOIN message m
		CROSS JOIN message_state s
		WHERE m.account = $1
		  AND m.id = page.id
		  AND s.account = $1
		  AND s.id = page.id
		ORDER BY page.id DESC`
	const all = `
		  SELECT id
		  FROM message
		  WHERE account = $1
		    AND id < $2`
	const inState = `
		  SELECT id
		  FROM message_state s
		  WHERE account = $1
		    AND id < $2
		    AND `
	// Each part reads no more than a page from the index of its column. CROSS JOIN has
	// SQLite look up the states of the number's messages; PostgreSQL may begin with the
	// index of the state, whose size it knows.
	const ofNumber = `
		  SELECT id
		  FROM (
		    SELECT m.id
		    FROM message m%[1]s
		    WHERE m.account = $1
		      AND m.destination = $4
		      AND m.id < $2%[2]s
		    ORDER BY m.id DESC
		    LIMIT $3
		  ) AS addressed
		  UNION
		  SELECT id
		  FROM (
		    SELECT m.id
		    FROM message m%[1]s
		    WHERE m.account = $1
		      AND m.originator = $4
		      AND m.id < $2%[2]s
		    ORDER BY m.id DESC
		    LIMIT $3
		  ) AS sent`
	const withState = `
		    CROSS JOIN message_state s`
	const andInState = `
		      AND s.account = m.account
		      AND s.id = m.id
		      AND `
	ids := all
	switch {
	case f.Number != "" && f.State != "":
		ids = fmt.Sprintf(ofNumber, withState, andInState+stateCondition(f.State))
	case f.Number != "":
		ids = fmt.Sprintf(ofNumber, "", "")
	case f.State != "":
		ids = inState + stateCondition(f.State)
	}
	return fmt.Sprintf(selectPage, ids)
}

// stateCondition returns the condition of a state as its index has it.
func stateCondition(s State) string {
	bit := stateBit(s)
	if s == Pending || s == Sending {
		return fmt.Sprintf("s.due > 0 AND (s.states & %[1]d) = %[1]d", bit)
	}
	return fmt.Sprintf("(s.settled & %[1]d) = %[1]d", bit)
}

// named returns the messages that a filter names.
func (s *Store) named(ctx context.Context, label string, f *Filter) ([]Message, error) {
	b := db.BatchOf("account, id", f.IDs, func(id *ID) []any { return []any{f.Account, id} })
	list, err := db.List(ctx, s.db, label, `
SELECT `+messageColumns+` FROM batch CROSS JOIN message m CROSS JOIN message_state s
WHERE m.account = batch.account AND m.id = batch.id AND s.account = batch.account AND s.id = batch.id
ORDER BY batch.n`, messageFields, b)
	return slices.DeleteFunc(list, func(m Message) bool { return !f.Selects(&m) }), err
}

// Unreported returns messages with unreported changes. Those that do not open are listed
// again later, behind the others.
func (s *Store) Unreported(ctx context.Context, before time.Time, limit int) ([]Message, error) {
	const label = "messages: list unreported"
	list, err := db.List(ctx, s.db, label, `
SELECT `+messageColumns+` FROM message_state s JOIN message m ON m.account = s.account AND m.id = s.id
WHERE s.untold > 0 AND s.untold <= $1
ORDER BY s.untold, s.account, s.id LIMIT $2`, messageFields, before, limit)
	if err != nil {
		return nil, err
	}
	opened, unopened := separate(list)
	return opened, s.db.Run(ctx, label, `
UPDATE message_state SET untold = $1
FROM batch WHERE message_state.account = batch.account AND message_state.id = batch.id AND message_state.untold > 0`,
		s.db.Now(), db.BatchOf("account, id", unopened, func(m *Message) []any { return []any{m.Account, m.ID} }))
}

// separate separates the messages that open from those that do not.
func separate(list []Message) (opened, unopened []Message) {
	for i := range list {
		if list[i].Unopened {
			unopened = append(unopened, list[i])
		} else {
			opened = append(opened, list[i])
		}
	}
	return opened, unopened
}

// MarkReported marks messages as reported unless their version has changed.
func (s *Store) MarkReported(ctx context.Context, ms []Message) error {
	b := db.BatchOf("account, id, version", ms, func(m *Message) []any {
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
	return s.db.Repeat(ctx, noun, db.SweepMost, func(ctx context.Context, tx *db.Tx) (int, error) {
		gone, err := db.List(ctx, tx, noun, `
WITH gone AS MATERIALIZED (
  SELECT account, id FROM message_state WHERE expires > 0 AND expires <= $1 ORDER BY expires LIMIT $2 {skip locked})
DELETE FROM message_state WHERE (account, id) IN (SELECT account, id FROM gone)
RETURNING account, id`, refFields, now, db.SweepMost)
		if err != nil {
			return 0, err
		}
		return len(gone), tx.Run(ctx, noun, `
DELETE FROM message WHERE (account, id) IN (SELECT account, id FROM batch)`, refBatch(gone))
	})
}

const (
	sealedColumns  = `m.account, m.doc, m.id, m.originator, m.destination`
	messageColumns = sealedColumns + `, s.part_count, s.scheduled, s.parts, s.version`
)

// sealedFields returns pointers to the fields of m in the order of sealedColumns.
func sealedFields(m *Message) []any {
	return []any{&m.Account, db.SealedOr(&m.Unopened, db.JSON(m), "message", &m.Account), &m.ID, &m.Originator, &m.Destination}
}

// messageFields returns where messageColumns are read to.
func messageFields(m *Message) []any {
	var s state
	return append(sealedFields(m), &s.count, &s.scheduled, db.JSON(&s.parts), &m.Version, func() {
		fill(m, &s)
		s = state{}
	})
}

// Get loads a message.
func (s *Store) Get(ctx context.Context, acct relay.AccountID, id ID) (Message, error) {
	return db.One(ctx, s.db, "message "+id.String(), `
SELECT `+messageColumns+` FROM message m JOIN message_state s ON s.account = m.account AND s.id = m.id
WHERE m.account = $1 AND m.id = $2`, messageFields, acct, id)
}

// openedOf returns the messages of states, in those states, but for those that do not open,
// which it passes on.
func (s *Store) openedOf(ctx context.Context, noun string, states []state, refuse func(unopened []Message) error) ([]Message, error) {
	list, err := db.List(ctx, s.db, noun, `
SELECT `+sealedColumns+`, batch.n FROM batch CROSS JOIN message m
WHERE m.account = batch.account AND m.id = batch.id ORDER BY batch.n`, func(m *Message) []any {
		var n int
		return append(sealedFields(m), &n, func() {
			m.Version = states[n-1].version
			fill(m, &states[n-1])
		})
	}, stateBatch(states))
	opened, unopened := separate(list)
	if err == nil && len(unopened) > 0 {
		err = refuse(unopened)
	}
	return opened, err
}

// Pending lists the pending parts of an account.
func (s *Store) Pending(ctx context.Context, acct relay.AccountID, offset, limit int) ([]Entry, int, error) {
	const noun = "messages: pending"
	total, err := db.Value[int](ctx, s.db, noun, `
SELECT CAST(COALESCE(SUM(pending), 0) AS BIGINT) FROM message_state WHERE account = $1 AND due > 0 AND pending > 0`, acct)
	if err != nil || offset >= total || limit <= 0 {
		return nil, total, err
	}
	type row struct {
		m      Message
		before int
	}
	// before is how many pending parts there are in messages with lower ids.
	list, err := db.List(ctx, s.db, noun, `
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
	var entries []Entry
	for i := range list {
		at := list[i].before
		for n := range list[i].m.Parts {
			if list[i].m.Parts[n].State != Pending {
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
func (s *Store) Delete(ctx context.Context, acct relay.AccountID, entry ID, now time.Time) error {
	noun := "message " + entry.String()
	return s.db.Write(ctx, noun, func(ctx context.Context, tx *db.Tx) error {
		st, err := db.One(ctx, tx, noun, `
SELECT `+stateColumns+` FROM message_state s WHERE s.account = $1 AND s.id <= $2 ORDER BY s.id DESC LIMIT 1 {for update}`, stateFields, acct, entry)
		if err != nil {
			return err
		}
		part := entry - st.ID
		if part >= ID(len(st.parts)) || !st.transition(int(part), Removed, now) {
			return relay.Errorf(relay.KindNotFound, "%s: not pending", noun)
		}
		st.schedule(now, s.db.Retention())
		if err := store(ctx, tx, noun, map[Ref]*state{st.Ref: &st}); err != nil {
			return err
		}
		return refund(ctx, tx, []credit.Change{refundOf(acct, entry, now)})
	})
}
