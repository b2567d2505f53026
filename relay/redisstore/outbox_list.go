package redisstore

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/outbox"
)

// defaultLimit is how long a page is that asks for no length.
const defaultLimit = 100

// List returns a page of deliveries, newest first. It walks the sets of all
// accounts side by side and looks only at what never changes, state and reason
// until a record matches; attempts are loaded for the page alone.
func (s *Outbox) List(ctx context.Context, f outbox.Filter) ([]outbox.Delivery, string, error) {
	if f.Limit <= 0 {
		f.Limit = defaultLimit
	}
	from, err := parseCursor(f.Cursor)
	if err != nil {
		return nil, "", err
	}
	w, err := s.walk(ctx, f, from)
	if err != nil {
		return nil, "", wrap("deliveries: list", err)
	}
	page, err := s.match(ctx, w, f)
	if err != nil {
		return nil, "", wrap("deliveries: list", err)
	}
	next := ""
	if len(page) > f.Limit {
		page = page[:f.Limit]
		next = page[f.Limit-1].String()
	}
	ds, err := s.load(ctx, page)
	return ds, next, wrap("deliveries: list", err)
}

// match walks until one more than a page is found or nothing is left.
func (s *Outbox) match(ctx context.Context, w walk, f outbox.Filter) ([]position, error) {
	var page []position
	size := f.Limit + 1
	for len(page) <= f.Limit {
		ps, err := w.next(ctx, size)
		if err != nil || len(ps) == 0 {
			return page, err
		}
		ds, err := s.heads(ctx, ps)
		if err != nil {
			return nil, err
		}
		for i := range ds {
			if ds[i].ID != "" && selects(f, &ds[i]) && len(page) <= f.Limit {
				page = append(page, ps[i])
			}
		}
		size = chunkSize
	}
	return page, nil
}

// heads loads records without their attempts; one that expired is zero.
func (s *Outbox) heads(ctx context.Context, ps []position) ([]outbox.Delivery, error) {
	cmds, err := s.db.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, at := range ps {
			p.HMGet(ctx, keyDelivery(at.account, at.id), "static", "state", "reason", "waits")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	ds := make([]outbox.Delivery, len(ps))
	for i, c := range cmds {
		v := c.(*redis.SliceCmd).Val()
		if v[0] == nil {
			continue
		}
		if ds[i], err = decodeDelivery(map[string]string{
			"static": text(v[0]), "state": text(v[1]), "reason": text(v[2]), "waits": text(v[3]),
		}); err != nil {
			return nil, err
		}
	}
	return ds, nil
}

// text is a field's value, empty if there is none.
func text(v any) string {
	s, _ := v.(string)
	return s
}

// load loads whole records; one that expired meanwhile is left out.
func (s *Outbox) load(ctx context.Context, ps []position) ([]outbox.Delivery, error) {
	if len(ps) == 0 {
		return nil, nil
	}
	cmds, err := s.db.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, at := range ps {
			p.HGetAll(ctx, keyDelivery(at.account, at.id))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	ds := make([]outbox.Delivery, 0, len(ps))
	for _, c := range cmds {
		fields := c.(*redis.MapStringStringCmd).Val()
		if len(fields) == 0 {
			continue
		}
		d, err := decodeDelivery(fields)
		if err != nil {
			return nil, err
		}
		ds = append(ds, d)
	}
	return ds, nil
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

// position is a place in the order of lists: newest first, then by id and
// account, downwards.
type position struct {
	ms      int64
	id      string
	account account.ID
}

// after orders positions as lists do.
func after(a, b position) int {
	return cmp.Or(cmp.Compare(b.ms, a.ms), cmp.Compare(b.id, a.id), cmp.Compare(b.account, a.account))
}

// String returns the position as a cursor.
func (p position) String() string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %d %s", p.ms, p.account, p.id))
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
	ms, err1 := strconv.ParseInt(parts[0], 10, 64)
	acct, err2 := strconv.ParseInt(parts[1], 10, 64)
	if err1 != nil || err2 != nil {
		return nil, relay.Invalid("cursor", "This is not a cursor of this list.")
	}
	return &position{ms: ms, id: parts[2], account: account.ID(acct)}, nil
}
