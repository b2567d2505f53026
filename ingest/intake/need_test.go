package intake

import (
	"testing"

	"github.com/penstock/penstock/ingest/journal"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestTheNeedOfEachRange(t *testing.T) {
	statuses := newStatuses(t)
	relaytest.NoError(t, statuses.Set(t.Context(), event.Uplink, []event.Status{
		{Seq: 5, State: event.Unrouted},
		{Seq: 15, State: event.Quarantined},
		{Seq: 25, State: event.Pending},
		{Seq: 26, State: event.Quarantined},
	}))
	need := Need(event.Uplink, statuses.Statuses)
	for name, tc := range map[string]struct {
		first, last uint64
		want        journal.Need
	}{
		"what is done":                {1, 4, journal.NotNeeded},
		"what has no relay":           {1, 14, journal.NotNeeded},
		"what is quarantined":         {15, 15, journal.ForReplay},
		"what is between":             {16, 24, journal.NotNeeded},
		"what is deferred":            {11, 30, journal.ToProcess},
		"what is quarantined, by end": {26, 30, journal.ForReplay},
	} {
		got, err := need(tc.first, tc.last)
		relaytest.NoError(t, err)
		relaytest.Equal(t, name, got, tc.want)
	}
	statuses.setDown(true)
	if _, err := need(1, 4); err == nil {
		t.Error("no error while the statuses cannot be read")
	}
}
