package message

import (
	"context"
	"time"
)

// Resend schedules the parts in the state Unknown of the messages that a filter
// selects, and returns their number. The decision is the operator's, because the
// phone may receive them twice. Retries of these parts count from now.
func Resend(ctx context.Context, a archive, f Filter, now time.Time) (int, error) {
	found, _, err := a.List(ctx, f)
	if err != nil {
		return 0, err
	}
	var again []Outcome
	for i := range found {
		for n := range found[i].Parts {
			if found[i].Parts[n].State == Unknown {
				again = append(again, Outcome{
					PartRef: PartRef{Ref: found[i].Ref(), Part: n}, State: Pending,
					Reason: "sent again by the operator", Again: now, Resent: true, At: now,
				})
			}
		}
	}
	if _, err := a.Settle(ctx, again); err != nil {
		return 0, err
	}
	return len(again), nil
}
