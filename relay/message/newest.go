package message

import (
	"cmp"
	"context"
	"math"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// firstWidth is the number of ids in the first range that ListNewest reads; each further
// range is widthFactor times as wide.
const (
	firstWidth  ID = 1000
	widthFactor ID = 4
)

// ListNewest returns messages of several accounts, newest first, and the cursor of the next
// page, 0 on the last page. The filter's Account and IDs are ignored.
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
	statement := f.pageStatement(selectAllInRange, selectInStateAndRange, selectByNumberInRange)
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

const (
	selectAllInRange = `
		  SELECT m.account AS account, m.id AS id
		  FROM batch
		  CROSS JOIN message m
		  WHERE m.account = batch.account
		    AND m.id >= $1
		    AND m.id < $2`
	selectInStateAndRange = `
		  SELECT s.account AS account, s.id AS id
		  FROM batch
		  CROSS JOIN message_state s
		  WHERE s.account = batch.account
		    AND s.id >= $1
		    AND s.id < $2
		    AND `
	selectByNumberInRange = `
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
)
