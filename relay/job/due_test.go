package job

import (
	"strings"
	"testing"

	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

// Every gateway lists due jobs each second, while hundreds of thousands may be due.
func TestDueJobsAreReadInTheOrderOfTheIndex(t *testing.T) {
	dbtest.OnEvery(t, func(t *testing.T, open func(t *testing.T) *db.DB) {
		database := open(t)
		relaytest.NoError(t, database.Run(t.Context(), "test", `
INSERT INTO job (account, id, list, kind, name, doc, state, due, tries, updated, expires, error, result, settled)
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
SELECT i % 3, 'j' || CAST(i AS TEXT), '', '', '', '{}', 'queued', i, 0, 0, 0, '', '', '' FROM n`))
		refs, err := NewStore(database).Due(t.Context(), timeAt(0), 4)
		if err != nil || len(refs) != 3*4 || refs[0].ID != "j1" || refs[11].ID != "j12" {
			t.Errorf("due jobs = %v, error %v; want the first four of each account", refs, err)
		}
		if plan := dbtest.Plan(t, database, leaseJob, 1, 1, 1, "j1", 1); strings.Contains(plan, "job_due") {
			t.Errorf("the lease reads the index job_due, want the primary key:\n%s", plan)
		}
		for _, plan := range []string{dbtest.Plan(t, database, dueAccounts, timeAt(0)), dbtest.Plan(t, database, dueOfAccount, 1, timeAt(0), 4)} {
			for _, word := range []string{"Sort", "TEMP B-TREE", "Seq Scan", "SCAN job"} {
				if strings.Contains(plan, word) {
					t.Errorf("the plan contains %q, want reads in the order of the index only:\n%s", word, plan)
				}
			}
		}
	})
}
