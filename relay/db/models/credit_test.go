package models_test

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"pgregory.net/rapid"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/credit"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/recordstest"
)

// modelBalance is the model of an account's credit. changes are lines by the id of the change.
type modelBalance struct {
	credits int64
	changes map[string]string
	lines   []string
}

func (m *modelBalance) change(id string, credits int64) string {
	if line, found := m.changes[id]; found {
		return line
	}
	if m.credits+credits < 0 {
		return relay.KindNoCredit.String()
	}
	m.credits += credits
	line := fmt.Sprintf("%d: %+d = %d", len(m.lines)+1, credits, m.credits)
	m.lines = append(m.lines, line)
	if id != "" {
		m.changes[id] = line
	}
	return line
}

func entryLine(e credit.Entry) string {
	return fmt.Sprintf("%d: %+d = %d", e.Sequence, e.Credits, e.Balance)
}

func creditModel() machine[modelBalance] {
	return machine[modelBalance]{
		begin: func(ctx context.Context, r *recordstest.Records, acct relay.AccountID) (modelBalance, error) {
			b := modelBalance{changes: map[string]string{}}
			b.change(string(credit.Opened), 3)
			return b, r.Credit.Open(ctx, acct, 3, dbtest.TimeAt(0))
		},
		clone: func(b modelBalance) modelBalance {
			b.changes, b.lines = maps.Clone(b.changes), append([]string(nil), b.lines...)
			return b
		},
		draw: drawCreditOp,
		read: func(ctx context.Context, r *recordstest.Records, _ modelBalance, acct relay.AccountID) (string, error) {
			n, err := r.Credit.Balance(ctx, acct)
			if err != nil {
				return "", err
			}
			entries, err := r.Credit.Entries(ctx, acct, 0, 1000)
			lines := make([]string, len(entries))
			for i, e := range entries {
				lines[len(entries)-1-i] = entryLine(e)
			}
			return fmt.Sprintf("%d credits: %s", n, strings.Join(lines, ", ")), err
		},
		show: func(b modelBalance) string {
			return fmt.Sprintf("%d credits: %s", b.credits, strings.Join(b.lines, ", "))
		},
	}
}

// drawCreditOp draws a charge or a refund. Some have the id of an earlier change, like a repeated
// request.
func drawCreditOp(t *rapid.T, _ modelBalance, acct relay.AccountID, now float64) op[modelBalance] {
	changedAt := dbtest.TimeAt(now)
	credits := rapid.Int64Range(-4, 4).Draw(t, "credits")
	if rapid.IntRange(0, 9).Draw(t, "kind") == 0 {
		return newOp[modelBalance](
			fmt.Sprintf("set to %d", max(credits, 0)),
			func(b *modelBalance) string { b.change("", max(credits, 0)-b.credits); return "" },
			func(ctx context.Context, r *recordstest.Records) (string, error) {
				return "", r.Credit.Set(ctx, acct, max(credits, 0), changedAt)
			},
		)
	}
	id := fmt.Sprint("change-", rapid.IntRange(1, 40).Draw(t, "id"))
	return newOp[modelBalance](
		fmt.Sprintf("%s by %d", id, credits),
		func(b *modelBalance) string { return b.change(id, credits) },
		func(ctx context.Context, r *recordstest.Records) (string, error) {
			e, err := r.Credit.Apply(ctx, credit.Change{ID: id, Account: acct, Credits: credits, Reason: credit.Lookup, At: changedAt})
			return kindOf(entryLine(e), err)
		},
	)
}
