package jobs

import (
	"context"
	"slices"
	"time"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/sqlstore"
)

// List returns jobs in the order of their creation.
func (s *Store) List(ctx context.Context, acct account.ID, f job.Filter, offset, limit int) ([]job.Job, int, error) {
	w := selected(acct, f, s.db.Now())
	total, err := sqlstore.Value[int](ctx, s.db, "jobs: count", "SELECT count(*) FROM job"+w.String(), w.Args()...)
	if err != nil || offset >= total {
		return nil, total, err
	}
	order, skip := "place", offset
	count := min(limit, total-offset)
	nearer := total - offset - count // records after the page
	turned := nearer < offset
	if turned {
		skip = nearer
	}
	if f.Newest != turned {
		order = "place DESC"
	}
	query := "SELECT " + columns + " FROM job" + w.String() + " ORDER BY " + order + " LIMIT " + w.Arg(count) + " OFFSET " + w.Arg(skip)
	found, err := sqlstore.List(ctx, s.db, "jobs: list", query, fields, w.Args()...)
	if turned {
		slices.Reverse(found)
	}
	return found, total, err
}

// Find returns jobs of one or all accounts, newest first.
func (s *Store) Find(ctx context.Context, f job.Search) ([]job.Found, error) {
	var w sqlstore.Where
	w.And("(expires = 0 OR expires > ?)", s.db.Now())
	w.AndSet("place < ?", f.Before)
	w.AndSet("account = ?", f.Account)
	w.AndSet("state = ?", f.State)
	w.AndSet("kind = ?", f.Kind)
	return sqlstore.Page(ctx, s.db, "jobs: find", "SELECT place, "+columns+" FROM job", &w, "place DESC", f.Limit, func(j *job.Found) []any {
		return append([]any{&j.Place}, fields(&j.Job)...)
	})
}

// selected is the condition of a filter. Few jobs have a name: its index leads to them,
// and no other one is read.
func selected(acct account.ID, f job.Filter, now time.Time) (w sqlstore.Where) {
	w.And("account = ?", acct)
	w.And("list = ?", f.List)
	w.And("list <> ''")
	w.And("(expires = 0 OR expires > ?)", now)
	state, kind := "state", "kind"
	if f.Name != "" {
		w.And("name <> ''")
		state, kind = "state || ''", "kind || ''"
	}
	w.AndSet("name = ?", f.Name)
	w.AndSet(kind+" = ?", f.Kind)
	w.AndSet(state+" = ?", f.State)
	return w
}
