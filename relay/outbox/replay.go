package outbox

import (
	"context"
	"time"
)

// Replayable is the part of Store that a replay needs.
type Replayable interface {
	List(ctx context.Context, f Filter) ([]Delivery, string, error)
	Replay(ctx context.Context, refs []Ref, now time.Time, includeDelivered bool) ([]Ref, error)
}

// replayPage is the number of deliveries that are queued again at a time.
const replayPage = 1000

// Replay queues deliveries that have ended again, a page of the filter at a time,
// and returns their number. Only dead ones, unless includeDelivered; the filter's
// Limit and Cursor are ignored. After an error, the previous pages stay queued.
func Replay(ctx context.Context, s Replayable, f Filter, includeDelivered bool, now func() time.Time) (int, error) {
	if f.State == "" && !includeDelivered {
		f.State = Dead
	}
	count := 0
	for f.Limit, f.Cursor = replayPage, ""; ; {
		found, next, err := s.List(ctx, f)
		if err != nil {
			return count, err
		}
		refs := make([]Ref, len(found))
		for i, d := range found {
			refs[i] = Ref{Account: d.Account, ID: d.ID}
		}
		replayed, err := s.Replay(ctx, refs, now(), includeDelivered)
		count += len(replayed)
		if f.Cursor = next; err != nil || next == "" {
			return count, err
		}
	}
}
