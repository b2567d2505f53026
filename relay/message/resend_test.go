package message

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/relaytest"
)

// unanswered has two messages and records the outcomes that are settled.
type unanswered struct {
	settled          []Outcome
	noList, noSettle error
}

func (a *unanswered) List(context.Context, Filter) ([]Message, ID, error) {
	return []Message{
		{ID: 1, Account: 7, Parts: []Part{{State: Accepted}, {State: Unknown}}},
		{ID: 3, Account: 7, Parts: []Part{{State: Unknown}, {State: Pending}, {State: Rejected}}},
	}, 0, a.noList
}

func (a *unanswered) Settle(_ context.Context, outcomes []Outcome) ([]Message, error) {
	a.settled = append(a.settled, outcomes...)
	return nil, a.noSettle
}

func TestOnlyUnknownPartsAreSentAgain(t *testing.T) {
	var a unanswered
	now := time.Unix(100, 0)
	n, err := Resend(t.Context(), &a, Filter{Account: 7}, now)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of parts", n, 2)
	var parts string
	for _, o := range a.settled {
		part := fmt.Sprint(o.Account, " ", o.ID, " ", o.Part, "; ")
		parts += part
		relaytest.Equal(t, "state, times, resent and refund of "+part, []any{o.State, o.Again, o.At, o.Resent, o.Refund}, []any{Pending, now, now, true, false})
		if o.Reason == "" {
			t.Errorf("the outcome of %s has no reason", part)
		}
	}
	relaytest.Equal(t, "the settled parts", parts, "7 1 1; 7 3 0; ")
	for _, broken := range []*unanswered{{noList: errors.New("down")}, {noSettle: errors.New("down")}} {
		n, err := Resend(t.Context(), broken, Filter{}, now)
		relaytest.Equal(t, "the number of parts while the store is down", n, 0)
		if err == nil {
			t.Error("no error while the store is down")
		}
	}
}
