package outbox

import (
	"context"
	"slices"
	"strings"

	"github.com/penstock/penstock/relay/db"
)

// separator stands between the texts of a dead delivery. No query holds it.
const separator = "\x1f"

const unsetDead = `DELETE FROM delivery_dead WHERE (id, account) IN (SELECT id, account FROM batch)`

// indexDead saves the texts by which deliveries that are dead now are searched.
func indexDead(ctx context.Context, tx *db.Tx, round []ending) error {
	var refs []Ref
	for i := range round {
		if e := &round[i]; e.moved && e.State == Dead {
			refs = append(refs, e.ref())
		}
	}
	ds, err := db.List(ctx, tx, "dead deliveries", load, fields, 0, keys(refs))
	if err != nil {
		return err
	}
	rows := db.BatchOf("id, account, created, text", ds, func(d *Delivery) []any {
		return []any{d.ID, d.Account, db.Nanos(d.CreatedAt), strings.ToLower(strings.Join(texts(d), separator))}
	})
	return tx.Run(ctx, "dead deliveries", db.UpsertAll("delivery_dead", "id, account", "created, text"), rows)
}

// selects reports whether a filter wants a delivery.
func selects(f Filter, d *Delivery) bool {
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
		!holds(d.Reason, f.Reason),
		!holds(MaskTarget(d.Target()), f.Target):
		return false
	}
	return f.Query == "" || slices.ContainsFunc(texts(d), func(s string) bool { return holds(s, f.Query) })
}

// texts is where a query is looked for.
func texts(d *Delivery) []string {
	// delivery_dead has these texts in plain; filters by target look at it as it is shown.
	out := []string{d.ID, d.MessageID, SearchableTarget(d.Target()), d.Reason}
	if d.Request != nil {
		out = append(out, string(d.Request.Body))
	}
	if d.SIM != nil {
		out = append(out, d.SIM.Text)
	}
	if d.SMS != nil {
		out = append(out, d.SMS.Text)
	}
	if d.Mail != nil {
		out = append(out, d.Mail.Subject, d.Mail.Text)
	}
	return out
}

// holds reports whether s has part in it, in any case.
func holds(s, part string) bool {
	return part == "" || strings.Contains(strings.ToLower(s), strings.ToLower(part))
}
