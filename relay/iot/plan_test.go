package iot

import (
	"fmt"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

// The statistics of PostgreSQL date from before any alarm was raised.
func TestRaisedAlarmsAreCountedByDevice(t *testing.T) {
	dbtest.OnEvery(t, func(t *testing.T, open func(t *testing.T) *db.DB) {
		database := open(t)
		insertAlarms := func(prefix, state string) {
			t.Helper()
			relaytest.NoError(t, database.Run(t.Context(), "test", `
INSERT INTO alarm (account, id, rule, device, state, raised, raised_by, doc)
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
SELECT 1, $1 || CAST(i AS TEXT), 'r', 'd' || CAST(i % 50 AS TEXT), $2, i, '', '{}' FROM n`, prefix, state))
		}
		insertAlarms("c", "cleared")
		relaytest.NoError(t, database.Run(t.Context(), "test", "ANALYZE alarm"))
		insertAlarms("r", "raised")
		ref := func(acct relay.AccountID, id string) Ref { return Ref{Account: acct, ID: id} }
		s := newStore(database)
		for i, id := range []string{"d1", "d2", "calm"} {
			relaytest.NoError(t, s.CreateDevice(t.Context(), 1, testDevice(id, fmt.Sprint("device ", i)), nil))
		}
		found, err := s.DevicesWithAlarms(t.Context(), []Ref{ref(1, "d1"), ref(1, "none"), ref(2, "d1"), ref(1, "d2"), ref(1, "calm")})
		relaytest.NoError(t, err)
		var got []string
		for _, d := range found {
			got = append(got, fmt.Sprint(d.Account, d.ID, " ", d.Alarms))
		}
		relaytest.Equal(t, "the devices and their numbers of raised alarms", got, []string{"1d1 100", "0 0", "0 0", "1d2 100", "1calm 0"})
		if database.Engine() == "sqlite" {
			return
		}
		rows := "FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY AS batch(account, id, n)"
		statement := strings.Replace(devicesWithAlarms, "FROM batch", rows, 1)
		plan := dbtest.Plan(t, database, statement, "{1,1}", "{d1,d2}")
		if !strings.Contains(plan, "(device = ") {
			t.Errorf("the plan has no condition on the device:\n%s", plan)
		}
	})
}
