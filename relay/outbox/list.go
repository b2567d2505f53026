package outbox

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
	"github.com/penstock/penstock/relay/db"
)

const listLabel = "deliveries: list"

// Filter selects deliveries; zero fields select all.
type Filter struct {
	IDs      []string
	State    State
	Account  relay.AccountID
	Kind     Kind
	Relay    string
	WaitsFor Wait
	Number   string // the whole originator or destination
	Target   string // a part of the target, case-insensitive
	Reason   string // a part of the reason, case-insensitive
	From     time.Time
	To       time.Time
	Query    string // a part of id, message id, target, reason or text
	// SearchUntil is the time after which List compares no further deliveries; zero means no limit.
	SearchUntil time.Time
	Limit       int
	Cursor      string
}

// position is a place in the order of lists: newest first, then by descending id and
// account.
type position struct {
	created int64
	Ref
}

// fields returns pointers to the columns created, id and account.
func (p *position) fields() []any { return []any{&p.created, &p.ID, &p.Account} }

func positionOf(d *Delivery) position {
	return position{db.Nanos(d.CreatedAt), refOf(d)}
}

// compare orders positions as lists do.
func compare(a, b position) int {
	return cmp.Or(cmp.Compare(b.created, a.created), cmp.Compare(b.ID, a.ID), cmp.Compare(b.Account, a.Account))
}

// String returns the position as a cursor.
func (p position) String() string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %d %s", p.created, p.Account, p.ID))
}

// parseCursor parses a cursor that is not empty.
func parseCursor(s string) (position, error) {
	invalid := relay.Invalid("cursor", "This is not a cursor of this list.")
	b, err := base64.RawURLEncoding.DecodeString(s)
	parts := strings.SplitN(string(b), " ", 3)
	if err != nil || len(parts) != 3 {
		return position{}, invalid
	}
	created, err1 := strconv.ParseInt(parts[0], 10, 64)
	acct, err2 := strconv.ParseInt(parts[1], 10, 64)
	if err1 != nil || err2 != nil {
		return position{}, invalid
	}
	return position{created, Ref{Account: relay.AccountID(acct), ID: parts[2]}}, nil
}

// List returns deliveries, newest first, and the cursor of the next page, "" on the last page. If the
// filter has texts, a page with a cursor may be partial.
func (s *Store) List(ctx context.Context, f Filter) (ds []Delivery, nextCursor string, err error) {
	f.Limit = cmp.Or(max(f.Limit, 0), 100)
	// 1. Start after the cursor, or with the newest delivery that the filter selects.
	previous := position{created: math.MaxInt64}
	if !f.To.IsZero() {
		previous.created = db.Nanos(f.To.Truncate(time.Millisecond).Add(time.Millisecond)) // the API returns times in milliseconds
	}
	if f.Cursor != "" {
		cursor, err := parseCursor(f.Cursor)
		if err != nil {
			return nil, "", err
		}
		if compare(previous, cursor) < 0 {
			previous = cursor
		}
	}
	// 2. Find the positions of the page and load their deliveries.
	page, nextCursor, err := s.page(ctx, f, previous)
	if err != nil {
		return nil, "", err
	}
	ds, err = read(ctx, s.db, listLabel, selectByKeys, s.db.Now(), positionKeys(page))
	slices.SortFunc(ds, func(a, b Delivery) int { return compare(positionOf(&a), positionOf(&b)) })
	return ds, nextCursor, err
}

// SearchedTo returns the time of creation of the last delivery that List compared before it returned
// nextCursor.
func SearchedTo(nextCursor string) time.Time {
	p, err := parseCursor(nextCursor)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(0, p.created)
}

// page finds the positions of a page after a position, and the cursor of the next page.
// The database compares columns without an index; page reads and matches texts. A page ends
// early after s.maxCompared compared or s.maxScanned read deliveries, or when f.SearchUntil has
// passed.
func (s *Store) page(ctx context.Context, f Filter, previous position) (page []position, nextCursor string, err error) {
	hasTexts := f.Query != "" || f.Reason != "" || f.Target != ""
	compared, scanned := 0, 0
	isOver := func() bool {
		return compared >= s.maxCompared || scanned >= s.maxScanned || compared > 0 && !f.SearchUntil.IsZero() && time.Now().After(f.SearchUntil)
	}
	for n := min(f.Limit+1, s.step); !isOver(); n = min(4*n, s.step) {
		if hasTexts {
			n = min(n, chunkSize)
		}
		candidates, err := s.candidates(ctx, f, previous, n)
		if err != nil {
			return nil, "", err
		}
		var found []position
		for _, c := range candidates {
			if c.selected {
				found = append(found, c.position)
			}
		}
		compared += len(candidates)
		if hasTexts || len(f.IDs) > 0 {
			scanned += len(found)
			if found, err = s.match(ctx, f, found); err != nil {
				return nil, "", err
			}
		}
		if page = append(page, found...); len(page) > f.Limit {
			page = page[:f.Limit]
			return page, page[f.Limit-1].String(), nil
		}
		if len(candidates) < n {
			return page, "", nil
		}
		previous = candidates[n-1].position
	}
	return page, previous.String(), nil
}

// match returns the positions whose deliveries a filter selects.
func (s *Store) match(ctx context.Context, f Filter, found []position) ([]position, error) {
	ds, err := db.List(ctx, s.db, listLabel, selectByKeys, fields, s.db.Now(), positionKeys(found))
	if err != nil {
		return nil, err
	}
	var matching []position
	for i := range ds {
		if f.selects(&ds[i]) {
			matching = append(matching, positionOf(&ds[i]))
		}
	}
	slices.SortFunc(matching, compare)
	return matching, nil
}

func positionKeys(ps []position) *db.Batch {
	return db.BatchOf("id, account", ps, func(p *position) []any { return refFields(&p.Ref) })
}

// candidate is a position that an index returned for a filter. selected reports whether the
// columns without an index match the filter too.
type candidate struct {
	position
	selected bool
}

func (c *candidate) fields() []any { return append(c.position.fields(), &c.selected) }

// candidates finds up to n candidates after a position, in the order of lists.
func (s *Store) candidates(ctx context.Context, f Filter, previous position, n int) ([]candidate, error) {
	// 1. Find candidates by ids, in any account.
	if len(f.IDs) > 0 {
		const byID = `
			SELECT d.created, d.id, d.account, 1
			FROM batch AS b
			JOIN delivery AS d ON d.id = b.id
			WHERE (d.created, d.id, d.account) < ($1, $2, $3)
			ORDER BY d.created DESC, d.id DESC, d.account DESC
			LIMIT $4`
		ids := db.Column("id", slices.Compact(slices.Sorted(slices.Values(f.IDs))))
		return db.List(ctx, s.db, listLabel, byID, (*candidate).fields, previous.created, previous.ID, previous.Account, n, ids)
	}
	// 2. Find dead deliveries by their searchable texts, which omit the secret parts of targets.
	if f.State == Dead && (f.Query != "" || f.Reason != "") {
		const search = `
			SELECT created, id, account, 1
			FROM delivery_dead
			WHERE (created, id, account) < ($1, $2, $3)
			  AND created >= $4
			  AND (CAST($5 AS BIGINT) = 0 OR account = $5)
			  AND {position}(text, $6) > 0
			  AND {position}(text, $7) > 0
			ORDER BY created DESC, id DESC, account DESC
			LIMIT $8`
		return db.List(ctx, s.db, listLabel, search, (*candidate).fields, previous.created, previous.ID, previous.Account, minCreated(f), f.Account,
			strings.ToLower(f.Query), strings.ToLower(f.Reason), n)
	}
	// 3. Find candidates by the index of each state or by the index of accounts.
	statement := scanOf(f)
	if statement == "" {
		return nil, nil
	}
	args := []any{previous.created, previous.ID, previous.Account, minCreated(f), s.db.Now(), f.Kind, f.Relay, f.Number, f.WaitsFor, n}
	if f.Account != 0 {
		args = append(args, f.Account)
	}
	return db.List(ctx, s.db, listLabel, statement, (*candidate).fields, args...)
}

// minCreated returns the earliest time of creation that a filter selects.
func minCreated(f Filter) int64 {
	if f.From.IsZero() {
		return math.MinInt64
	}
	return db.Nanos(f.From)
}

// scanOf returns a statement that reads the next n deliveries of each state that a filter may
// select from an index, and returns the first n of these; "" if the filter selects no state.
func scanOf(f Filter) string {
	const scan = `
		SELECT created, id, account,
		  CASE
		    WHEN (expires = 0 OR expires > $5)
		      AND ($6 = '' OR kind = $6)
		      AND ($7 = '' OR relay = $7)
		      AND ($8 = '' OR originator = $8 OR destination = $8)
		      AND ($9 = '' OR waits = $9)
		    THEN 1
		    ELSE 0
		  END AS selected
		FROM delivery
		WHERE (created, id, account) < ($1, $2, $3)
		  AND created >= $4
		  AND %s`
	const newestFirst = `
		ORDER BY created DESC, id DESC, account DESC
		LIMIT $10`
	if f.Account != 0 && f.State == "" && f.WaitsFor == "" {
		return fmt.Sprintf(scan, "account = $11") + newestFirst
	}
	var scans []string
	for _, state := range States() {
		if f.State != "" && f.State != state || f.WaitsFor != "" && state.Ended() {
			continue
		}
		scans = append(scans, fmt.Sprintf("SELECT * FROM (%s) AS %s", fmt.Sprintf(scan, inState(state, f.Account))+newestFirst, state))
	}
	if len(scans) < 2 {
		return strings.Join(scans, "")
	}
	return strings.Join(scans, "\nUNION ALL ") + newestFirst
}

// inState returns the condition for a state, of one account or of all accounts (0). Most
// deliveries of an account are delivered, and few are under way. The condition on the column
// that selects many rows is an expression, so that the engine uses the index of the other column.
func inState(state State, acct relay.AccountID) string {
	equal := " = '" + string(state) + "'"
	switch {
	case acct == 0:
		return "state" + equal
	case !state.Ended():
		return "state" + equal + " AND account + 0 = $11"
	case state == Delivered:
		return "state || ''" + equal + " AND account = $11"
	}
	return "state" + equal + " AND account = $11"
}

// separator separates the texts of a dead delivery. No query contains the separator.
const separator = "\x1f"

const deleteDeadTexts = `
		DELETE FROM delivery_dead
		WHERE (id, account) IN (SELECT id, account FROM batch)`

// saveDeadTexts saves the texts by which dead deliveries are searched.
func saveDeadTexts(ctx context.Context, tx *db.Tx, dead []Ref) error {
	const label = "dead deliveries"
	const upsert = `
		INSERT INTO delivery_dead (id, account, created, text)
		SELECT id, account, created, text
		FROM batch
		WHERE true
		ON CONFLICT (id, account) DO UPDATE SET created = excluded.created, text = excluded.text`
	ds, err := db.List(ctx, tx, label, selectByKeys, fields, 0, keys(dead))
	if err != nil {
		return err
	}
	rows := db.BatchOf("id, account, created, text", ds, func(d *Delivery) []any {
		return []any{d.ID, d.Account, db.Nanos(d.CreatedAt), strings.ToLower(strings.Join(texts(d), separator))}
	})
	return tx.Run(ctx, label, upsert, rows)
}

// selects reports whether a filter selects a delivery.
func (f *Filter) selects(d *Delivery) bool {
	switch {
	case len(f.IDs) > 0 && !slices.Contains(f.IDs, d.ID),
		f.State != "" && f.State != d.State,
		f.WaitsFor != "" && f.WaitsFor != d.WaitsFor,
		f.Account != 0 && f.Account != d.Account,
		f.Kind != "" && f.Kind != d.Kind,
		f.Relay != "" && f.Relay != d.Relay,
		!f.From.IsZero() && d.CreatedAt.Before(f.From),
		!f.To.IsZero() && d.CreatedAt.After(f.To),
		f.Number != "" && f.Number != d.Originator && f.Number != d.Destination,
		!containsFold(d.Reason, f.Reason),
		!containsFold(MaskTarget(d.Target()), f.Target):
		return false
	}
	return slices.ContainsFunc(texts(d), func(text string) bool { return containsFold(text, f.Query) })
}

// texts returns the texts that Filter.Query searches. The table delivery_dead stores them
// unencrypted, so they lack the parts of the target that may be secret and the bodies of callbacks,
// which may have the texts of tokens. Filter.Target is compared with the masked target instead.
func texts(d *Delivery) []string {
	list := []string{d.ID, d.MessageID, SearchableTarget(d.Target()), d.Reason}
	if d.Request != nil && d.Kind != KindCallback {
		list = append(list, string(d.Request.Body))
	}
	if d.SIM != nil {
		list = append(list, d.SIM.Text)
	}
	if d.SMS != nil {
		list = append(list, d.SMS.Text)
	}
	if d.Mail != nil {
		list = append(list, d.Mail.Subject, d.Mail.Text)
	}
	return list
}

// containsFold reports whether a text contains a part, ignoring case.
func containsFold(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}
