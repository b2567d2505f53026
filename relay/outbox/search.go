package outbox

import (
	"context"
	"slices"
	"strings"

	"github.com/penstock/penstock/relay/db"
)

// separator stands between the texts of a dead delivery. No query contains it.
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
		f.Waits != "" && f.Waits != d.Waits,
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

// texts returns the texts that a query is looked for in. The table delivery_dead has them
// in plain, so they lack what may be secret of the target; filters by target compare the
// masked target.
func texts(d *Delivery) []string {
	list := []string{d.ID, d.MessageID, SearchableTarget(d.Target()), d.Reason}
	if d.Request != nil {
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

// containsFold reports whether a text contains a part, in any case.
func containsFold(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}
