package intake

import (
	"testing"

	"github.com/penstock/penstock/ingest/journal"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestNeedReturnsTheStrongestNeedOfARange(t *testing.T) {
	statuses := newStatuses(t)
	relaytest.NoError(t, statuses.Set(t.Context(), event.Uplink, []event.Status{
		{Seq: 5, State: event.Unrouted},
		{Seq: 15, State: event.Quarantined},
		{Seq: 25, State: event.Pending},
		{Seq: 26, State: event.Quarantined},
	}))
	need := Need(event.Uplink, statuses.Statuses)
	for name, tc := range map[string]struct {
		firstSeq, lastSeq uint64
		want              journal.Need
	}{
		"processed entries":                          {1, 4, journal.NotNeeded},
		"an unrouted entry":                          {1, 14, journal.NotNeeded},
		"a quarantined entry":                        {15, 15, journal.ForReplay},
		"processed entries between quarantined ones": {16, 24, journal.NotNeeded},
		"a deferred and a quarantined entry":         {11, 30, journal.ToProcess},
		"a quarantined entry at the start":           {26, 30, journal.ForReplay},
	} {
		got, err := need(tc.firstSeq, tc.lastSeq)
		relaytest.NoError(t, err)
		relaytest.Equal(t, name, got, tc.want)
	}
	statuses.setDown(true)
	if _, err := need(1, 4); err == nil {
		t.Error("no error while the statuses cannot be read")
	}
}
