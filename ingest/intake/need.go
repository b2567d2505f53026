package intake

import (
	"context"
	"time"

	"github.com/penstock/penstock/ingest/journal"
	"github.com/penstock/penstock/relay/event"
)

// needWithin is how long the statuses may take to say what a journal needs.
const needWithin = 2 * time.Second

// Need tells a journal which of its records are needed although the checkpoint has
// passed them: deferred events are still to be processed, and quarantined events wait
// for a replay.
func Need(kind event.Kind, statuses event.Statuses) func(first, last uint64) (journal.Need, error) {
	return func(first, last uint64) (journal.Need, error) {
		ctx, cancel := context.WithTimeout(context.Background(), needWithin)
		defer cancel()
		for _, one := range []struct {
			state event.State
			need  journal.Need
		}{{event.Pending, journal.ToProcess}, {event.Quarantined, journal.ForReplay}} {
			newest, err := statuses.List(ctx, kind, one.state, last+1, 1)
			if err != nil || len(newest) > 0 && newest[0].Seq >= first {
				return one.need, err
			}
		}
		return journal.NotNeeded, nil
	}
}
