package redisstore

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/credit"
	"github.com/penstock/penstock/relay/message"
)

var (
	_ message.Store    = (*Messages)(nil)
	_ message.Work     = (*Messages)(nil)
	_ message.Receipts = (*Messages)(nil)
	_ message.Reports  = (*Messages)(nil)
	_ message.Balance  = (*Credit)(nil)
)

// desk is messages of account 1, which has some credit.
type desk struct {
	*testing.T
	*Messages
	credit *Credit
}

func newDesk(t *testing.T, db *DB, credits int64) desk {
	t.Helper()
	p := desk{t, db.Messages(), db.Credit()}
	if err := p.credit.Open(t.Context(), 1, credits, at(0)); err != nil {
		t.Fatal(err)
	}
	return p
}

// letter makes a message with so many parts; its id is reserved.
func (p desk) letter(parts int) message.Message {
	p.Helper()
	id, err := p.Reserve(p.Context(), parts)
	if err != nil {
		p.Fatal(err)
	}
	m := message.Message{
		ID: id, Account: 1, Originator: "Shop", Destination: "447700900123", Coding: message.GSM,
		ReceivedAt: at(0), ScheduledFor: at(0), Due: at(0),
	}
	for n := range parts {
		text := fmt.Sprintf("part %d", n)
		m.Parts = append(m.Parts, message.Part{
			UDH: []byte{5, 0, 3, 1, byte(parts), byte(n + 1)}, Data: []byte(text), Text: text,
			State: message.Pending, ScheduledAt: at(0), ChangedAt: at(0),
		})
	}
	return m
}

func (p desk) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// put saves messages and reads the first back.
func (p desk) put(ms ...message.Message) {
	p.Helper()
	_, err := p.Save(p.Context(), message.Batch{Account: 1, Messages: ms, Now: at(0)})
	p.must(err)
}

func (p desk) has(want int64) {
	p.Helper()
	if got, err := p.credit.Balance(p.Context(), 1); err != nil || got != want {
		p.Fatalf("%d credits, want %d, %v", got, want, err)
	}
	p.addsUp()
}

// addsUp checks that the entries of the ledger lead to the balance.
func (p desk) addsUp() {
	p.Helper()
	list, err := p.credit.Entries(p.Context(), 1, 0, creditKept)
	p.must(err)
	sum := int64(0)
	for i := len(list) - 1; i >= 0; i-- {
		if sum += list[i].Credits; sum != list[i].Balance || sum < 0 {
			p.Fatalf("entry %+v, the sum is %d", list[i], sum)
		}
	}
	if got, err := p.credit.Balance(p.Context(), 1); err != nil || got != sum {
		p.Fatalf("the balance is %d, the entries come to %d, %v", got, sum, err)
	}
}

// states are those of a message's parts.
func (p desk) states(id message.ID) string {
	p.Helper()
	m, err := p.Get(p.Context(), 1, id)
	p.must(err)
	text := ""
	for _, part := range m.Parts {
		text += string(part.State) + " "
	}
	return text
}

func (p desk) are(id message.ID, want string) {
	p.Helper()
	if got := p.states(id); got != want {
		p.Fatalf("message %d: %q, want %q", id, got, want)
	}
}

// pending are the ids of the pending entries.
func (p desk) pending() (ids []message.ID) {
	p.Helper()
	list, total, err := p.Messages.Pending(p.Context(), 1, 0, 500)
	p.must(err)
	for _, e := range list {
		ids = append(ids, e.ID)
	}
	if total != len(ids) {
		p.Fatalf("%d entries, total %d", len(ids), total)
	}
	return ids
}

// claimed are the ids of what is due.
func (p desk) claimed(now float64, limit int) (ids []message.ID) {
	p.Helper()
	list, err := p.Claim(p.Context(), at(now), at(now+10), limit)
	p.must(err)
	for i := range list {
		ids = append(ids, list[i].ID)
	}
	return ids
}

// begin hands all parts of a message to a carrier.
func (p desk) start(m message.Message, now float64, again bool) []int {
	p.Helper()
	s := message.Start{Ref: m.Ref(), Carrier: "c1", Now: at(now), Until: at(now + 10), Again: again}
	for n := range m.Parts {
		s.Parts = append(s.Parts, n)
	}
	begun, err := p.Begin(p.Context(), []message.Start{s})
	p.must(err)
	return begun[0]
}

func (p desk) same(what string, got, want any) {
	p.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		p.Fatalf("%s: %v, want %v", what, got, want)
	}
}

func onEveryDesk(t *testing.T, credits int64, test func(p desk)) {
	onEvery(t, func(t *testing.T, open func(t *testing.T) *DB) { test(newDesk(t, open(t), credits)) })
}

func TestMessagesAreSavedAndCharged(t *testing.T) {
	onEveryDesk(t, 5, func(p desk) {
		m, other := p.letter(2), p.letter(1)
		p.put(m, other)
		got, err := p.Get(p.Context(), 1, m.ID)
		p.must(err)
		if !reflect.DeepEqual(got, m) {
			p.Fatalf("%+v\nwant %+v", got, m)
		}
		p.has(2)
		p.put(m, other) // once more is the same
		p.has(2)
		p.same("pending", p.pending(), []message.ID{m.ID, m.ID + 1, other.ID})
		list, _, err := p.Messages.Pending(p.Context(), 1, 1, 1)
		p.must(err)
		p.same("a page of it", list, []message.Entry{m.EntryOf(1)})
		entries, err := p.credit.Entries(p.Context(), 1, 0, 1)
		p.must(err)
		p.same("the entry", entries[0], credit.Entry{
			Sequence: 2, ID: "sent-" + m.ID.String(), At: at(0), Credits: -3, Balance: 2, Reason: credit.Sent,
			Reference: m.ID.String() + "-" + other.ID.String(),
		})
		dear := p.letter(3)
		_, err = p.Save(p.Context(), message.Batch{Account: 1, Messages: []message.Message{dear}, Now: at(1)})
		if relay.KindOf(err) != relay.KindNoCredit {
			p.Fatal(err)
		}
		if _, err := p.Get(p.Context(), 1, dear.ID); relay.KindOf(err) != relay.KindNotFound {
			p.Fatal(err)
		}
		if _, err := p.Get(p.Context(), 2, m.ID); relay.KindOf(err) != relay.KindNotFound {
			p.Fatal(err)
		}
		p.has(2)
	})
}

func TestAPartIsDeletedAndRefundedOnce(t *testing.T) {
	onEveryDesk(t, 3, func(p desk) {
		m := p.letter(3)
		p.put(m)
		for _, entry := range []message.ID{m.ID + 1, m.ID + 1, m.ID + 9} {
			err := p.Delete(p.Context(), 1, entry, at(1))
			if good := entry == m.ID+1 && p.states(m.ID) == "pending removed pending "; (err == nil) != good && relay.KindOf(err) != relay.KindNotFound {
				p.Fatal(entry, err)
			}
		}
		p.has(1)
		p.same("pending", p.pending(), []message.ID{m.ID, m.ID + 2})
		if err := p.Delete(p.Context(), 2, m.ID, at(1)); relay.KindOf(err) != relay.KindNotFound {
			p.Fatalf("another account's: %v", err)
		}
		p.same("begun", p.start(m, 1, false), []int{0, 2})
		for _, entry := range []message.ID{m.ID, m.ID + 2} {
			if err := p.Delete(p.Context(), 1, entry, at(1)); relay.KindOf(err) != relay.KindNotFound {
				p.Fatalf("of one that is being sent: %v", err)
			}
		}
		p.has(1)
		alone := p.letter(1)
		p.put(alone)
		p.must(p.Delete(p.Context(), 1, alone.ID, at(1)))
		p.has(1)
		p.are(alone.ID, "removed ")
		p.same("due", p.claimed(60, 10), []message.ID{m.ID})
		if ttl, err := p.db.rdb.PTTL(p.Context(), keyMessage(1, alone.ID)).Result(); err != nil || ttl <= 0 {
			p.Fatalf("kept for %v, %v", ttl, err)
		}
	})
}

func TestMessagesAreClaimedWhenTheyAreDue(t *testing.T) {
	onEveryDesk(t, 10, func(p desk) {
		soon, later := p.letter(1), p.letter(1)
		later.ScheduledFor, later.Due = at(100), at(100)
		p.put(soon, later)
		leased := p.letter(1)
		_, err := p.Save(p.Context(), message.Batch{Account: 1, Messages: []message.Message{leased}, Now: at(0), Lease: at(20)})
		p.must(err)
		p.same("at once", p.claimed(1, 10), []message.ID{soon.ID})
		p.same("under a lease", p.claimed(2, 10), []message.ID{})
		p.must(p.Renew(p.Context(), []message.Ref{soon.Ref()}, at(40)))
		p.same("when one lease has run out", p.claimed(30, 10), []message.ID{leased.ID})
		p.must(p.Release(p.Context(), []message.Ref{leased.Ref(), {Account: 1, ID: 999}}, at(31)))
		p.same("when it is given back", p.claimed(31, 10), []message.ID{leased.ID})
		p.same("one of two", len(p.claimed(60, 1)), 1)
		p.same("all", len(p.claimed(200, 10)), 3)
	})
}

func TestAccountsShareWhatIsClaimed(t *testing.T) {
	p := newDesk(t, openEmbedded(t), 100)
	p.must(p.credit.Open(p.Context(), 2, 100, at(0)))
	for range 20 {
		p.put(p.letter(1))
	}
	for range 3 {
		m := p.letter(1)
		m.Account = 2
		_, err := p.Save(p.Context(), message.Batch{Account: 2, Messages: []message.Message{m}, Now: at(0)})
		p.must(err)
	}
	list, err := p.Claim(p.Context(), at(1), at(10), 10)
	p.must(err)
	of := make(map[account.ID]int)
	for i := range list {
		of[list[i].Account]++
	}
	p.same("claimed", of, map[account.ID]int{1: 7, 2: 3})
}

func TestWhatWasHandedOverIsNotHandedOverAgain(t *testing.T) {
	onEveryDesk(t, 10, func(p desk) {
		m := p.letter(2)
		p.put(m)
		p.same("claimed", p.claimed(1, 10), []message.ID{m.ID})
		p.same("begun", p.start(m, 1, false), []int{0, 1})
		p.same("by another", p.start(m, 1, false), []int{})
		p.same("pending", p.pending(), []message.ID{})
		list, err := p.Claim(p.Context(), at(20), at(30), 10) // its worker has died
		p.must(err)
		if len(list) != 1 || list[0].Parts[0].State != message.Sending || list[0].Parts[0].Carrier != "c1" {
			p.Fatalf("%+v", list)
		}
		p.same("by one that may", p.start(m, 20, true), []int{0, 1})
		_, err = p.Settle(p.Context(), []message.Outcome{
			{PartRef: message.PartRef{Ref: m.Ref(), Part: 0}, State: message.Accepted, Carrier: "c1", Ref: "r0", At: at(21)},
			{PartRef: message.PartRef{Ref: m.Ref(), Part: 1}, State: message.Unknown, Reason: "the answer was lost", At: at(21)},
		})
		p.must(err)
		p.are(m.ID, "accepted unknown ")
		p.same("due", p.claimed(1000, 10), []message.ID{})
		got, err := p.Get(p.Context(), 1, m.ID)
		p.must(err)
		if got.Parts[0].Ref != "r0" || got.Parts[1].Reason != "the answer was lost" || !got.Due.IsZero() {
			p.Fatalf("%+v", got)
		}
		// A person decides that the unknown one is sent again.
		_, err = p.Settle(p.Context(), []message.Outcome{{PartRef: message.PartRef{Ref: m.Ref(), Part: 1}, State: message.Pending, Again: at(1000), At: at(1000)}})
		p.must(err)
		p.same("pending", p.pending(), []message.ID{m.ID + 1})
		p.same("due", p.claimed(1000, 10), []message.ID{m.ID})
		if ttl, err := p.db.rdb.PTTL(p.Context(), keyMessage(1, m.ID)).Result(); err != nil || ttl > 0 {
			p.Fatalf("a message that waits is kept for %v, %v", ttl, err)
		}
		p.has(8)
	})
}

func TestAFailureThatIsTriedAgain(t *testing.T) {
	onEveryDesk(t, 10, func(p desk) {
		m := p.letter(2)
		p.put(m)
		p.claimed(1, 10)
		p.start(m, 1, false)
		settle := func(part int, state message.State, again float64, refund bool) {
			t.Helper()
			_, err := p.Settle(p.Context(), []message.Outcome{{
				PartRef: message.PartRef{Ref: m.Ref(), Part: part}, State: state, Again: at(again), Refund: refund, At: at(2),
			}})
			p.must(err)
		}
		settle(0, message.Pending, 60, false)
		settle(1, message.Pending, 90, false)
		list, _, err := p.Messages.Pending(p.Context(), 1, 0, 10)
		p.must(err)
		if len(list) != 2 || !list[0].Scheduled.Equal(at(60)) || !list[0].OriginalScheduled.Equal(at(0)) {
			p.Fatalf("%+v", list)
		}
		p.same("before", p.claimed(59, 10), []message.ID{})
		p.same("then", p.claimed(60, 10), []message.ID{m.ID})
		settle(0, message.Rejected, 0, true) // no carrier would take it
		settle(0, message.Rejected, 0, true)
		p.has(9)
		p.are(m.ID, "rejected pending ")
		p.same("the other's time", p.claimed(90, 10), []message.ID{m.ID})
		settle(1, message.Rejected, 0, false)
		p.has(9)
		p.same("at the end", p.claimed(900, 10), []message.ID{})
	})
}

func TestReceiptsFindTheirParts(t *testing.T) {
	onEveryDesk(t, 10, func(p desk) {
		m := p.letter(1)
		m.Report.URL = "https://example.com/"
		p.put(m)
		p.start(m, 1, false)
		part := message.PartRef{Ref: m.Ref()}
		early := message.Receipt{Carrier: "c1", IDs: []string{"a1", "161"}, State: message.Buffered, Line: "stat:ENROUTE", At: at(2)}
		got, err := p.Match(p.Context(), []message.Receipt{early})
		p.must(err)
		if got[0].Found {
			p.Fatal("found before it was bound")
		}
		bound, err := p.Bind(p.Context(), []message.Binding{{Carrier: "c1", IDs: []string{"A1", "161"}, Part: part}})
		p.must(err)
		if len(bound) != 1 || bound[0].Part != part || !bound[0].Found || bound[0].Line != early.Line || !bound[0].At.Equal(early.At) {
			p.Fatalf("%+v", bound)
		}
		_, err = p.Settle(p.Context(), []message.Outcome{{PartRef: part, State: message.Accepted, Carrier: "c1", Ref: "161", At: at(3)}})
		p.must(err)
		ms, err := p.Receive(p.Context(), bound, at(3))
		p.must(err)
		if len(ms) != 1 || ms[0].Parts[0].State != message.Buffered || ms[0].Parts[0].Report != early.Line || !ms[0].Parts[0].ChangedAt.Equal(at(2)) {
			p.Fatalf("%+v", ms)
		}
		late := message.Receipt{Carrier: "c1", IDs: []string{"0", "161"}, State: message.Delivered, Line: "stat:DELIVRD", At: at(4)}
		other := message.Receipt{Carrier: "c2", IDs: []string{"161"}, State: message.Delivered, At: at(4)}
		got, err = p.Match(p.Context(), []message.Receipt{late, other})
		p.must(err)
		if !got[0].Found || got[0].Part != part || got[1].Found {
			p.Fatalf("%+v", got)
		}
		ms, err = p.Receive(p.Context(), got, at(4))
		p.must(err)
		p.same("wants reports", len(ms), 1)
		p.are(m.ID, "delivered ")
		for _, state := range []message.State{message.Undelivered, message.Buffered, message.Accepted, message.Delivered} {
			got[0].State = state
			ms, err = p.Receive(p.Context(), got, at(5))
			p.must(err)
			p.same("after the end", len(ms), 0)
		}
		p.are(m.ID, "delivered ")
	})
}

func TestReportsStayUntilTheyAreTold(t *testing.T) {
	onEveryDesk(t, 10, func(p desk) {
		m, quiet := p.letter(1), p.letter(1)
		m.Report.URL = "https://example.com/"
		p.put(m, quiet)
		settle := func(id message.ID, state message.State) []message.Message {
			t.Helper()
			ms, err := p.Settle(p.Context(), []message.Outcome{{PartRef: message.PartRef{Ref: message.Ref{Account: 1, ID: id}}, State: state, At: at(5)}})
			p.must(err)
			return ms
		}
		untold := func(before float64) int {
			t.Helper()
			ms, err := p.Untold(p.Context(), at(before), 10)
			p.must(err)
			return len(ms)
		}
		p.start(m, 1, false)
		p.start(quiet, 1, false)
		p.same("of who wants none", len(settle(quiet.ID, message.Accepted)), 0)
		first := settle(m.ID, message.Accepted)
		p.same("untold", []int{len(first), untold(4), untold(5)}, []int{1, 0, 1})
		second, err := p.Receive(p.Context(), []message.Receipt{{State: message.Delivered, At: at(6), Part: message.PartRef{Ref: m.Ref()}, Found: true}}, at(6))
		p.must(err)
		p.must(p.Told(p.Context(), first))
		p.same("more has come since", untold(10), 1)
		p.must(p.Told(p.Context(), second))
		p.same("all is told", untold(10), 0)
	})
}

func TestAKeyMakesOneOrder(t *testing.T) {
	onEveryDesk(t, 10, func(p desk) {
		save := func(once message.Once) (string, error) {
			t.Helper()
			saved, err := p.Save(p.Context(), message.Batch{Account: 1, Messages: []message.Message{p.letter(1)}, Now: at(0), Once: once})
			return string(saved.Before), err
		}
		once := message.Once{Key: "k", Order: "o", Answer: []byte(`{"a":"|"}`), Keep: time.Hour}
		for i, want := range []string{"", `{"a":"|"}`, `{"a":"|"}`} {
			if got, err := save(once); err != nil || got != want {
				p.Fatalf("%d: %q, %v", i, got, err)
			}
		}
		p.has(9)
		once.Order = "another"
		if _, err := save(once); relay.KindOf(err) != relay.KindConflict {
			p.Fatal(err)
		}
		once.Key = "another"
		if got, err := save(once); err != nil || got != "" {
			p.Fatalf("%q, %v", got, err)
		}
		p.has(8)
		p.same("pending", len(p.pending()), 2)
	})
}

// What 40 clients send at a time is paid for from one credit, and what they
// repeat under one key is sent once.
func TestManyOrdersAtATime(t *testing.T) {
	onEveryDesk(t, 50, func(p desk) {
		var sent, refused, repeated atomic.Int64
		var running sync.WaitGroup
		for i := range 40 {
			running.Go(func() {
				ctx := context.WithoutCancel(p.Context())
				for n := range 3 {
					b := message.Batch{Account: 1, Messages: []message.Message{p.letter(2)}, Now: at(0)}
					if n == 0 {
						b.Once = message.Once{Key: "k", Order: "o", Answer: []byte("a"), Keep: time.Hour}
					}
					saved, err := p.Save(ctx, b)
					switch {
					case err == nil && saved.Before != nil:
						repeated.Add(1)
					case err == nil:
						sent.Add(1)
					case relay.KindOf(err) == relay.KindNoCredit:
						refused.Add(1)
					default:
						t.Error(i, err)
					}
				}
			})
		}
		running.Wait()
		p.has(0)
		if sent.Load() != 25 || sent.Load()+refused.Load()+repeated.Load() != 120 {
			t.Errorf("%d sent, %d refused, %d repeated", sent.Load(), refused.Load(), repeated.Load())
		}
		p.same("pending", len(p.pending()), 50)
	})
}
