package message

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestAnUndecryptableMessageDoesNotStopOthers(t *testing.T) {
	onEveryEngine(t, []testCase{
		{"other messages are leased and listed, and the message is resent once it can be decrypted", 100, undecryptableIsSentAgain},
		{"other messages are reported, and the message is reported once it can be decrypted", 100, undecryptableIsReportedLater},
	})
}

// ids returns the ids of the messages that were decrypted, in their order.
func ids(ms []Message) (ids []ID) {
	for i := range ms {
		if !ms[i].Undecryptable {
			ids = append(ids, ms[i].ID)
		}
	}
	return ids
}

func undecryptableIsSentAgain(f fixture) {
	f.db.SetSealer(dbtest.Sealer{})
	a, b, c := f.message(1), f.message(2), f.message(1)
	f.save(a, b, c)
	restore := dbtest.Tamper(f, f.db, "message", "doc", fmt.Sprintf("id = %d", b.ID))

	// 1. The list has the numbers and the states of the message.
	list, _, err := f.List(f.Context(), Filter{Account: 1, Limit: 9})
	f.must(err)
	relaytest.Equal(f, "number of listed messages", len(list), 3)
	listed := list[1]
	relaytest.Equal(f, "the fields of the listed message", []any{listed.ID, listed.Destination, listed.Undecryptable, len(listed.Parts), listed.Parts[0].State, listed.Text()},
		[]any{b.ID, b.Destination, true, 2, Pending, ""})
	entries, total, err := f.Pending(f.Context(), 1, 0, 9)
	f.must(err)
	relaytest.Equal(f, "pending parts", []int{len(entries), total}, []int{4, 4})

	// 2. LeaseDue returns the other messages. The parts of the message become Unknown, with a reason.
	leased, err := f.LeaseDue(f.Context(), timeAt(1), timeAt(15), 9)
	if !errors.Is(err, relay.ErrUndecryptable) {
		f.Errorf("error of LeaseDue = %v, want %v", err, relay.ErrUndecryptable)
	}
	relaytest.Equal(f, "leased messages", ids(leased), []ID{a.ID, c.ID})
	got, err := f.Get(f.Context(), 1, b.ID)
	f.must(err)
	for _, part := range got.Parts {
		relaytest.Equal(f, "state and reason of a part", []any{part.State, part.Reason}, []any{Unknown, undecryptableReason})
	}
	leased, err = f.LeaseDue(f.Context(), timeAt(20), timeAt(35), 9)
	f.must(err)
	relaytest.Equal(f, "leased messages after the first lease", ids(leased), []ID{a.ID, c.ID})

	// 3. An operator resends the message once it can be decrypted.
	restore()
	n, err := f.Resend(f.Context(), Filter{Account: 1, IDs: []ID{b.ID}}, timeAt(40))
	f.must(err)
	relaytest.Equal(f, "number of resent parts", n, 2)
	leased, err = f.LeaseDue(f.Context(), timeAt(41), timeAt(55), 9)
	f.must(err)
	relaytest.Equal(f, "leased messages after the resend", ids(leased), []ID{a.ID, c.ID, b.ID})
}

func undecryptableIsReportedLater(f fixture) {
	f.db.SetSealer(dbtest.Sealer{})
	a, b := f.message(1), f.message(1)
	a.Report, b.Report = Report{URL: "https://example.com/a"}, Report{URL: "https://example.com/b"}
	f.save(a, b)
	restore := dbtest.Tamper(f, f.db, "message", "doc", fmt.Sprintf("id = %d", b.ID))
	var outcomes []Outcome
	for _, m := range []Message{a, b} {
		_, err := f.MarkSending(f.Context(), []SendingParts{{Ref: m.Ref(), Parts: []int{0}, Carrier: "c", Now: timeAt(1), LeaseEnd: timeAt(15)}})
		f.must(err)
		outcomes = append(outcomes, Outcome{PartRef: PartRef{Ref: m.Ref()}, State: Accepted, Carrier: "c", CarrierID: "x" + m.ID.String(), At: timeAt(2)})
	}
	reports, err := f.Settle(f.Context(), outcomes)
	f.must(err)
	relaytest.Equal(f, "messages to report", ids(reports), []ID{a.ID})
	f.must(f.MarkReported(f.Context(), reports))
	f.clockOffset.Store(int64(time.Minute))
	list, err := f.Unreported(f.Context(), timeAt(30), 1)
	f.must(err)
	relaytest.Equal(f, "number of unreported messages", len(list), 0)
	restore()
	list, err = f.Unreported(f.Context(), timeAt(30), 1)
	f.must(err)
	relaytest.Equal(f, "number of unreported messages before the postponed time", len(list), 0)
	list, err = f.Unreported(f.Context(), timeAt(61), 1)
	f.must(err)
	relaytest.Equal(f, "unreported messages after the postponed time", ids(list), []ID{b.ID})
}
