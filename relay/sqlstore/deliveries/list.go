package deliveries

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/sqlstore"
)

// defaultLimit is the length of a page whose filter has no limit.
const defaultLimit = 100

// selected finds what a filter selects.
const selected = `SELECT created, id, account FROM delivery
WHERE (created, id, account) < ($1, $2, $3) AND created >= $4 AND (expires = 0 OR expires > $5)
  AND ($6 = '' OR kind = $6) AND ($7 = '' OR relay = $7) AND ($8 = '' OR originator = $8 OR destination = $8)
  AND ($9 = '' OR waits = $9) AND $10 > 0`

const newestFirst = ` ORDER BY created DESC, id DESC, account DESC LIMIT $10`

const named = `SELECT d.created, d.id, d.account FROM batch AS b JOIN delivery AS d ON d.id = b.id
WHERE (d.created, d.id, d.account) < ($1, $2, $3) ORDER BY d.created DESC, d.id DESC, d.account DESC LIMIT $4`

// position is a place in the order of lists: newest first, then by id and
// account, downwards.
type position struct {
	created int64
	outbox.Ref
}

// fields are the columns created, id and account.
func (p *position) fields() []any { return []any{&p.created, &p.ID, &p.Account} }

func positionOf(d *outbox.Delivery) position {
	return position{sqlstore.Nanos(d.CreatedAt), refOf(d)}
}

// compare orders positions as lists do.
func compare(a, b position) int {
	return cmp.Or(cmp.Compare(b.created, a.created), cmp.Compare(b.ID, a.ID), cmp.Compare(b.Account, a.Account))
}

// String returns the position as a cursor.
func (p position) String() string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %d %s", p.created, p.Account, p.ID))
}

// parseCursor reads a cursor; the empty one is nil.
func parseCursor(s string) (*position, error) {
	if s == "" {
		return nil, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(s)
	parts := strings.SplitN(string(b), " ", 3)
	if err != nil || len(parts) != 3 {
		return nil, relay.Invalid("cursor", "This is not a cursor of this list.")
	}
	created, err1 := strconv.ParseInt(parts[0], 10, 64)
	acct, err2 := strconv.ParseInt(parts[1], 10, 64)
	if err1 != nil || err2 != nil {
		return nil, relay.Invalid("cursor", "This is not a cursor of this list.")
	}
	return &position{created, outbox.Ref{Account: account.ID(acct), ID: parts[2]}}, nil
}

// List returns a page of deliveries, newest first.
func (s *Store) List(ctx context.Context, f outbox.Filter) ([]outbox.Delivery, string, error) {
	if f.Limit <= 0 {
		f.Limit = defaultLimit
	}
	from, err := start(f)
	if err != nil {
		return nil, "", err
	}
	page, next, err := s.page(ctx, f, from)
	if err != nil {
		return nil, "", err
	}
	ds, err := s.load(ctx, load, page)
	return ds, next, err
}

// start is the position before the first that a page may have.
func start(f outbox.Filter) (position, error) {
	from, err := parseCursor(f.Cursor)
	if err != nil {
		return position{}, err
	}
	first := position{created: math.MaxInt64}
	if !f.To.IsZero() {
		first.created = sqlstore.Nanos(f.To.Truncate(time.Millisecond).Add(time.Millisecond)) // times are shown in milliseconds
	}
	if from != nil && compare(first, *from) < 0 {
		first = *from
	}
	return first, nil
}

// page finds the positions of a page and the next one's cursor. Texts that no
// index has are read and matched here, columns that no index has are compared by the
// database, and a page ends once that has read scanMost or compared compareMost.
func (s *Store) page(ctx context.Context, f outbox.Filter, from position) (page []position, next string, err error) {
	find := s.finder(f)
	for read, size := 0.0, f.Limit+1; read < 1; size = chunkSize {
		found, end, err := find.find(ctx, from, size)
		if err != nil {
			return nil, "", err
		}
		read += float64(len(found))/float64(s.scanMost) + find.share
		match := found
		if !find.exact {
			if match, err = s.match(ctx, f, found); err != nil {
				return nil, "", err
			}
		}
		if page = append(page, match...); len(page) > f.Limit {
			page = page[:f.Limit]
			return page, page[f.Limit-1].String(), nil
		}
		if end == nil {
			return page, "", nil
		}
		from = *end
	}
	return page, from.String(), nil
}

// match returns those of positions whose deliveries a filter selects.
func (s *Store) match(ctx context.Context, f outbox.Filter, found []position) ([]position, error) {
	ds, err := s.load(ctx, heads, found)
	if err != nil {
		return nil, err
	}
	var match []position
	for i := range ds {
		if selects(f, &ds[i]) {
			match = append(match, positionOf(&ds[i]))
		}
	}
	return match, nil
}

// load loads deliveries, newest first; one that expired meanwhile is left out.
func (s *Store) load(ctx context.Context, query string, ps []position) ([]outbox.Delivery, error) {
	keys := sqlstore.BatchOf("id, account", ps, func(p *position) []any { return refFields(&p.Ref) })
	ds, err := sqlstore.List(ctx, s.db, "deliveries: list", query, fields, s.db.Now(), keys)
	slices.SortFunc(ds, func(a, b outbox.Delivery) int { return compare(positionOf(&a), positionOf(&b)) })
	return ds, err
}

// find finds up to n positions after one, in the order of lists, and where it ended:
// nil if there are no more.
type find func(ctx context.Context, after position, n int) (found []position, end *position, err error)

// query is a find that looks at everything in one statement.
type query func(ctx context.Context, after position, n int) ([]position, error)

func (q query) find(ctx context.Context, after position, n int) (found []position, end *position, err error) {
	found, err = q(ctx, after, n)
	if len(found) == n && n > 0 {
		end = &found[n-1]
	}
	return found, end, err
}

// finder is how to find what a filter may select.
type finder struct {
	find  find
	exact bool    // it finds nothing else
	share float64 // of what a page may take, that one call takes whatever it finds
}

// finder chooses how to find what a filter may select.
func (s *Store) finder(f outbox.Filter) finder {
	texts := f.Query != "" || f.Reason != "" || f.Target != ""
	switch {
	case len(f.IDs) > 0:
		return finder{find: s.named(f).find}
	case texts && f.State == outbox.Dead:
		return finder{find: s.search(f).find}
	case f.Kind != "" || f.Relay != "" || f.Number != "" || f.Waits != "":
		return finder{find: s.stepwise(f), exact: !texts, share: float64(s.step) / compareMost}
	}
	return finder{find: s.scan(f).find, exact: !texts}
}

// named finds deliveries by their ids, in whichever account they are.
func (s *Store) named(f outbox.Filter) query {
	ids := sqlstore.Column("id", slices.Compact(slices.Sorted(slices.Values(f.IDs))))
	return func(ctx context.Context, after position, n int) ([]position, error) {
		return sqlstore.List(ctx, s.db, "deliveries: list", named, (*position).fields, after.created, after.ID, after.Account, n, ids)
	}
}

// scan finds deliveries by the index of each state, or that of accounts.
func (s *Store) scan(f outbox.Filter) query {
	query := scanOf(f)
	if query == "" {
		return func(context.Context, position, int) ([]position, error) { return nil, nil }
	}
	return func(ctx context.Context, after position, n int) ([]position, error) {
		args := []any{after.created, after.ID, after.Account, oldest(f), s.db.Now(), f.Kind, f.Relay, f.Number, f.Waits, n}
		if f.Account != 0 {
			args = append(args, f.Account)
		}
		return sqlstore.List(ctx, s.db, "deliveries: list", query, (*position).fields, args...)
	}
}

// stepwise scans so many deliveries at a time: a filter may find none of a million.
func (s *Store) stepwise(f outbox.Filter) find {
	border := borderOf(f)
	return func(ctx context.Context, after position, n int) (found []position, end *position, err error) {
		if border == "" {
			return nil, nil, nil
		}
		newest := after.created
		if after.ID == "" {
			newest-- // what was created then is behind
		}
		args := []any{newest, s.step}
		if f.Account != 0 {
			args = append(args, f.Account)
		}
		step := f
		at, err := sqlstore.Value[int64](ctx, s.db, "deliveries: list", border, args...)
		if err != nil {
			return nil, nil, err
		}
		last := at == noBorder || at <= oldest(f)
		if !last {
			step.From = time.Unix(0, at)
		}
		found, end, err = s.scan(step).find(ctx, after, n)
		if end == nil && !last {
			end = &position{created: at} // past all that were created then
		}
		return found, end, err
	}
}

// noBorder is the border when there are not so many deliveries. Its literal is a bigint
// on both engines, which that of the least number is not.
const noBorder = math.MinInt64 + 1

// borderOf is the statement for the time of creation of the last one of the next so many
// deliveries in the index of a filter, of several states the latest; "" if the filter
// selects none.
func borderOf(f outbox.Filter) string {
	least := strconv.Itoa(noBorder)
	parts := partsOf(f, func(condition string) string {
		return "(SELECT created FROM delivery WHERE created <= $1 AND " + condition + " ORDER BY created DESC LIMIT 1 OFFSET $2)"
	}, "$3")
	if len(parts) == 0 {
		return ""
	}
	for i := range parts {
		parts[i] = "COALESCE(" + parts[i] + ", " + least + ")"
	}
	if len(parts) == 1 {
		return "SELECT " + parts[0]
	}
	return "SELECT {greatest}(" + strings.Join(parts, ", ") + ")"
}

// oldest is the time of creation of the oldest delivery that a filter selects.
func oldest(f outbox.Filter) int64 {
	if f.From.IsZero() {
		return math.MinInt64
	}
	return sqlstore.Nanos(f.From)
}

// scanOf is selected over the states that a filter may select, one by one, so
// that each part is read in the order of an index; "" if there are none.
func scanOf(f outbox.Filter) string {
	parts := partsOf(f, func(condition string) string { return selected + " AND " + condition + newestFirst }, "$11")
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	for i, part := range parts {
		parts[i] = fmt.Sprintf("SELECT * FROM (%s) AS part%d", part, i)
	}
	return strings.Join(parts, "\nUNION ALL ") + newestFirst
}

// partsOf is a statement for each condition that an index has, of those that together
// select what a filter may select. account is the parameter's name.
func partsOf(f outbox.Filter, statement func(condition string) string, account string) (parts []string) {
	if f.Account != 0 && f.State == "" && f.Waits == "" {
		return []string{statement("account = " + account)}
	}
	for _, state := range outbox.States() {
		if f.State != "" && f.State != state || f.Waits != "" && state.Ended() {
			continue
		}
		condition := inState(state, "")
		if f.Account != 0 {
			condition = inState(state, account)
		}
		parts = append(parts, statement(condition))
	}
	return parts
}

// inState selects a state, of one account, whose parameter is named, or all. Of an account's deliveries most
// are delivered, and few are under way: an expression keeps the engine from the
// index that does not help.
func inState(state outbox.State, account string) string {
	equal := " = '" + string(state) + "'"
	switch {
	case account == "":
		return "state" + equal
	case !state.Ended():
		return "state" + equal + " AND account + 0 = " + account
	case state == outbox.Delivered:
		return "state || ''" + equal + " AND account = " + account
	}
	return "state" + equal + " AND account = " + account
}
