package deliveries

import (
	"context"
	"slices"
	"strings"

	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/sqlstore"
)

// searchDead finds dead deliveries with three texts anywhere in theirs.
const searchDead = `SELECT created, id, account FROM delivery_dead
WHERE (created, id, account) < ($1, $2, $3) AND created >= $4 AND (CAST($5 AS BIGINT) = 0 OR account = $5)
  AND text LIKE $6 ESCAPE '\' AND text LIKE $7 ESCAPE '\' AND text LIKE $8 ESCAPE '\'
ORDER BY created DESC, id DESC, account DESC LIMIT $9`

// search finds dead deliveries by their texts. It may find one that has a text
// elsewhere than the filter says.
func (s *Store) search(f outbox.Filter) finder {
	return func(ctx context.Context, after position, n int) ([]position, error) {
		return sqlstore.List(ctx, s.db, "deliveries: search", searchDead, scanPosition, after.ms, after.id, int64(after.account),
			oldest(f), int64(f.Account), pattern(f.Query), pattern(f.Reason), pattern(f.Target), int64(n))
	}
}

// pattern is what LIKE matches when a text holds a part.
func pattern(part string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(strings.ToLower(part)) + "%"
}

// selects reports whether a filter wants a delivery.
func selects(f outbox.Filter, d *outbox.Delivery) bool {
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
		!holds(d.Target(), f.Target):
		return false
	}
	return f.Query == "" || slices.ContainsFunc(texts(d), func(s string) bool { return holds(s, f.Query) })
}

// texts is where a query is looked for.
func texts(d *outbox.Delivery) []string {
	out := []string{d.ID, d.MessageID, d.Target(), d.Reason}
	if d.Request != nil {
		out = append(out, string(d.Request.Body))
	}
	if d.SIM != nil {
		out = append(out, d.SIM.Text)
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
