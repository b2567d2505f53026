package outbox

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/relaytest"
)

// pages is a store that lists deliveries in pages and notes what is replayed.
type pages struct {
	lists  [][]Delivery
	asked  []Filter
	given  []string
	broken error // of Replay
}

func (p *pages) List(_ context.Context, f Filter) ([]Delivery, string, error) {
	p.asked = append(p.asked, f)
	n := len(p.asked)
	if n > len(p.lists) {
		return nil, "", errors.New("no such page")
	}
	next := ""
	if n < len(p.lists) {
		next = fmt.Sprint("page ", n)
	}
	return p.lists[n-1], next, nil
}

func (p *pages) Replay(_ context.Context, refs []Ref, now time.Time, includeDelivered bool) ([]Ref, error) {
	for _, r := range refs {
		p.given = append(p.given, fmt.Sprint(r.Account, " ", r.ID, " ", now.Unix(), " ", includeDelivered))
	}
	return refs, p.broken
}

func TestReplayGoesThroughAllPages(t *testing.T) {
	p := &pages{lists: [][]Delivery{{{Account: 1, ID: "a"}, {Account: 2, ID: "b"}}, {}, {{Account: 1, ID: "c"}}}}
	n, err := Replay(t.Context(), p, Filter{Relay: "g1", Limit: 1, Cursor: "x"}, true, func() time.Time { return time.Unix(7, 0) })
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of replayed deliveries", n, 3)
	relaytest.Equal(t, "the replayed deliveries", p.given, []string{"1 a 7 true", "2 b 7 true", "1 c 7 true"})
	for i, cursor := range []string{"", "page 1", "page 2"} {
		f := p.asked[i]
		relaytest.Equal(t, fmt.Sprintf("cursor, relay and state of page %d", i), []string{f.Cursor, f.Relay, string(f.State)}, []string{cursor, "g1", ""})
	}
}

func TestReplayTakesTheDeadUnlessAStateIsNamed(t *testing.T) {
	for _, tc := range []struct {
		state     State
		delivered bool
		want      State
	}{{"", false, Dead}, {"", true, ""}, {Delivered, true, Delivered}, {Simulated, false, Simulated}} {
		p := &pages{lists: [][]Delivery{{}}}
		_, err := Replay(t.Context(), p, Filter{State: tc.state}, tc.delivered, time.Now)
		relaytest.NoError(t, err)
		relaytest.Equal(t, fmt.Sprintf("the state that is listed for %q, delivered %v", tc.state, tc.delivered), p.asked[0].State, tc.want)
	}
}

func TestReplayEndsWithAnError(t *testing.T) {
	p := &pages{lists: [][]Delivery{{{ID: "a"}}, {{ID: "b"}}}, broken: errors.New("down")}
	if _, err := Replay(t.Context(), p, Filter{}, false, time.Now); !errors.Is(err, p.broken) || len(p.asked) != 1 {
		t.Errorf("%v after %d pages", err, len(p.asked))
	}
	if _, err := Replay(t.Context(), &pages{}, Filter{}, false, time.Now); err == nil {
		t.Error("a list that fails was passed over")
	}
}
