package message

import (
	"fmt"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db/dbtest"
)

func TestAccountsShareALease(t *testing.T) {
	many := func(n int, w dueCount) (all []dueCount) {
		for i := range n {
			w.account = relay.AccountID(i + 1)
			all = append(all, w)
		}
		return all
	}
	for _, tc := range []struct {
		name                   string
		all                    []dueCount
		whole, less            int // accounts
		wholeTakes, sharesTake int // messages
	}{
		{"nothing is due", nil, 0, 0, 0, 0},
		{"one account with less than is asked for", many(1, dueCount{n: 3}), 1, 0, 3, 0},
		{"one account with as much as was counted, or more", many(1, dueCount{n: 100, minimum: true}), 0, 1, 0, 100},
		{"a small account leaves the others more", append(many(2, dueCount{n: 100, minimum: true}), dueCount{account: 3, n: 2}), 1, 2, 2, 98},
		{"more accounts than messages are asked for", many(200, dueCount{n: 1}), 100, 0, 100, 0},
		{"many accounts with enough due", many(1000, dueCount{n: 100, minimum: true}), 0, 50, 0, 100},
		{"many accounts with little due", many(1000, dueCount{n: 2}), 50, 0, 100, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			whole, less := share(tc.all, 100)
			sum := func(all []dueCount) (n int) {
				for _, w := range all {
					n += w.n
				}
				return n
			}
			got := fmt.Sprint(len(whole), len(less), sum(whole), sum(less))
			if want := fmt.Sprint(tc.whole, tc.less, tc.wholeTakes, tc.sharesTake); got != want {
				t.Errorf("whole, shared, and messages of both: %s, want %s", got, want)
			}
		})
	}
}

// An account may have hundreds of thousands of messages due. PostgreSQL has no statistics
// of them when they have just come.
func TestAShareIsReadInTheOrderOfTheIndex(t *testing.T) {
	p := newFixture(t, dbtest.Shared(t).NewDatabase(t), 0)
	p.must(p.db.Run(t.Context(), "test", `
INSERT INTO message_state (account, id, part_count, scheduled, report, parts, pending, states, due, untold, expires, version)
SELECT 1, i, 1, 0, 0, '', 1, 1, i, 0, 0, 0 FROM generate_series(1, 20000) AS i`))
	if plan := dbtest.Plan(t, p.db, lockShare, 1, at(0), 500); strings.Contains(plan, "Sort") || !strings.Contains(plan, "message_due") {
		t.Errorf("want the first of the index message_due, got\n%s", plan)
	}
}
