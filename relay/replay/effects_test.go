package replay

import (
	"testing"

	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestEffectsAreCounted(t *testing.T) {
	dbtest.Each(t, func(database *db.DB) *db.DB { return database }, map[string]func(*testing.T, *db.DB){"deliveries and alarms": countsEffects})
}

func countsEffects(t *testing.T, database *db.DB) {
	ctx, s := t.Context(), NewStore(database)
	for id, message := range map[string]string{"d1": "n1-s1", "d2": "n1-s1.1", "d3": "n1-s10", "d4": "a1", "d5": "a2", "d6": ""} {
		relaytest.NoError(t, database.Run(ctx, "test", `
			INSERT INTO delivery (id, account, created, kind, relay, message_id, originator, destination, doc, state, due, leased)
			VALUES ($1, 1, 1, 'relay', '', $2, '', '', '{}', 'queued', 0, 0)`, id, message))
	}
	for id, records := range map[string][2]string{"a1": {"n1-u2.3", ""}, "a2": {"n1-u1", "n1-u2"}, "a3": {"n1-u3", ""}} {
		relaytest.NoError(t, database.Run(ctx, "test", `
			INSERT INTO alarm (account, id, rule, device, state, raised, raised_by, cleared_by, doc)
			VALUES (1, $1, '', '', 'raised', 1, $2, $3, '{}')`, id, records[0], records[1]))
	}
	for _, tc := range []struct {
		name string
		ids  []string
		want Counts
	}{
		{"no events", nil, Counts{}},
		{"a message and a message of a post", []string{"n1-s1"}, Counts{Deliveries: 2}},
		{"frames that raise and clear alarms", []string{"n1-u2"}, Counts{Deliveries: 2, Alarms: 1}},
		{"several events", []string{"n1-s1", "n1-s10", "n1-u3"}, Counts{Deliveries: 3, Alarms: 1}},
	} {
		relaytest.Equal(t, tc.name, relaytest.Must(s.Count(ctx, tc.ids))(t), tc.want)
	}
}
