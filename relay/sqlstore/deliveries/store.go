package deliveries

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/sqlstore"
)

// chunkSize is how many deliveries one statement changes or loads where no caller
// sets a bound.
const chunkSize = 500

// Store keeps deliveries. It is safe for concurrent use.
type Store struct {
	db *sqlstore.DB
	// scanMost is how many deliveries one page of a list reads for texts that no
	// index has.
	scanMost int
}

var (
	_ outbox.Store       = (*Store)(nil)
	_ inbound.Deliveries = (*Store)(nil)
)

// New returns the store of deliveries in a database.
func New(db *sqlstore.DB) *Store { return &Store{db: db, scanMost: 20_000} }

// columns are those that scan reads.
const columns = `d.id, d.account, d.kind, d.relay, d.message_id, d.originator, d.destination, d.doc,
d.state, d.reason, d.due, d.waits, d.held_until, d.tries, `

const (
	get = `SELECT ` + columns + `d.attempts FROM delivery AS d
WHERE d.id = $1 AND d.account = $2 AND (d.expires = 0 OR d.expires > $3)`

	load = `SELECT ` + columns + `d.attempts FROM batch AS b JOIN delivery AS d ON d.id = b.id AND d.account = b.account
WHERE d.expires = 0 OR d.expires > $1`

	// heads loads what filters look at.
	heads = `SELECT ` + columns + `'' FROM batch AS b JOIN delivery AS d ON d.id = b.id AND d.account = b.account
WHERE d.expires = 0 OR d.expires > $1`

	ofMessage = `SELECT ` + columns + `d.attempts FROM delivery AS d
WHERE d.message_id = $1 AND d.message_id <> '' AND (d.expires = 0 OR d.expires > $2)`
)

// Get loads one delivery.
func (s *Store) Get(ctx context.Context, acct account.ID, id string) (outbox.Delivery, error) {
	return sqlstore.One(ctx, s.db, "delivery "+id, get, scan, id, int64(acct), s.now())
}

// OfMessage returns the deliveries of a message, of all accounts, oldest first.
func (s *Store) OfMessage(ctx context.Context, messageID string) ([]outbox.Delivery, error) {
	ds, err := sqlstore.List(ctx, s.db, "deliveries of message "+messageID, ofMessage, scan, messageID, s.now())
	slices.SortFunc(ds, func(a, b outbox.Delivery) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return ds, err
}

func (s *Store) now() int64 { return sqlstore.Millis(s.db.Now()) }

// encode is what never changes of a delivery, without what has a column.
func encode(d *outbox.Delivery) (string, error) {
	kept := *d
	kept.ID, kept.Account, kept.Kind, kept.Relay, kept.MessageID = "", 0, "", "", ""
	kept.Originator, kept.Destination = "", ""
	kept.State, kept.Reason, kept.NextAttemptAt, kept.Waits, kept.HeldUntil = "", "", time.Time{}, "", time.Time{}
	kept.Tries, kept.Attempts = 0, nil
	doc, err := sqlstore.Encode(kept)
	if err != nil {
		return "", fmt.Errorf("delivery %s: encode: %w", d.ID, err)
	}
	return doc, nil
}

// scan reads a row of columns.
func scan(row *sql.Rows, d *outbox.Delivery) error {
	var (
		doc, attempts            sql.RawBytes
		id, kind, relay, message string
		originator, destination  string
		state, reason, waits     string
		acct, due, held, tries   int64
	)
	if err := row.Scan(&id, &acct, &kind, &relay, &message, &originator, &destination, &doc, &state, &reason, &due, &waits, &held, &tries, &attempts); err != nil {
		return err
	}
	if err := sqlstore.Decode(doc, d); err != nil {
		return fmt.Errorf("delivery %s: %w", id, err)
	}
	d.ID, d.Account, d.Kind, d.Relay, d.MessageID = id, account.ID(acct), outbox.Kind(kind), relay, message
	d.Originator, d.Destination = originator, destination
	d.State, d.Reason, d.Waits, d.Tries = outbox.State(state), reason, outbox.Wait(waits), int(tries)
	d.NextAttemptAt, d.HeldUntil = sqlstore.Moment(due), sqlstore.Moment(held)
	if len(attempts) == 0 {
		return nil
	}
	list := "[" + strings.TrimSuffix(string(attempts), ",") + "]"
	if err := json.Unmarshal([]byte(list), &d.Attempts); err != nil {
		return fmt.Errorf("delivery %s: decode attempts: %w", id, err)
	}
	return nil
}

// scanRef reads a row of id and account.
func scanRef(row *sql.Rows, r *outbox.Ref) error {
	var acct int64
	err := row.Scan(&r.ID, &acct)
	r.Account = account.ID(acct)
	return err
}

// keys is deliveries as a batch.
func keys(refs []outbox.Ref) *sqlstore.Batch {
	rows := sqlstore.NewBatch("id text, account bigint")
	for _, r := range refs {
		rows.Add(r.ID, int64(r.Account))
	}
	return rows
}

// keysOf is the keys of deliveries as a batch.
func keysOf(ds []outbox.Delivery) *sqlstore.Batch {
	rows := sqlstore.NewBatch("id text, account bigint")
	for i := range ds {
		rows.Add(ds[i].ID, int64(ds[i].Account))
	}
	return rows
}
