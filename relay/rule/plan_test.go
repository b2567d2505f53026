package rule

import (
	"strings"
	"testing"

	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

// When a network fails, thousands of alarms are raised at once. PostgreSQL has no statistics of them
// yet.
func TestAlarmsAreClearedByTheirKeys(t *testing.T) {
	database := dbtest.Open(t, db.Options{URL: dbtest.Shared(t).NewDatabase(t)})
	relaytest.NoError(t, database.Run(t.Context(), "test", `
INSERT INTO alarm (account, id, rule, device, state, raised, raised_by, doc)
SELECT 1, 'a' || i, 'r', 'd' || i, 'raised', i, '', '{}' FROM generate_series(1, 5000) AS i`))
	rows := "FROM (SELECT account, id, 1 AS cleared, '' AS cleared_by FROM unnest($1::bigint[], $2::text[]) AS u(account, id)) AS b"
	plan := dbtest.Plan(t, database, strings.Replace(clearAlarms, "FROM batch AS b", rows, 1), "{1,1}", "{a1,a2}")
	if !strings.Contains(plan, "alarm_pkey") {
		t.Errorf("the plan does not use the primary key:\n%s", plan)
	}
}
