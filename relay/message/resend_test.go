package message

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// archive has two messages and notes what is settled.
type archive struct {
	settled          []Outcome
	noList, noSettle error
}

func (a *archive) List(context.Context, Filter) ([]Message, ID, error) {
	return []Message{
		{ID: 1, Account: 7, Parts: []Part{{State: Accepted}, {State: Unknown}}},
		{ID: 3, Account: 7, Parts: []Part{{State: Unknown}, {State: Pending}, {State: Rejected}}},
	}, 0, a.noList
}

func (a *archive) Settle(_ context.Context, outcomes []Outcome) ([]Message, error) {
	a.settled = append(a.settled, outcomes...)
	return nil, a.noSettle
}

func TestOnlyUnknownPartsAreSentAgain(t *testing.T) {
	var a archive
	now := time.Unix(100, 0)
	n, err := Resend(t.Context(), &a, Filter{Account: 7}, now)
	if n != 2 || err != nil {
		t.Fatal(n, err)
	}
	var got string
	for _, o := range a.settled {
		if o.State != Pending || !o.Again.Equal(now) || !o.At.Equal(now) || o.Reason == "" || o.Refund {
			t.Errorf("%+v", o)
		}
		got += fmt.Sprint(o.Account, " ", o.ID, " ", o.Part, "; ")
	}
	if got != "7 1 1; 7 3 0; " {
		t.Errorf("settled %s", got)
	}
	for _, broken := range []*archive{{noList: errors.New("down")}, {noSettle: errors.New("down")}} {
		if n, err := Resend(t.Context(), broken, Filter{}, now); n != 0 || err == nil {
			t.Errorf("%d, %v", n, err)
		}
	}
}
