package outbox

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

const deleteAttempts = `DELETE FROM delivery_attempt WHERE (delivery, account) IN (SELECT id, account FROM batch)`

// read runs a statement that selects columns of deliveries, and loads their attempts. An
// attempt that ends meanwhile may be there although its outcome is not.
func read(ctx context.Context, c db.Conn, label, query string, args ...any) ([]Delivery, error) {
	ds, err := db.List(ctx, c, label, query, fields, args...)
	if err != nil {
		return nil, err
	}
	deliveries := make(map[Ref]*Delivery, len(ds))
	for i := range ds {
		deliveries[refOf(&ds[i])] = &ds[i]
	}
	type row struct {
		Ref
		Attempt
	}
	rows, err := db.List(ctx, c, label, `
SELECT a.delivery, a.account, a.at, a.duration, a.status, a.error, a.reason, a.response
FROM batch AS b JOIN delivery_attempt AS a ON a.delivery = b.id AND a.account = b.account
ORDER BY b.n, a.at`, func(r *row) []any {
		return []any{&r.ID, &r.Account, db.NanoTime(&r.At), &r.Duration, &r.Status, &r.Error, &r.Attempt.Reason, &r.Response}
	}, keysOf(ds))
	for _, r := range rows {
		d := deliveries[r.Ref]
		d.Attempts = append(d.Attempts, r.Attempt)
	}
	return ds, err
}

// readOne loads a delivery with its attempts.
func readOne(ctx context.Context, c db.Conn, label string, acct relay.AccountID, id string, now time.Time) (Delivery, error) {
	ds, err := read(ctx, c, label, `
SELECT `+columns+`FROM delivery AS d
WHERE d.id = $1 AND d.account = $2 AND (d.expires = 0 OR d.expires > $3)`, id, acct, now)
	if err == nil && len(ds) == 0 {
		err = db.NotFound(label)
	}
	if err != nil {
		return Delivery{}, err
	}
	return ds[0], nil
}

// saveAttempts saves the attempts of a round, and sets skipped of the outcomes whose attempts
// were saved before: they have been recorded.
func saveAttempts(ctx context.Context, tx *db.Tx, round []ending) error {
	rows := db.NewBatch("id, account, at, duration, status, error, reason, response")
	for i := range round {
		e := &round[i]
		e.skipped = !e.Attempt.At.IsZero()
		if a := &e.Attempt; e.skipped {
			rows.Add(e.ID, e.Account, db.Nanos(a.At), int64(a.Duration), a.Status, a.Error, a.Reason, a.Response)
		}
	}
	saved, err := db.List(ctx, tx, finishNoun, `
INSERT INTO delivery_attempt (delivery, account, at, duration, status, error, reason, response)
SELECT id, account, at, duration, status, error, reason, response FROM batch WHERE true ORDER BY n
ON CONFLICT (delivery, account, at) DO NOTHING
RETURNING delivery, account`, refFields, rows)
	isNew := refSet(saved)
	for i := range round {
		e := &round[i]
		e.skipped = e.skipped && !isNew[e.ref()]
	}
	return err
}

func refSet(refs []Ref) map[Ref]bool {
	set := make(map[Ref]bool, len(refs))
	for _, ref := range refs {
		set[ref] = true
	}
	return set
}
