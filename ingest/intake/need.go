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
// for a replay. If the statuses cannot be read, all are needed.
func Need(kind event.Kind, statuses event.Statuses) func(first, last uint64) journal.Need {
	return func(first, last uint64) journal.Need {
		ctx, cancel := context.WithTimeout(context.Background(), needWithin)
		defer cancel()
		holds := func(s event.State) (bool, error) {
			newest, err := statuses.List(ctx, kind, s, last+1, 1)
			return len(newest) > 0 && newest[0].Seq >= first, err
		}
		switch pending, err := holds(event.Pending); {
		case pending || err != nil:
			return journal.ToProcess
		}
		switch quarantined, err := holds(event.Quarantined); {
		case err != nil:
			return journal.ToProcess
		case quarantined:
			return journal.ForReplay
		}
		return journal.NotNeeded
	}
}
