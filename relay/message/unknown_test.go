package message

import (
	"fmt"
	"testing"
	"time"
)

func TestDueMessagesBecomeUnknown(t *testing.T) {
	onEveryEngine(t, []testCase{{"due parts become unknown in every state", 100, func(f fixture) {
		due, scheduled, retried, accepted, removed := f.message(2), f.message(1), f.message(2), f.message(1), f.message(1)
		scheduled.ScheduledFor = timeAt(3600)
		scheduled.Parts[0].ScheduledAt = timeAt(3600)
		f.save(due, scheduled, retried, accepted, removed)
		begun, err := f.MarkSending(f.Context(), []SendingParts{
			{Ref: retried.Ref(), Parts: []int{0}, Carrier: "c", Now: timeAt(1), LeaseEnd: timeAt(20)}, {Ref: accepted.Ref(), Parts: []int{0}, Carrier: "c", Now: timeAt(1), LeaseEnd: timeAt(20)},
		})
		f.must(err)
		f.equal("begun parts", begun, [][]int{{0}, {0}})
		_, err = f.Settle(f.Context(), []Outcome{
			{PartRef: PartRef{Ref: retried.Ref()}, State: Pending, RetryAt: timeAt(7200), At: timeAt(2)},
			{PartRef: PartRef{Ref: accepted.Ref()}, State: Accepted, Carrier: "c", At: timeAt(2)},
		})
		f.must(err)
		f.must(f.Delete(f.Context(), 1, removed.ID, timeAt(2)))

		count, err := f.MarkUnknown(f.Context(), timeAt(60), timeAt(90), "the database was restored")
		f.must(err)
		f.equal("number of unknown parts", count, 3)
		for _, tc := range []struct {
			id   ID
			want string
		}{
			{due.ID, "[unknown unknown] the database was restored"}, {scheduled.ID, "[pending] "}, {retried.ID, "[pending unknown] "}, {accepted.ID, "[accepted] "}, {removed.ID, "[removed] "},
		} {
			m, err := f.Get(f.Context(), 1, tc.id)
			f.must(err)
			var states []State
			for _, part := range m.Parts {
				states = append(states, part.State)
			}
			f.equal(fmt.Sprint("the states of ", tc.id), fmt.Sprint(states, " ", m.Parts[0].Reason), tc.want)
		}
		leased, err := f.LeaseDue(f.Context(), timeAt(100), timeAt(200), 10)
		f.must(err)
		f.equal("number of due messages afterwards", len(leased), 0)
		unknown, _, err := f.List(f.Context(), Filter{Account: 1, State: Unknown, Limit: 10})
		f.must(err)
		f.equal("number of messages listed as unknown", len(unknown), 2)
	}}, {"SkipIDs skips many ids", 0, func(f fixture) {
		before := f.message(1).ID
		f.must(f.SkipIDs(f.Context()))
		f.clockOffset.Add(int64(2 * time.Second)) // the reserved block has expired
		if after := f.message(1).ID; after < before+skippedIDs {
			f.Errorf("the id after %d is %d, want at least %d", before, after, before+skippedIDs)
		}
	}}})
}
