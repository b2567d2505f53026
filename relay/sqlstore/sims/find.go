package sims

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/penstock/penstock/relay/sim"
	"github.com/penstock/penstock/relay/sqlstore"
)

// Find returns SIMs of one or all accounts, by account and ICCID. A text that few SIMs
// hold has it read all of them.
func (s *SIMs) Find(ctx context.Context, f sim.Search) ([]sim.Found, error) {
	where, args := "(account, iccid) > ($1, $2)", []any{f.After.Account, f.After.ICCID}
	add := func(condition string, value any) {
		args = append(args, value)
		where += " AND " + strings.ReplaceAll(condition, "?", fmt.Sprintf("$%d", len(args)))
	}
	if f.Account != 0 {
		add("account = ?", f.Account)
	}
	if f.State != "" {
		add("state = ?", f.State)
	}
	if f.Pool != "" {
		add("pool = ?", f.Pool)
	}
	switch {
	case f.Text == "":
	case strings.Trim(f.Text, "0123456789") == "":
		add("(iccid LIKE ? OR imsi LIKE ? OR msisdn LIKE ?)", "%"+f.Text+"%")
	default:
		add("(pool = ? OR subscriber = ?)", f.Text)
	}
	args = append(args, f.Limit)
	query := fmt.Sprintf("SELECT account, %s FROM sim WHERE %s ORDER BY account, iccid LIMIT $%d", columns, where, len(args))
	return sqlstore.List(ctx, s.db, "SIMs", query, scanFound, args...)
}

func scanFound(row *sql.Rows, f *sim.Found) error {
	return scanInto(row, &f.SIM, append([]any{&f.Account}, fields(&f.SIM)...))
}
