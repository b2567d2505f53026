package rules

import (
	"strings"
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/sqlstore"
	"github.com/penstock/penstock/relay/sqlstore/sqltest"
)

// PostgreSQL has no statistics of alarms that have just been raised, many thousands when a
// network fails.
func TestAlarmsAreClearedByTheirKeys(t *testing.T) {
	db := sqltest.Open(t, sqlstore.Options{URL: sqltest.Shared(t).NewDatabase(t)})
	relaytest.NoError(t, db.Run(t.Context(), "test", `
INSERT INTO alarm (account, id, rule, device, state, raised, raised_by, doc)
SELECT 1, 'a' || i, 'r', 'd' || i, 'raised', i, '', '{}' FROM generate_series(1, 5000) AS i`))
	rows := "FROM (SELECT account, id, 1 AS cleared, '' AS cleared_by FROM unnest($1::bigint[], $2::text[]) AS u(account, id)) AS b"
	plan := sqltest.Plan(t, db, strings.Replace(clearAlarms, "FROM batch AS b", rows, 1), "{1,1}", "{a1,a2}")
	if !strings.Contains(plan, "alarm_pkey") {
		t.Errorf("want the index of the keys, got\n%s", plan)
	}
}
