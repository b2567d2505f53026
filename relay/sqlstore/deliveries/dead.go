package deliveries

import (
	"context"
	"strings"

	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/sqlstore"
)

// separator stands between the texts of a dead delivery. No query holds it.
const separator = "\x1f"

const (
	setDead = `INSERT INTO delivery_dead (id, account, created, text)
SELECT id, account, created, text FROM batch WHERE true
ON CONFLICT (id, account) DO UPDATE SET text = excluded.text`

	unsetDead = `DELETE FROM delivery_dead WHERE (id, account) IN (SELECT id, account FROM batch)`
)

// bury makes deliveries that are dead now searchable.
func bury(ctx context.Context, tx *sqlstore.Tx, round []ending) error {
	var refs []outbox.Ref
	for i := range round {
		if e := &round[i]; e.moved && e.State == outbox.Dead {
			refs = append(refs, e.ref())
		}
	}
	ds, err := sqlstore.List(ctx, tx, "dead deliveries", heads, scan, int64(0), keys(refs))
	if err != nil {
		return err
	}
	rows := sqlstore.NewBatch("id text, account bigint, created bigint, text text")
	for i := range ds {
		d := &ds[i]
		rows.Add(d.ID, int64(d.Account), d.CreatedAt, strings.ToLower(strings.Join(texts(d), separator)))
	}
	_, err = tx.Exec(ctx, "dead deliveries", setDead, rows)
	return err
}
