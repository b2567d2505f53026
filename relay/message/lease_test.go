package message

import (
	"fmt"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db/dbtest"
)

func TestAccountsShareALease(t *testing.T) {
	many := func(n int, c dueCount) (counts []dueCount) {
		for i := range n {
			c.account = relay.AccountID(i + 1)
			counts = append(counts, c)
		}
		return counts
	}
	for _, tc := range []struct {
		name                      string
		counts                    []dueCount
		complete, partial         int // accounts
		fromComplete, fromPartial int // messages
	}{
		{"nothing is due", nil, 0, 0, 0, 0},
		{"one account with fewer messages than the limit", many(1, dueCount{n: 3}), 1, 0, 3, 0},
		{"one account with the limit or more", many(1, dueCount{n: 100, stopped: true}), 0, 1, 0, 100},
		{"a small account leaves the other accounts more", append(many(2, dueCount{n: 100, stopped: true}), dueCount{account: 3, n: 2}), 1, 2, 2, 98},
		{"more accounts than the limit", many(200, dueCount{n: 1}), 100, 0, 100, 0},
		{"many accounts with many messages due", many(1000, dueCount{n: 100, stopped: true}), 0, 50, 0, 100},
		{"many accounts with few messages due", many(1000, dueCount{n: 2}), 50, 0, 100, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			complete, partial := share(tc.counts, 100)
			sum := func(counts []dueCount) (n int) {
				for _, c := range counts {
					n += c.n
				}
				return n
			}
			got := fmt.Sprint(len(complete), len(partial), sum(complete), sum(partial))
			if want := fmt.Sprint(tc.complete, tc.partial, tc.fromComplete, tc.fromPartial); got != want {
				t.Errorf("complete and partial accounts, messages of each: %s, want %s", got, want)
			}
		})
	}
}

// An account may have hundreds of thousands of messages due. PostgreSQL has no statistics
// about messages that were just inserted.
func TestAShareIsReadInTheOrderOfTheIndex(t *testing.T) {
	f := newFixture(t, dbtest.Shared(t).NewDatabase(t), 0)
	f.must(f.db.Run(t.Context(), "test", `
INSERT INTO message_state (account, id, part_count, scheduled, report, parts, pending, states, due, untold, expires, version)
SELECT 1, i, 1, 0, 0, '', 1, 1, i, 0, 0, 0 FROM generate_series(1, 20000) AS i`))
	if plan := dbtest.Plan(t, f.db, lockShare, 1, timeAt(0), 500); strings.Contains(plan, "Sort") || !strings.Contains(plan, "message_due") {
		t.Errorf("the plan does not read the index message_due in order:\n%s", plan)
	}
}
