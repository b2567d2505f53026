package jobs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/sqlstore"
)

// List returns jobs in the order of their creation.
func (s *Store) List(ctx context.Context, acct account.ID, f job.Filter, offset, limit int) ([]job.Job, int, error) {
	where, args := selected(acct, f, s.db.Now())
	total, err := sqlstore.Value[int](ctx, s.db, "jobs: count", "SELECT count(*) FROM job WHERE "+where, args...)
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
	query := fmt.Sprintf("SELECT %s FROM job WHERE %s ORDER BY %s LIMIT $%d OFFSET $%d", columns, where, order, len(args)+1, len(args)+2)
	found, err := sqlstore.List(ctx, s.db, "jobs: list", query, sqlstore.Into(fields), append(args, count, skip)...)
	if turned {
		slices.Reverse(found)
	}
	return found, total, err
}

// Find returns jobs of one or all accounts, newest first.
func (s *Store) Find(ctx context.Context, f job.Search) ([]job.Found, error) {
	where, args := "(expires = 0 OR expires > $1)", []any{s.db.Now()}
	add := func(condition string, value any) {
		args = append(args, value)
		where += fmt.Sprintf(" AND "+condition, len(args))
	}
	if f.Before != 0 {
		add("place < $%d", f.Before)
	}
	if f.Account != 0 {
		add("account = $%d", f.Account)
	}
	if f.State != "" {
		add("state = $%d", f.State)
	}
	if f.Kind != "" {
		add("kind = $%d", f.Kind)
	}
	args = append(args, f.Limit)
	query := fmt.Sprintf("SELECT place, %s FROM job WHERE %s ORDER BY place DESC LIMIT $%d", columns, where, len(args))
	return sqlstore.List(ctx, s.db, "jobs: find", query, sqlstore.Into(func(j *job.Found) []any {
		return append([]any{&j.Place}, fields(&j.Job)...)
	}), args...)
}

// selected is the condition of a filter, with its parameters. A name is what few
// jobs have: its index leads to them, and no other one is looked at.
func selected(acct account.ID, f job.Filter, now time.Time) (string, []any) {
	where := []string{"account = $1", "list = $2", "list <> ''", "(expires = 0 OR expires > $3)"}
	args := []any{acct, f.List, now}
	add := func(column, value string) {
		if value != "" {
			args = append(args, value)
			where = append(where, fmt.Sprintf("%s = $%d", column, len(args)))
		}
	}
	state, kind := "state", "kind"
	if f.Name != "" {
		where = append(where, "name <> ''")
		state, kind = "state || ''", "kind || ''"
	}
	add("name", f.Name)
	add(kind, string(f.Kind))
	add(state, string(f.State))
	return strings.Join(where, " AND "), args
}
