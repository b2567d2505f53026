package messages

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/penstock/penstock/relay/message"
	"github.com/penstock/penstock/relay/sqlstore"
)

// Most messages have one part, which is submitted once and accepted. Begin and
// Settle record that with one statement each, without reading the message first.
// Version 0 means that no outcome has been recorded since the message was saved.
//
// A lease of which half is left is not moved: on PostgreSQL an update that changes
// no indexed column adds no entry to any index.
const (
	beginSinglePart = `
UPDATE message_state SET parts = batch.parts, pending = 0, states = 2,
  due = CASE WHEN message_state.due < batch.least THEN batch.time ELSE message_state.due END` + ofSinglePart + `
  AND message_state.parts = ''` + returning

	settleSinglePart = `
UPDATE message_state SET parts = batch.parts, states = 4, settled = 4, due = 0, expires = batch.time + $1, version = 1,
  untold = CASE WHEN message_state.report = 1 AND message_state.untold = 0 THEN batch.time ELSE message_state.untold END` + ofSinglePart + `
  AND message_state.states = 2 AND message_state.version = 0` + returning

	ofSinglePart = `
FROM batch WHERE message_state.account = batch.account AND message_state.id = batch.id AND message_state.part_count = 1`
	// SQLite takes no alias in RETURNING.
	returning = `
RETURNING message_state.account, message_state.id, message_state.report`
)

// singlePart is the new state of a message of one part.
type singlePart struct {
	message.Ref
	part
	time  time.Time // when its lease ends, or when it was accepted
	least time.Time // a lease that ends later stays as it is
}

// record runs beginSinglePart or settleSinglePart for messages, in the order of their keys, and
// returns those that it has changed. The others need the statements for all cases.
func record(ctx context.Context, tx *sqlstore.Tx, noun, statement string, all []singlePart, args ...any) (map[message.Ref]*state, error) {
	slices.SortFunc(all, func(a, b singlePart) int { return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.ID, b.ID)) })
	b := sqlstore.BatchOf("account bigint, id bigint, parts text, time bigint, least bigint", all, func(o *singlePart) []any {
		return []any{o.Account, o.ID, sqlstore.JSON([]part{o.part}), o.time, o.least}
	})
	changed, err := byRef(sqlstore.List(ctx, tx, noun, statement, func(s *state) []any {
		return []any{&s.Account, &s.ID, &s.report}
	}, append(args, b)...))
	for i := range all {
		if st := changed[all[i].Ref]; st != nil {
			st.parts, st.version = []part{all[i].part}, 1
		}
	}
	return changed, err
}

// withSingleMessage returns the items whose message occurs once in the batch.
func withSingleMessage[T any](batch []T, of func(*T) message.Ref) (items []*T) {
	times := make(map[message.Ref]int, len(batch))
	for i := range batch {
		times[of(&batch[i])]++
	}
	for i := range batch {
		if times[of(&batch[i])] == 1 {
			items = append(items, &batch[i])
		}
	}
	return items
}
