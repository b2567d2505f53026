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

// balance is the model of an account's credit. changes are lines by the id of the change.
type balance struct {
	credits int64
	changes map[string]string
	lines   []string
}

func (b *balance) change(id string, credits int64) string {
	if line, found := b.changes[id]; found {
		return line
	}
	if b.credits+credits < 0 {
		return relay.KindNoCredit.String()
	}
	b.credits += credits
	line := fmt.Sprintf("%d: %+d = %d", len(b.lines)+1, credits, b.credits)
	b.lines = append(b.lines, line)
	if id != "" {
		b.changes[id] = line
	}
	return line
}

func entryLine(e credit.Entry) string {
	return fmt.Sprintf("%d: %+d = %d", e.Sequence, e.Credits, e.Balance)
}

func creditModel() machine[balance] {
	return machine[balance]{
		begin: func(ctx context.Context, r *recordstest.Records, acct relay.AccountID) (balance, error) {
			b := balance{changes: map[string]string{}}
			b.change(string(credit.Opened), 3)
			return b, r.Credit.Open(ctx, acct, 3, dbtest.At(0))
		},
		clone: func(b balance) balance {
			b.changes, b.lines = maps.Clone(b.changes), append([]string(nil), b.lines...)
			return b
		},
		draw: drawChange,
		read: func(ctx context.Context, r *recordstest.Records, _ balance, acct relay.AccountID) (string, error) {
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
		show: func(b balance) string { return fmt.Sprintf("%d credits: %s", b.credits, strings.Join(b.lines, ", ")) },
	}
}

// drawChange draws a charge or a refund. Some have the id of an earlier change, like a repeated
// request.
func drawChange(t *rapid.T, _ balance, acct relay.AccountID, now float64) op[balance] {
	changedAt := dbtest.At(now)
	credits := rapid.Int64Range(-4, 4).Draw(t, "credits")
	if rapid.IntRange(0, 9).Draw(t, "kind") == 0 {
		return newOp[balance](
			fmt.Sprintf("set to %d", max(credits, 0)),
			func(b *balance) string { b.change("", max(credits, 0)-b.credits); return "" },
			func(ctx context.Context, r *recordstest.Records) (string, error) {
				return "", r.Credit.Set(ctx, acct, max(credits, 0), changedAt)
			},
		)
	}
	id := fmt.Sprint("change-", rapid.IntRange(1, 40).Draw(t, "id"))
	return newOp[balance](
		fmt.Sprintf("%s by %d", id, credits),
		func(b *balance) string { return b.change(id, credits) },
		func(ctx context.Context, r *recordstest.Records) (string, error) {
			e, err := r.Credit.Apply(ctx, credit.Change{ID: id, Account: acct, Credits: credits, Reason: credit.Lookup, At: changedAt})
			return kindOf(entryLine(e), err)
		},
	)
}
