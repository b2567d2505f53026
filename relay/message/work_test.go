package message

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestSubmission(t *testing.T) {
	onEveryEngine(t, []testCase{
		{"messages are leased when they are due", 10, claimedWhenDue},
		{"a message that another process has leased since is not renewed", 10, claimedSince},
		{"accounts share the limit of a lease", 1000, accountsShare},
		{"a part is handed over once", 10, handedOverOnce},
		{"a message named once or twice in a call has the same state", 100, namedTwiceIsLikeOnce},
		{"two carriers have parts of one message", 10, twoCarriers},
		{"a repeated call of Begin returns the same parts", 10, beginIsRepeated},
		{"failed parts are due again at their retry times", 10, failureIsTriedAgain},
		{"repeated outcomes are refunded once", 10, outcomesAreRepeated},
		{"the longest message is submitted and accepted", 255, longestMessage},
		{"callers that give up leave the credit correct", 1000, callersThatGiveUp},
	})
}

func claimedWhenDue(f fixture) {
	due, scheduled := f.message(1), f.message(1)
	scheduled.ScheduledFor = timeAt(100)
	f.save(due, scheduled)
	leased := f.message(1)
	_, err := f.Save(f.Context(), OrderRecords{Account: 1, Messages: []Message{leased}, Now: timeAt(0), Lease: timeAt(20)})
	f.must(err)
	f.equal("leased at once", f.claim(1, 10), []ID{due.ID})
	f.equal("leased while under a lease", f.claim(2, 10), []ID{})
	f.equal("renewed", f.renew(40, 11, due, due), []Ref{due.Ref()})
	f.equal("leased after one lease has ended", f.claim(30, 10), []ID{leased.ID})
	for range 2 {
		f.must(f.Release(f.Context(), []Lease{
			{Ref: leased.Ref(), End: timeAt(40)}, {Ref: Ref{Account: 1, ID: 999}, End: timeAt(40)}, {Ref: Ref{Account: 2, ID: due.ID}, End: timeAt(40)},
		}, timeAt(31)))
	}
	f.equal("leased after the release", f.claim(31, 10), []ID{leased.ID})
	f.equal("number leased with limit 1", len(f.claim(60, 1)), 1)
	f.equal("number leased after all leases", len(f.claim(200, 10)), 3)
	f.settlePart(due, 0, Outcome{State: Rejected, At: timeAt(201)})
	f.equal("renewed without a waiting part", f.renew(201, 210, due), []Ref(nil))
	f.equal("leased without a waiting part", f.claim(202, 10), []ID{})
}

func claimedSince(f fixture) {
	m := f.message(1)
	f.save(m)
	f.equal("leased by the first process", f.claim(1, 10), []ID{m.ID})
	f.equal("leased by the second process after the lease", f.claim(12, 10), []ID{m.ID})
	f.equal("renewed by the first process", f.renew(50, 11, m), []Ref(nil))
	f.must(f.Release(f.Context(), []Lease{{Ref: m.Ref(), End: timeAt(11)}}, timeAt(13)))
	f.equal("leased during the second lease", f.claim(21, 10), []ID{})
	f.equal("renewed by the second process", f.renew(50, 22, m), []Ref{m.Ref()})
	f.equal("leased after the renewal", f.claim(49, 10), []ID{})
}

func accountsShare(f fixture) {
	for acct, n := range map[relay.AccountID]int{1: 20, 2: 3, 3: 9, 4: 1} {
		f.must(f.credit.Open(f.Context(), acct, 100, timeAt(0)))
		var ms []Message
		for range n {
			m := f.message(1)
			m.Account = acct
			if m.ScheduledFor = timeAt(float64(len(ms))); acct == 4 {
				m.ScheduledFor = timeAt(90)
			}
			ms = append(ms, m)
		}
		_, err := f.Save(f.Context(), OrderRecords{Account: acct, Messages: ms, Now: timeAt(0)})
		f.must(err)
	}
	for i, want := range []map[relay.AccountID]int{{1: 4, 2: 3, 3: 4}, {1: 6, 3: 5}, {1: 10}, {}} {
		list, err := f.LeaseDue(f.Context(), timeAt(50), timeAt(90), 11)
		f.must(err)
		countByAccount, lastDueAt := make(map[relay.AccountID]int), make(map[relay.AccountID]int64)
		for _, m := range list {
			countByAccount[m.Account]++
			if dueAt := m.ScheduledFor.UnixMilli(); dueAt < lastDueAt[m.Account] {
				f.Errorf("account %s: the oldest messages are not first", m.Account)
			} else {
				lastDueAt[m.Account] = dueAt
			}
		}
		f.equal("claim "+string(rune('0'+i)), countByAccount, want)
	}
}

func handedOverOnce(f fixture) {
	m := f.message(2)
	f.save(m)
	f.equal("leased", f.claim(1, 10), []ID{m.ID})
	f.equal("begun", f.handOver(m, 1, false), []int{0, 1})
	f.equal("begun again", f.handOver(m, 1, false), []int{})
	f.equal("pending", f.pendingIDs(), []ID{})
	list, err := f.LeaseDue(f.Context(), timeAt(20), timeAt(30), 10) // the worker crashed
	f.must(err)
	if len(list) != 1 {
		f.Fatalf("list: %d results, want %d", len(list), 1)
	}
	relaytest.Equal(f, "list[0].Parts[0].State", list[0].Parts[0].State, Sending)
	relaytest.Equal(f, "list[0].Parts[0].Carrier", list[0].Parts[0].Carrier, "c1")
	f.equal("begun with AlsoSending", f.handOver(m, 20, true), []int{0, 1})
	f.settlePart(m, 0, Outcome{State: Accepted, Carrier: "c1", CarrierID: "r0", At: timeAt(21)})
	f.settlePart(m, 1, Outcome{State: Unknown, Reason: "the answer was lost", At: timeAt(21)})
	f.wantStates(m.ID, "accepted unknown ")
	f.equal("due", f.claim(1000, 10), []ID{})
	got, err := f.Get(f.Context(), 1, m.ID)
	f.must(err)
	relaytest.Equal(f, "got.Parts[0].CarrierID", got.Parts[0].CarrierID, "r0")
	relaytest.Equal(f, "got.Parts[1].Reason", got.Parts[1].Reason, "the answer was lost")
	relaytest.Equal(f, "got.Version", got.Version, 2)
	// The operator resends the unknown part.
	f.settlePart(m, 1, Outcome{State: Pending, RetryAt: timeAt(1000), Resent: true, At: timeAt(1000)})
	f.equal("pending", f.pendingIDs(), []ID{m.ID + 1})
	f.equal("due", f.claim(1000, 10), []ID{m.ID})
	f.equal("begun after the resend", f.handOver(m, 1000, false), []int{1})
	f.settlePart(m, 1, Outcome{State: Pending, RetryAt: timeAt(2000), At: timeAt(1001)})
	list, err = f.LeaseDue(f.Context(), timeAt(2000), timeAt(2010), 10)
	f.must(err)
	f.equal("messages leased for the retry", len(list), 1)
	for n, want := range []time.Time{{}, timeAt(1000)} {
		f.equal("ResentAt", list[0].Parts[n].ResentAt, want)
	}
	f.wantForgotten(m.ID, false)
	f.wantCredit(8)
}

// namedTwiceIsLikeOnce compares the row of a message that a call names once with the row of a
// message that a call names twice.
func namedTwiceIsLikeOnce(f fixture) {
	for _, url := range []string{"", "https://example.com/dlr"} {
		for _, outcome := range []Outcome{
			{State: Accepted, Carrier: "c1", CarrierID: "r", Reason: "fine", At: timeAt(2)},
			{State: Accepted, At: timeAt(2)},
			{State: Rejected, Carrier: "c1", Refund: true, At: timeAt(2)},
			{State: Pending, RetryAt: timeAt(9), At: timeAt(2)},
		} {
			var rows, settled [2]string
			var got [2]Message
			for times := range 2 {
				m := f.message(1)
				m.Report.URL = url
				f.save(m)
				sending, o := sendingPartsOf(m, "c1", 1, false), outcome
				o.PartRef = PartRef{Ref: m.Ref()}
				begun, err := f.MarkSending(f.Context(), slices.Repeat([]SendingParts{sending}, 1+times))
				f.must(err)
				f.equal("begun", begun[0], []int{0})
				rows[times] = f.row(m)
				reports, err := f.Settle(f.Context(), slices.Repeat([]Outcome{o}, 1+times))
				f.must(err)
				settled[times] = fmt.Sprint(len(reports), f.row(m))
				got[times], err = f.Get(f.Context(), 1, m.ID)
				f.must(err)
				got[times].ID = 0
			}
			f.equal("begun", rows[0], rows[1])
			f.equal("settled", settled[0], settled[1])
			f.equal("message", got[0], got[1])
		}
	}
}

// row returns the variable columns of a message, except parts.
func (f fixture) row(m Message) string {
	f.Helper()
	var n [6]int64
	_, err := db.One(f.Context(), f.db, "test", `
SELECT pending, states, due, untold, expires, version FROM message_state WHERE account = $1 AND id = $2`,
		func(*int) []any { return []any{&n[0], &n[1], &n[2], &n[3], &n[4], &n[5]} }, m.Account, m.ID)
	f.must(err)
	return fmt.Sprint(n)
}

func twoCarriers(f fixture) {
	m := f.message(3)
	f.save(m)
	first, second, missing := sendingPartsOf(m, "c1", 1, false), sendingPartsOf(m, "c2", 1, false), sendingPartsOf(newMessage(1, m.ID+9, 1), "c2", 1, false)
	first.Parts, second.Parts = []int{0}, []int{2, 1, 3, -1}
	begun, err := f.MarkSending(f.Context(), []SendingParts{first, missing, second})
	f.must(err)
	f.equal("begun", begun, [][]int{{0}, {}, {2, 1}})
	f.settlePart(m, 2, Outcome{State: Accepted, Carrier: "c2", CarrierID: "x", At: timeAt(2)})
	f.settlePart(m, 3, Outcome{State: Accepted, At: timeAt(2)})
	got, err := f.Get(f.Context(), 1, m.ID)
	f.must(err)
	f.equal("carriers", []string{got.Parts[0].Carrier, got.Parts[1].Carrier, got.Parts[2].Carrier}, []string{"c1", "c2", "c2"})
	f.wantStates(m.ID, "sending sending accepted ")
}

// A call may be repeated before or after its answer was used.
func beginIsRepeated(f fixture) {
	m := f.message(2)
	f.save(m)
	f.equal("begun by another call", f.handOver(m, 1, false), []int{0, 1})
	retry := Outcome{State: Pending, RetryAt: timeAt(1), At: timeAt(1)}
	f.settlePart(m, 0, retry)
	sending := sendingPartsOf(m, "c1", 1, false)
	sending.Parts = []int{0}
	for i, want := range []int{1, 1, 0} {
		if i == 2 {
			f.settlePart(m, 0, retry)
		}
		begun, err := f.markSending(f.Context(), "call", []SendingParts{sending})
		f.must(err)
		f.equal("number of begun parts", len(begun[0]), want)
	}
	f.equal("pending", f.pendingIDs(), []ID{m.ID})
	f.equal("begun by the next call", f.handOver(m, 1, false), []int{0})
}

func failureIsTriedAgain(f fixture) {
	m := f.message(2)
	f.save(m)
	f.claim(1, 10)
	f.handOver(m, 1, false)
	settle := func(part int, state State, retryAt float64, refund bool) {
		f.Helper()
		f.settlePart(m, part, Outcome{State: state, RetryAt: timeAt(retryAt), Refund: refund, At: timeAt(2)})
	}
	settle(0, Pending, 60, false)
	settle(1, Pending, 90, false)
	list, _, err := f.Pending(f.Context(), 1, 0, 10)
	f.must(err)
	if len(list) != 2 {
		f.Fatalf("list: %d results, want %d", len(list), 2)
	}
	relaytest.Equal(f, "list[0].Scheduled", list[0].Scheduled, timeAt(60))
	relaytest.Equal(f, "list[0].OriginalScheduled", list[0].OriginalScheduled, timeAt(0))
	f.equal("leased before the retry time", f.claim(59, 10), []ID{})
	f.equal("leased at the retry time", f.claim(60, 10), []ID{m.ID})
	settle(0, Rejected, 0, true) // no carrier accepted the part
	settle(0, Rejected, 0, true)
	f.wantCredit(9)
	f.wantStates(m.ID, "rejected pending ")
	f.equal("leased at the retry time of the other part", f.claim(90, 10), []ID{m.ID})
	settle(1, Rejected, 0, false)
	f.wantCredit(9)
	f.equal("leased after the final states", f.claim(900, 10), []ID{})
}

// A transaction with refunds of several accounts is repeated because its answer was lost.
func outcomesAreRepeated(f fixture) {
	f.must(f.credit.Open(f.Context(), 2, 100, timeAt(0)))
	mine := f.message(2)
	id, err := f.Reserve(f.Context(), 1)
	f.must(err)
	foreign := newMessage(2, id, 1)
	mine.Report.URL = "https://example.com/"
	f.save(mine)
	_, err = f.Save(f.Context(), OrderRecords{Account: 2, Messages: []Message{foreign}, Now: timeAt(0)})
	f.must(err)
	outcomes := []Outcome{
		{PartRef: PartRef{Ref: foreign.Ref()}, State: Rejected, Reason: "no carrier", Refund: true, At: timeAt(1)},
		{PartRef: PartRef{Ref: mine.Ref(), Part: 1}, State: Rejected, Reason: "no carrier", Refund: true, At: timeAt(1)},
		{PartRef: PartRef{Ref: mine.Ref()}, State: Rejected, Reason: "refused", At: timeAt(1)},
		{PartRef: PartRef{Ref: Ref{Account: 1, ID: 999}}, State: Rejected, Refund: true, At: timeAt(1)},
	}
	for i, want := range []int{1, 0} {
		reported, err := f.Settle(f.Context(), outcomes)
		f.must(err)
		f.equal("number of messages to report", len(reported), want)
		if i == 0 && (reported[0].Version != 2 || reported[0].Parts[1].Reason != "no carrier" || reported[0].Parts[0].Text != "part 0") {
			f.Fatalf("the first reported message = %+v, want version 2, the reason no carrier and the text part 0", reported[0])
		}
		f.wantCredit(9)
		balance, err := f.credit.Balance(f.Context(), 2)
		f.must(err)
		f.equal("balance of the other account", balance, 100)
	}
	f.wantForgotten(mine.ID, true)
}

func longestMessage(f fixture) {
	m := f.message(255)
	f.save(m)
	if got := f.handOver(m, 1, false); len(got) != 255 || got[254] != 254 {
		f.Fatalf("begun parts = %v, want 0 to 254", got)
	}
	outcomes := make([]Outcome, 255)
	for i := range outcomes {
		outcomes[i] = Outcome{
			PartRef: PartRef{Ref: m.Ref(), Part: i}, State: Accepted, Carrier: "c", CarrierID: "r", At: timeAt(1),
		}
	}
	_, err := f.Settle(f.Context(), outcomes)
	f.must(err)
	f.wantStates(m.ID, strings.Repeat("accepted ", 255))
	f.equal("due", f.claim(60, 10), []ID{})
}

// A transaction may still run after its caller has given up. It must not write to memory of
// the caller.
func callersThatGiveUp(f fixture) {
	dbtest.RunConcurrently(50, func(i int) {
		ctx, cancel := context.WithTimeout(f.Context(), time.Duration(i*40)*time.Microsecond)
		defer cancel()
		id, err := f.Reserve(ctx, 1)
		if err != nil {
			id = ID(1_000_000 + i)
		}
		m := newMessage(1, id, 1)
		_, err = f.Save(ctx, OrderRecords{Account: 1, Messages: []Message{m}, Now: timeAt(0), Key: IdempotencyKey{Hash: "k" + id.String()}})
		_, err2 := f.MarkSending(ctx, []SendingParts{sendingPartsOf(m, "c1", 1, false)})
		_, err3 := f.Settle(ctx, []Outcome{{PartRef: PartRef{Ref: m.Ref()}, State: Rejected, Refund: true, At: timeAt(1)}})
		_, err4 := f.LeaseDue(ctx, timeAt(1), timeAt(2), 10)
		_, err5 := f.Match(ctx, []Receipt{{Carrier: "c1", IDs: []string{"a"}}})
		for _, err := range []error{err, err2, err3, err4, err5} {
			if err != nil && relay.KindOf(err) != relay.KindUnavailable {
				f.Error(err)
			}
		}
	})
	balance, err := db.Value[int](f.Context(), f.db, "test", `
SELECT balance + (SELECT COUNT(*) FROM message_state WHERE account = 1 AND (states & 64) = 0) FROM credit WHERE account = 1`)
	f.must(err)
	f.equal("balance plus charged messages", balance, 1000)
}

// A gateway renews hundreds of leases at a time while an account may have hundreds of
// thousands of messages queued.
func TestLeasesAreRenewedByKey(t *testing.T) {
	f := newFixture(t, "", 0)
	statement := strings.Replace(moveLeases, "FROM batch", "FROM (SELECT value ->> 0 AS account, value ->> 1 AS id, value ->> 2 AS ends FROM jsonb_each('[]')) AS batch", 1)
	plan, err := db.List(t.Context(), f.db, "test", "EXPLAIN QUERY PLAN "+statement, func(v *string) []any {
		var skip any
		return []any{&skip, &skip, &skip, v}
	}, int64(1))
	f.must(err)
	for _, step := range plan {
		if strings.Contains(step, "message_due") {
			t.Errorf("%q reads the index of due messages, want only keys", plan)
		}
	}
}
