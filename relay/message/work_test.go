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

func TestWork(t *testing.T) {
	onEvery(t, []testCase{
		{"messages are claimed when they are due", 10, claimedWhenDue},
		{"a message that another process has claimed since is not renewed", 10, claimedSince},
		{"accounts share what is claimed", 1000, accountsShare},
		{"a part is handed over once", 10, handedOverOnce},
		{"the usual case is like any other", 100, usualIsLikeAny},
		{"two carriers have parts of one message", 10, twoCarriers},
		{"a call of Begin that is repeated", 10, beginIsRepeated},
		{"a failure that is tried again", 10, failureIsTriedAgain},
		{"outcomes that are repeated", 10, outcomesAreRepeated},
		{"the longest message", 255, longestMessage},
		{"callers that do not wait for an answer", 1000, callersGiveUp},
	})
}

func claimedWhenDue(p fixture) {
	soon, later := p.message(1), p.message(1)
	later.ScheduledFor = at(100)
	p.save(soon, later)
	leased := p.message(1)
	_, err := p.Save(p.Context(), OrderRecords{Account: 1, Messages: []Message{leased}, Now: at(0), Lease: at(20)})
	p.must(err)
	p.same("at once", p.claim(1, 10), []ID{soon.ID})
	p.same("under a lease", p.claim(2, 10), []ID{})
	p.same("renewed", p.renew(40, 11, soon, soon), []Ref{soon.Ref()})
	p.same("when one lease has run out", p.claim(30, 10), []ID{leased.ID})
	for range 2 {
		p.must(p.Release(p.Context(), []Lease{
			{Ref: leased.Ref(), End: at(40)}, {Ref: Ref{Account: 1, ID: 999}, End: at(40)}, {Ref: Ref{Account: 2, ID: soon.ID}, End: at(40)},
		}, at(31)))
	}
	p.same("when it is given back", p.claim(31, 10), []ID{leased.ID})
	p.same("one of two", len(p.claim(60, 1)), 1)
	p.same("all", len(p.claim(200, 10)), 3)
	p.settlePart(soon, 0, Outcome{State: Rejected, At: at(201)})
	p.same("renewed of which nothing waits", p.renew(201, 210, soon), []Ref(nil))
	p.same("of which nothing waits", p.claim(202, 10), []ID{})
}

func claimedSince(p fixture) {
	m := p.message(1)
	p.save(m)
	p.same("first", p.claim(1, 10), []ID{m.ID})
	p.same("by another, after the end of the lease", p.claim(12, 10), []ID{m.ID})
	p.same("renewed by the first", p.renew(50, 11, m), []Ref(nil))
	p.must(p.Release(p.Context(), []Lease{{Ref: m.Ref(), End: at(11)}}, at(13)))
	p.same("while the other has it", p.claim(21, 10), []ID{})
	p.same("renewed by the other", p.renew(50, 22, m), []Ref{m.Ref()})
	p.same("after that", p.claim(49, 10), []ID{})
}

func accountsShare(p fixture) {
	for acct, n := range map[relay.AccountID]int{1: 20, 2: 3, 3: 9, 4: 1} {
		p.must(p.credit.Open(p.Context(), acct, 100, at(0)))
		var ms []Message
		for range n {
			m := p.message(1)
			m.Account = acct
			if m.ScheduledFor = at(float64(len(ms))); acct == 4 {
				m.ScheduledFor = at(90)
			}
			ms = append(ms, m)
		}
		_, err := p.Save(p.Context(), OrderRecords{Account: acct, Messages: ms, Now: at(0)})
		p.must(err)
	}
	for i, want := range []map[relay.AccountID]int{{1: 4, 2: 3, 3: 4}, {1: 6, 3: 5}, {1: 10}, {}} {
		list, err := p.LeaseDue(p.Context(), at(50), at(90), 11)
		p.must(err)
		of, last := make(map[relay.AccountID]int), make(map[relay.AccountID]int64)
		for _, m := range list {
			of[m.Account]++
			if at := m.ScheduledFor.UnixMilli(); at < last[m.Account] {
				p.Errorf("account %s: not the oldest first", m.Account)
			} else {
				last[m.Account] = at
			}
		}
		p.same("claim "+string(rune('0'+i)), of, want)
	}
}

func handedOverOnce(p fixture) {
	m := p.message(2)
	p.save(m)
	p.same("claimed", p.claim(1, 10), []ID{m.ID})
	p.same("begun", p.handOver(m, 1, false), []int{0, 1})
	p.same("by another", p.handOver(m, 1, false), []int{})
	p.same("pending", p.pendingIDs(), []ID{})
	list, err := p.LeaseDue(p.Context(), at(20), at(30), 10) // its worker has died
	p.must(err)
	if len(list) != 1 {
		p.Fatalf("list: %d results, want %d", len(list), 1)
	}
	relaytest.Equal(p, "list[0].Parts[0].State", list[0].Parts[0].State, Sending)
	relaytest.Equal(p, "list[0].Parts[0].Carrier", list[0].Parts[0].Carrier, "c1")
	p.same("by one that may", p.handOver(m, 20, true), []int{0, 1})
	p.settlePart(m, 0, Outcome{State: Accepted, Carrier: "c1", CarrierID: "r0", At: at(21)})
	p.settlePart(m, 1, Outcome{State: Unknown, Reason: "the answer was lost", At: at(21)})
	p.inStates(m.ID, "accepted unknown ")
	p.same("due", p.claim(1000, 10), []ID{})
	got, err := p.Get(p.Context(), 1, m.ID)
	p.must(err)
	relaytest.Equal(p, "got.Parts[0].CarrierID", got.Parts[0].CarrierID, "r0")
	relaytest.Equal(p, "got.Parts[1].Reason", got.Parts[1].Reason, "the answer was lost")
	relaytest.Equal(p, "got.Version", got.Version, 2)
	// The account's operator decides that the unknown one is sent again.
	p.settlePart(m, 1, Outcome{State: Pending, RetryAt: at(1000), Resent: true, At: at(1000)})
	p.same("pending", p.pendingIDs(), []ID{m.ID + 1})
	p.same("due", p.claim(1000, 10), []ID{m.ID})
	p.same("begun again", p.handOver(m, 1000, false), []int{1})
	p.settlePart(m, 1, Outcome{State: Pending, RetryAt: at(2000), At: at(1001)})
	list, err = p.LeaseDue(p.Context(), at(2000), at(2010), 10)
	p.must(err)
	p.same("messages leased for the retry", len(list), 1)
	for n, want := range []time.Time{{}, at(1000)} {
		p.same("ResentAt", list[0].Parts[n].ResentAt, want)
	}
	p.forgotten(m.ID, false)
	p.hasCredit(8)
}

// usualIsLikeAny compares a message that takes the statements for the usual case
// with one that is named twice, and so takes those for all cases.
func usualIsLikeAny(p fixture) {
	for _, url := range []string{"", "https://example.com/dlr"} {
		for _, outcome := range []Outcome{
			{State: Accepted, Carrier: "c1", CarrierID: "r", Reason: "fine", At: at(2)},
			{State: Accepted, At: at(2)},
			{State: Rejected, Carrier: "c1", Refund: true, At: at(2)},
			{State: Pending, RetryAt: at(9), At: at(2)},
		} {
			var rows, settled [2]string
			var got [2]Message
			for times := range 2 {
				m := p.message(1)
				m.Report.URL = url
				p.save(m)
				start, o := startOf(m, "c1", 1, false), outcome
				o.PartRef = PartRef{Ref: m.Ref()}
				begun, err := p.Begin(p.Context(), slices.Repeat([]Beginning{start}, 1+times))
				p.must(err)
				p.same("begun", begun[0], []int{0})
				rows[times] = p.row(m)
				reports, err := p.Settle(p.Context(), slices.Repeat([]Outcome{o}, 1+times))
				p.must(err)
				settled[times] = fmt.Sprint(len(reports), p.row(m))
				got[times], err = p.Get(p.Context(), 1, m.ID)
				p.must(err)
				got[times].ID = 0
			}
			p.same("begun", rows[0], rows[1])
			p.same("settled", settled[0], settled[1])
			p.same("message", got[0], got[1])
		}
	}
}

// row is what changes of a message, but for its parts.
func (p fixture) row(m Message) string {
	p.Helper()
	var n [6]int64
	_, err := db.One(p.Context(), p.db, "test", `
SELECT pending, states, due, untold, expires, version FROM message_state WHERE account = $1 AND id = $2`,
		func(*int) []any { return []any{&n[0], &n[1], &n[2], &n[3], &n[4], &n[5]} }, m.Account, m.ID)
	p.must(err)
	return fmt.Sprint(n)
}

func twoCarriers(p fixture) {
	m := p.message(3)
	p.save(m)
	one, two, gone := startOf(m, "c1", 1, false), startOf(m, "c2", 1, false), startOf(newMessage(1, m.ID+9, 1), "c2", 1, false)
	one.Parts, two.Parts = []int{0}, []int{2, 1, 3, -1}
	begun, err := p.Begin(p.Context(), []Beginning{one, gone, two})
	p.must(err)
	p.same("begun", begun, [][]int{{0}, {}, {2, 1}})
	p.settlePart(m, 2, Outcome{State: Accepted, Carrier: "c2", CarrierID: "x", At: at(2)})
	p.settlePart(m, 3, Outcome{State: Accepted, At: at(2)})
	got, err := p.Get(p.Context(), 1, m.ID)
	p.must(err)
	p.same("carriers", []string{got.Parts[0].Carrier, got.Parts[1].Carrier, got.Parts[2].Carrier}, []string{"c1", "c2", "c2"})
	p.inStates(m.ID, "sending sending accepted ")
}

// A repeated call may come before its answer is used, or after.
func beginIsRepeated(p fixture) {
	m := p.message(2)
	p.save(m)
	p.same("by another", p.handOver(m, 1, false), []int{0, 1})
	again := Outcome{State: Pending, RetryAt: at(1), At: at(1)}
	p.settlePart(m, 0, again)
	start := startOf(m, "c1", 1, false)
	start.Parts = []int{0}
	for i, want := range []int{1, 1, 0} {
		if i == 2 {
			p.settlePart(m, 0, again)
		}
		begun, err := p.begin(p.Context(), "call", []Beginning{start})
		p.must(err)
		p.same("taken", len(begun[0]), want)
	}
	p.same("pending", p.pendingIDs(), []ID{m.ID})
	p.same("by the next", p.handOver(m, 1, false), []int{0})
}

func failureIsTriedAgain(p fixture) {
	m := p.message(2)
	p.save(m)
	p.claim(1, 10)
	p.handOver(m, 1, false)
	settle := func(part int, state State, again float64, refund bool) {
		p.Helper()
		p.settlePart(m, part, Outcome{State: state, RetryAt: at(again), Refund: refund, At: at(2)})
	}
	settle(0, Pending, 60, false)
	settle(1, Pending, 90, false)
	list, _, err := p.Pending(p.Context(), 1, 0, 10)
	p.must(err)
	if len(list) != 2 {
		p.Fatalf("list: %d results, want %d", len(list), 2)
	}
	relaytest.Equal(p, "list[0].Scheduled", list[0].Scheduled, at(60))
	relaytest.Equal(p, "list[0].OriginalScheduled", list[0].OriginalScheduled, at(0))
	p.same("before", p.claim(59, 10), []ID{})
	p.same("then", p.claim(60, 10), []ID{m.ID})
	settle(0, Rejected, 0, true) // no carrier would take it
	settle(0, Rejected, 0, true)
	p.hasCredit(9)
	p.inStates(m.ID, "rejected pending ")
	p.same("the other's time", p.claim(90, 10), []ID{m.ID})
	settle(1, Rejected, 0, false)
	p.hasCredit(9)
	p.same("at the end", p.claim(900, 10), []ID{})
}

// A transaction whose answer was lost is made again, with refunds of several
// accounts in it.
func outcomesAreRepeated(p fixture) {
	p.must(p.credit.Open(p.Context(), 2, 100, at(0)))
	mine := p.message(2)
	id, err := p.Reserve(p.Context(), 1)
	p.must(err)
	other := newMessage(2, id, 1)
	mine.Report.URL = "https://example.com/"
	p.save(mine)
	_, err = p.Save(p.Context(), OrderRecords{Account: 2, Messages: []Message{other}, Now: at(0)})
	p.must(err)
	outcomes := []Outcome{
		{PartRef: PartRef{Ref: other.Ref()}, State: Rejected, Reason: "no carrier", Refund: true, At: at(1)},
		{PartRef: PartRef{Ref: mine.Ref(), Part: 1}, State: Rejected, Reason: "no carrier", Refund: true, At: at(1)},
		{PartRef: PartRef{Ref: mine.Ref()}, State: Rejected, Reason: "refused", At: at(1)},
		{PartRef: PartRef{Ref: Ref{Account: 1, ID: 999}}, State: Rejected, Refund: true, At: at(1)},
	}
	for i, want := range []int{1, 0} {
		reported, err := p.Settle(p.Context(), outcomes)
		p.must(err)
		p.same("reports", len(reported), want)
		if i == 0 && (reported[0].Version != 2 || reported[0].Parts[1].Reason != "no carrier" || reported[0].Parts[0].Text != "part 0") {
			p.Fatalf("the first reported message is not as expected: %+v", reported[0])
		}
		p.hasCredit(9)
		balance, err := p.credit.Balance(p.Context(), 2)
		p.must(err)
		p.same("balance of the other", balance, 100)
	}
	p.forgotten(mine.ID, true)
}

func longestMessage(p fixture) {
	m := p.message(255)
	p.save(m)
	if got := p.handOver(m, 1, false); len(got) != 255 || got[254] != 254 {
		p.Fatalf("begun: %v", got)
	}
	outcomes := make([]Outcome, 255)
	for i := range outcomes {
		outcomes[i] = Outcome{
			PartRef: PartRef{Ref: m.Ref(), Part: i}, State: Accepted, Carrier: "c", CarrierID: "r", At: at(1),
		}
	}
	_, err := p.Settle(p.Context(), outcomes)
	p.must(err)
	p.inStates(m.ID, strings.Repeat("accepted ", 255))
	p.same("due", p.claim(60, 10), []ID{})
}

// A transaction may still run when its caller has gone; it must leave alone what the
// caller got.
func callersGiveUp(p fixture) {
	dbtest.Together(50, func(i int) {
		ctx, cancel := context.WithTimeout(p.Context(), time.Duration(i*40)*time.Microsecond)
		defer cancel()
		id, err := p.Reserve(ctx, 1)
		if err != nil {
			id = ID(1_000_000 + i)
		}
		m := newMessage(1, id, 1)
		_, err = p.Save(ctx, OrderRecords{Account: 1, Messages: []Message{m}, Now: at(0), Key: IdempotencyKey{Hash: "k" + id.String()}})
		_, err2 := p.Begin(ctx, []Beginning{startOf(m, "c1", 1, false)})
		_, err3 := p.Settle(ctx, []Outcome{{PartRef: PartRef{Ref: m.Ref()}, State: Rejected, Refund: true, At: at(1)}})
		_, err4 := p.LeaseDue(ctx, at(1), at(2), 10)
		_, err5 := p.Match(ctx, []Receipt{{Carrier: "c1", IDs: []string{"a"}}})
		for _, err := range []error{err, err2, err3, err4, err5} {
			if err != nil && relay.KindOf(err) != relay.KindUnavailable {
				p.Error(err)
			}
		}
	})
	balance, err := db.Value[int](p.Context(), p.db, "test", `
SELECT balance + (SELECT COUNT(*) FROM message_state WHERE account = 1 AND (states & 64) = 0) FROM credit WHERE account = 1`)
	p.must(err)
	p.same("balance and messages to pay", balance, 1000)
}

// A gateway renews hundreds of leases at a time while an account may have hundreds of
// thousands of messages queued.
func TestLeasesAreRenewedByTheKeysOfTheMessages(t *testing.T) {
	p := newFixture(t, "", 0)
	statement := strings.Replace(moveLeases, "FROM batch", "FROM (SELECT value ->> 0 AS account, value ->> 1 AS id, value ->> 2 AS ends FROM jsonb_each('[]')) AS batch", 1)
	plan, err := db.List(t.Context(), p.db, "test", "EXPLAIN QUERY PLAN "+statement, func(v *string) []any {
		var skip any
		return []any{&skip, &skip, &skip, v}
	}, int64(1))
	p.must(err)
	for _, step := range plan {
		if strings.Contains(step, "message_due") {
			t.Errorf("%q reads what is due, want only the keys", plan)
		}
	}
}
