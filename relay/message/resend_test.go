package message

import (
	"context"
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
)

func TestOnlyUnknownPartsAreResent(t *testing.T) {
	f := newFixture(t, "", 10)
	twoParts, threeParts := f.message(2), f.message(3)
	f.save(twoParts, threeParts)
	f.handOver(twoParts, 1, false)
	f.handOver(threeParts, 1, false)
	for n, s := range []State{Accepted, Unknown} {
		f.settlePart(twoParts, n, Outcome{State: s, At: timeAt(2)})
	}
	for n, s := range []State{Unknown, Pending, Rejected} {
		f.settlePart(threeParts, n, Outcome{State: s, At: timeAt(2), RetryAt: timeAt(50)})
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := f.Resend(canceled, Filter{Account: 1, Limit: 10}, timeAt(100)); n != 0 || err == nil {
		t.Errorf("%d parts were resent with a canceled context, error = %v, want 0 and an error", n, err)
	}
	n, err := f.Resend(t.Context(), Filter{Account: 1, Limit: 10}, timeAt(100))
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of parts", n, 2)
	f.wantStates(twoParts.ID, "accepted pending ")
	f.wantStates(threeParts.ID, "pending pending rejected ")
	part := relaytest.Must(f.Get(t.Context(), 1, threeParts.ID))(t).Parts[0]
	relaytest.Equal(t, "the time of the resend", part.ResentAt, timeAt(100))
	relaytest.Equal(t, "the due time of the part", part.ScheduledAt, timeAt(100))
	if part.Reason == "" {
		t.Error("the part has no reason")
	}
	f.wantCredit(5)
}
