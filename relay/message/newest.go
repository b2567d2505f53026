package message

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// firstWidth is the number of ids that ListNewest looks at first, per account at most; each
// further range is widthFactor times as wide.
const (
	firstWidth  ID = 1000
	widthFactor ID = 4
)

// ListNewest returns messages of several accounts, newest first, and the cursor of the next
// page, 0 at the end. The filter's Account and IDs are ignored.
//
// No index has the ids of all accounts in their order. ListNewest therefore reads ranges of
// ids from the index of each account, each range wider than the last, until the page is full:
// the cost depends on the accounts and the size of the page, not on the number of messages.
func (s *Store) ListNewest(ctx context.Context, accounts []relay.AccountID, f Filter) ([]Message, ID, error) {
	const label = "messages: list newest"
	lastID, err := db.Value[ID](ctx, s.db, label, "SELECT last FROM message_id")
	if err != nil {
		return nil, 0, err
	}
	end := min(cmp.Or(f.Before, math.MaxInt64), lastID+1)
	var messages []Message
	statement := newestStatement(&f)
	for width := firstWidth; end > 0; width *= widthFactor {
		start := max(0, end-width)
		args := []any{start, end, f.Limit - len(messages)}
		if f.Number != "" {
			args = append(args, f.Number)
		}
		found, err := db.List(ctx, s.db, label, statement, messageFields, append(args, db.Column("account", accounts))...)
		if err != nil {
			return nil, 0, err
		}
		messages = append(messages, found...)
		if len(messages) >= f.Limit {
			return messages, messages[len(messages)-1].ID, nil
		}
		end = start
	}
	return messages, 0, nil
}

// newestStatement returns the statement that reads the newest messages of a range of ids.
func newestStatement(f *Filter) string {
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
	const selectAll = `
		  SELECT m.account AS account, m.id AS id
		  FROM batch
		  CROSS JOIN message m
		  WHERE m.account = batch.account
		    AND m.id >= $1
		    AND m.id < $2`
	const selectInState = `
		  SELECT s.account AS account, s.id AS id
		  FROM batch
		  CROSS JOIN message_state s
		  WHERE s.account = batch.account
		    AND s.id >= $1
		    AND s.id < $2
		    AND `
	const selectByNumber = `
		  SELECT m.account AS account, m.id AS id
		  FROM batch
		  CROSS JOIN message m%[1]s
		  WHERE m.account = batch.account
		    AND m.destination = $4
		    AND m.id >= $1
		    AND m.id < $2%[2]s
		  UNION
		  SELECT m.account AS account, m.id AS id
		  FROM batch
		  CROSS JOIN message m%[1]s
		  WHERE m.account = batch.account
		    AND m.originator = $4
		    AND m.id >= $1
		    AND m.id < $2%[2]s`
	const joinState = `
		  CROSS JOIN message_state s`
	const andInState = `
		    AND s.account = m.account
		    AND s.id = m.id
		    AND `
	ids := selectAll
	switch {
	case f.Number != "" && f.State != "":
		ids = fmt.Sprintf(selectByNumber, joinState, andInState+stateCondition(f.State))
	case f.Number != "":
		ids = fmt.Sprintf(selectByNumber, "", "")
	case f.State != "":
		ids = selectInState + stateCondition(f.State)
	}
	return fmt.Sprintf(selectPage, ids)
}
