package message

import (
	"fmt"
	"testing"
	"time"
)

func TestMessagesThatWereDueBecomeUnknown(t *testing.T) {
	onEvery(t, []testCase{{"one of each state", 100, func(p fixture) {
		due, later, retried, sent, removed := p.message(2), p.message(1), p.message(2), p.message(1), p.message(1)
		later.ScheduledFor = at(3600)
		later.Parts[0].ScheduledAt = at(3600)
		p.save(due, later, retried, sent, removed)
		begun, err := p.Begin(p.Context(), []Beginning{
			{Ref: retried.Ref(), Parts: []int{0}, Carrier: "c", Now: at(1), Until: at(20)}, {Ref: sent.Ref(), Parts: []int{0}, Carrier: "c", Now: at(1), Until: at(20)},
		})
		p.must(err)
		p.same("parts that are sent", begun, [][]int{{0}, {0}})
		_, err = p.Settle(p.Context(), []Outcome{
			{PartRef: PartRef{Ref: retried.Ref()}, State: Pending, RetryAt: at(7200), At: at(2)},
			{PartRef: PartRef{Ref: sent.Ref()}, State: Accepted, Carrier: "c", At: at(2)},
		})
		p.must(err)
		p.must(p.Delete(p.Context(), 1, removed.ID, at(2)))

		count, err := p.MarkUnknown(p.Context(), at(60), at(90), "the database went back")
		p.must(err)
		p.same("parts that became unknown", count, 3)
		for _, tc := range []struct {
			id   ID
			want string
		}{
			{due.ID, "[unknown unknown] the database went back"}, {later.ID, "[pending] "}, {retried.ID, "[pending unknown] "}, {sent.ID, "[accepted] "}, {removed.ID, "[removed] "},
		} {
			m, err := p.Get(p.Context(), 1, tc.id)
			p.must(err)
			var states []State
			for _, part := range m.Parts {
				states = append(states, part.State)
			}
			p.same(fmt.Sprint("the states of ", tc.id), fmt.Sprint(states, " ", m.Parts[0].Reason), tc.want)
		}
		leased, err := p.LeaseDue(p.Context(), at(100), at(200), 10)
		p.must(err)
		p.same("messages that are due after that", len(leased), 0)
		unknown, _, err := p.List(p.Context(), Filter{Account: 1, State: Unknown, Limit: 10})
		p.must(err)
		p.same("messages listed as unknown", len(unknown), 2)
	}}, {"ids", 0, func(p fixture) {
		before := p.message(1).ID
		p.must(p.SkipIDs(p.Context()))
		p.ahead.Add(int64(2 * time.Second)) // no id is left in the block
		if after := p.message(1).ID; after < before+skippedIDs {
			p.Errorf("the id after %d is %d, want it to be %d or more", before, after, before+skippedIDs)
		}
	}}})
}
