package message

import (
	"context"
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
)

func TestOnlyUnknownPartsAreSentAgain(t *testing.T) {
	p := newFixture(t, "", 10)
	two, three := p.message(2), p.message(3)
	p.save(two, three)
	p.handOver(two, 1, false)
	p.handOver(three, 1, false)
	for n, s := range []State{Accepted, Unknown} {
		p.settlePart(two, n, Outcome{State: s, At: at(2)})
	}
	for n, s := range []State{Unknown, Pending, Rejected} {
		p.settlePart(three, n, Outcome{State: s, At: at(2), RetryAt: at(50)})
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := p.Resend(canceled, Filter{Account: 1, Limit: 10}, at(100)); n != 0 || err == nil {
		t.Errorf("%d parts are resent while the store does not answer, %v", n, err)
	}
	n, err := p.Resend(t.Context(), Filter{Account: 1, Limit: 10}, at(100))
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of parts", n, 2)
	p.inStates(two.ID, "accepted pending ")
	p.inStates(three.ID, "pending pending rejected ")
	part := relaytest.Must(p.Get(t.Context(), 1, three.ID))(t).Parts[0]
	relaytest.Equal(t, "when the part was resent", part.ResentAt, at(100))
	relaytest.Equal(t, "when the part is due", part.ScheduledAt, at(100))
	if part.Reason == "" {
		t.Error("the part has no reason")
	}
	p.hasCredit(5)
}
