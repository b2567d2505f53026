package message

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// Filter selects messages of an account; zero fields select all.
type Filter struct {
	Account relay.AccountID // required
	IDs     []ID
	State   State  // of any part
	Number  string // the whole originator or destination
	Before  ID     // messages with a lower id; ignored if IDs is set
	Limit   int    // size of a page, required; ignored if IDs is set
}

// Selects reports whether a message has the State and the Number of the filter.
func (f *Filter) Selects(m *Message) bool {
	if f.Number != "" && m.Originator != f.Number && m.Destination != f.Number {
		return false
	}
	return f.State == "" || slices.ContainsFunc(m.Parts, func(p Part) bool { return p.State == f.State })
}

// List returns messages of an account, newest first, and the cursor of the next page, 0 on
// the last page.
func (s *Store) List(ctx context.Context, f Filter) ([]Message, ID, error) {
	const label = "messages: list"
	const selectByID = `
		SELECT ` + messageColumns + `
		FROM batch
		CROSS JOIN message m
		CROSS JOIN message_state s
		WHERE m.account = batch.account
		  AND m.id = batch.id
		  AND s.account = batch.account
		  AND s.id = batch.id
		ORDER BY batch.n`
	if len(f.IDs) > 0 {
		keys := db.BatchOf("account, id", f.IDs, func(id *ID) []any { return []any{f.Account, id} })
		messages, err := db.List(ctx, s.db, label, selectByID, messageFields, keys)
		return slices.DeleteFunc(messages, func(m Message) bool { return !f.Selects(&m) }), 0, err
	}
	args := []any{f.Account, cmp.Or(int64(f.Before), math.MaxInt64), f.Limit}
	if f.Number != "" {
		args = append(args, f.Number)
	}
	statement := f.pageStatement(selectAll, selectInState, selectByNumber)
	messages, err := db.List(ctx, s.db, label, statement, messageFields, args...)
	if err != nil || len(messages) < f.Limit || len(messages) == 0 {
		return messages, 0, err
	}
	return messages, messages[len(messages)-1].ID, nil
}

const (
	selectAll = `
		  SELECT account, id
		  FROM message
		  WHERE account = $1
		    AND id < $2`
	selectInState = `
		  SELECT account, id
		  FROM message_state s
		  WHERE account = $1
		    AND id < $2
		    AND `
	// Each inner SELECT reads at most a page from the index of its column. CROSS JOIN makes
	// SQLite look up the states of the number's messages; PostgreSQL may begin with the index
	// of the state, whose size is in the statistics.
	selectByNumber = `
		  SELECT account, id
		  FROM (
		    SELECT m.account, m.id
		    FROM message m%[1]s
		    WHERE m.account = $1
		      AND m.destination = $4
		      AND m.id < $2%[2]s
		    ORDER BY m.id DESC
		    LIMIT $3
		  ) AS addressed
		  UNION
		  SELECT account, id
		  FROM (
		    SELECT m.account, m.id
		    FROM message m%[1]s
		    WHERE m.account = $1
		      AND m.originator = $4
		      AND m.id < $2%[2]s
		    ORDER BY m.id DESC
		    LIMIT $3
		  ) AS sent`
)

// pageStatement returns the statement that reads a page. It finds the ids with one of the three
// queries, which use the indexes of numbers and of states.
func (f *Filter) pageStatement(allIDs, idsInState, idsByNumber string) string {
	const selectPage = `
		WITH page AS MATERIALIZED (%s
		  ORDER BY id DESC
		  LIMIT $3
		)
		SELECT ` + messageColumns + `
		FROM page
		CROSS JOIN message m
		CROSS JOIN message_state s
		WHERE m.account = page.account
		  AND m.id = page.id
		  AND s.account = page.account
		  AND s.id = page.id
		ORDER BY page.id DESC`
	const joinState = `
		    CROSS JOIN message_state s`
	const andInState = `
		      AND s.account = m.account
		      AND s.id = m.id
		      AND `
	ids := allIDs
	switch {
	case f.Number != "" && f.State != "":
		ids = fmt.Sprintf(idsByNumber, joinState, andInState+stateCondition(f.State))
	case f.Number != "":
		ids = fmt.Sprintf(idsByNumber, "", "")
	case f.State != "":
		ids = idsInState + stateCondition(f.State)
	}
	return fmt.Sprintf(selectPage, ids)
}

// stateCondition returns the condition for a state. It equals the condition of the partial
// index of that state.
func stateCondition(s State) string {
	bit := stateBit(s)
	if s.Waiting() {
		return fmt.Sprintf("s.due > 0 AND (s.states & %[1]d) = %[1]d", bit)
	}
	return fmt.Sprintf("(s.settled & %[1]d) = %[1]d", bit)
}

// Get returns a message by its id. It returns relay.KindNotFound if the account has no message
// with the id.
func (s *Store) Get(ctx context.Context, acct relay.AccountID, id ID) (Message, error) {
	const statement = `
		SELECT ` + messageColumns + `
		FROM message m
		JOIN message_state s ON s.account = m.account AND s.id = m.id
		WHERE m.account = $1
		  AND m.id = $2`
	return db.One(ctx, s.db, "message "+id.String(), statement, messageFields, acct, id)
}

// Pending returns a page of the pending parts of an account, by id, and their total.
func (s *Store) Pending(ctx context.Context, acct relay.AccountID, offset, limit int) ([]View, int, error) {
	const label = "messages: pending"
	const count = `
		SELECT CAST(COALESCE(SUM(pending), 0) AS BIGINT)
		FROM message_state
		WHERE account = $1
		  AND due > 0
		  AND pending > 0`
	// preceding is the number of pending parts in messages with lower ids.
	const selectPage = `
		WITH page AS MATERIALIZED (
		  SELECT id, total - pending AS preceding
		  FROM (
		    SELECT id, pending, SUM(pending) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) AS total
		    FROM (
		      SELECT id, pending
		      FROM message_state
		      WHERE account = $1
		        AND due > 0
		        AND pending > 0
		      ORDER BY id
		      LIMIT $4
		    ) AS first
		  ) AS counted
		  WHERE total > $2
		  ORDER BY id
		  LIMIT $3
		)
		SELECT CAST(page.preceding AS BIGINT), ` + messageColumns + `
		FROM page
		CROSS JOIN message m
		CROSS JOIN message_state s
		WHERE m.account = $1
		  AND m.id = page.id
		  AND s.account = $1
		  AND s.id = page.id
		ORDER BY page.id`
	total, err := db.Value[int](ctx, s.db, label, count, acct)
	if err != nil || offset >= total || limit <= 0 {
		return nil, total, err
	}
	type pageMessage struct {
		m         Message
		preceding int
	}
	fields := func(p *pageMessage) []any { return append([]any{&p.preceding}, messageFields(&p.m)...) }
	page, err := db.List(ctx, s.db, label, selectPage, fields, acct, offset, limit, offset+limit)
	var parts []View
	for i := range page {
		m, index := &page[i].m, page[i].preceding
		for n := range m.Parts {
			if m.Parts[n].State != Pending {
				continue
			}
			if index >= offset && len(parts) < limit {
				parts = append(parts, m.View(n))
			}
			index++
		}
	}
	return parts, total, err
}

// Unreported returns messages with changes that have been unreported since cutoff or earlier,
// oldest first. Settle and Receive mark a message with a Report as unreported until
// MarkReported, so that a crash loses no report. Messages that cannot be decrypted are skipped and
// move behind the others.
func (s *Store) Unreported(ctx context.Context, cutoff time.Time, limit int) ([]Message, error) {
	const label = "messages: list unreported"
	const selectUnreported = `
		SELECT ` + messageColumns + `
		FROM message_state s
		JOIN message m ON m.account = s.account AND m.id = s.id
		WHERE s.untold > 0
		  AND s.untold <= $1
		ORDER BY s.untold, s.account, s.id
		LIMIT $2`
	const postpone = `
		UPDATE message_state
		SET untold = $1
		FROM batch
		WHERE message_state.account = batch.account
		  AND message_state.id = batch.id
		  AND message_state.untold > 0`
	messages, err := db.List(ctx, s.db, label, selectUnreported, messageFields, cutoff, limit)
	if err != nil {
		return nil, err
	}
	decrypted, undecryptable := separate(messages)
	return decrypted, s.db.Run(ctx, label, postpone, s.db.Now(), refBatch(distinctRefs(undecryptable, (*Message).Ref)))
}

// MarkReported marks messages as reported unless their Version has changed since they were
// read.
func (s *Store) MarkReported(ctx context.Context, messages []Message) error {
	const statement = `
		WITH reported AS MATERIALIZED (
		  SELECT s.account, s.id
		  FROM batch
		  CROSS JOIN message_state s
		  WHERE s.account = batch.account
		    AND s.id = batch.id
		    AND s.version = batch.version
		  ORDER BY s.account, s.id {for update}
		)
		UPDATE message_state
		SET untold = 0
		FROM reported
		WHERE message_state.account = reported.account
		  AND message_state.id = reported.id`
	b := db.BatchOf("account, id, version", messages, func(m *Message) []any {
		return []any{m.Account, m.ID, m.Version}
	})
	return s.db.Run(ctx, "messages: mark reported", statement, b)
}

const (
	sealedColumns  = `m.account, m.doc, m.id, m.originator, m.destination`
	messageColumns = sealedColumns + `, s.part_count, s.scheduled, s.parts, s.version`
)

// sealedFields returns pointers to the fields of m in the order of sealedColumns.
func sealedFields(m *Message) []any {
	return []any{&m.Account, db.SealedOr(&m.Undecryptable, db.JSON(m), "message", &m.Account), &m.ID, &m.Originator, &m.Destination}
}

// messageFields returns pointers to the fields of m in the order of messageColumns.
func messageFields(m *Message) []any {
	var r row
	return append(sealedFields(m), &r.partCount, &r.scheduled, db.JSON(&r.parts), &m.Version, func() {
		r.fill(m)
		r = row{}
	})
}

// messagesOf loads the messages of rows, with the states of the rows, and separates the
// messages that cannot be decrypted.
func (s *Store) messagesOf(ctx context.Context, label string, rows []row) (decrypted, undecryptable []Message, err error) {
	const statement = `
		SELECT ` + sealedColumns + `, batch.n
		FROM batch
		CROSS JOIN message m
		WHERE m.account = batch.account
		  AND m.id = batch.id
		ORDER BY batch.n`
	fields := func(m *Message) []any {
		var n int
		return append(sealedFields(m), &n, func() {
			m.Version = rows[n-1].version
			rows[n-1].fill(m)
		})
	}
	messages, err := db.List(ctx, s.db, label, statement, fields, rowKeys(rows))
	decrypted, undecryptable = separate(messages)
	return decrypted, undecryptable, err
}

func separate(messages []Message) (decrypted, undecryptable []Message) {
	for i := range messages {
		if messages[i].Undecryptable {
			undecryptable = append(undecryptable, messages[i])
		} else {
			decrypted = append(decrypted, messages[i])
		}
	}
	return decrypted, undecryptable
}
