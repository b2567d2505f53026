package iot

import (
	"strings"
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

// The statistics of PostgreSQL are of a time when no alarm was raised.
func TestRaisedAlarmsAreCountedByDevice(t *testing.T) {
	dbtest.OnEvery(t, func(t *testing.T, open func(t *testing.T) *db.DB) {
		database := open(t)
		alarms := func(prefix, state string) {
			t.Helper()
			relaytest.NoError(t, database.Run(t.Context(), "test", `
INSERT INTO alarm (account, id, rule, device, state, raised, raised_by, doc)
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
SELECT 1, $1 || CAST(i AS TEXT), 'r', 'd' || CAST(i % 50 AS TEXT), $2, i, '', '{}' FROM n`, prefix, state))
		}
		alarms("c", "cleared")
		relaytest.NoError(t, database.Run(t.Context(), "test", "ANALYZE alarm"))
		alarms("r", "raised")
		of := func(acct relay.AccountID, id string) Ref { return Ref{Account: acct, ID: id} }
		got, err := newStore(database).RaisedAlarms(t.Context(), []Ref{of(1, "d1"), of(1, "none"), of(2, "d1"), of(1, "d2")})
		relaytest.NoError(t, err)
		relaytest.Equal(t, "raised alarms", got, map[Ref]int{of(1, "d1"): 100, of(1, "d2"): 100})
		if database.Engine() == "sqlite" {
			return
		}
		rows := "FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY AS batch(account, device, n)"
		statement := strings.Replace(raisedAlarms, "FROM batch", rows, 1)
		plan := dbtest.Plan(t, database, statement, "{1,1}", "{d1,d2}")
		if !strings.Contains(plan, "(device = ") {
			t.Errorf("all raised alarms are read:\n%s", plan)
		}
	})
}
