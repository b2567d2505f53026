package redisstore

import (
	"reflect"
	"strings"
	"testing"

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
		p.forgotten(alone.ID, true)
		p.forgotten(m.ID, false)
	})
}

func TestMessagesAreClaimedWhenTheyAreDue(t *testing.T) {
	onEveryDesk(t, 10, func(p desk) {
		soon, later := p.letter(1), p.letter(1)
		later.ScheduledFor = at(100)
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
		if got.Parts[0].Ref != "r0" || got.Parts[1].Reason != "the answer was lost" {
			p.Fatalf("%+v", got)
		}
		// A person decides that the unknown one is sent again.
		_, err = p.Settle(p.Context(), []message.Outcome{{PartRef: message.PartRef{Ref: m.Ref(), Part: 1}, State: message.Pending, Again: at(1000), At: at(1000)}})
		p.must(err)
		p.same("pending", p.pending(), []message.ID{m.ID + 1})
		p.same("due", p.claimed(1000, 10), []message.ID{m.ID})
		p.forgotten(m.ID, false)
		p.has(8)
	})
}

// The client repeats a call whose answer was lost, and the server may get to the
// first one last.
func TestABeginningThatComesTwice(t *testing.T) {
	onEveryDesk(t, 10, func(p desk) {
		m := p.letter(2)
		p.put(m)
		start := message.Start{Ref: m.Ref(), Parts: []int{0}, Carrier: "c1", Now: at(1), Until: at(10)}
		p.same("by another", p.start(m, 1, false), []int{0, 1})
		p.settled(m, message.Pending)
		calls, _ := beginnings([]message.Start{start})
		for i, want := range []int{1, 1, 0} {
			if i == 2 {
				p.settled(m, message.Pending)
			}
			out, err := p.db.eval(p.Context(), p.begin, calls)
			p.must(err)
			lists, err := out[0].Slice()
			p.must(err)
			p.same("taken", len(lists[0].([]any)), want)
		}
		p.same("pending", p.pending()[0], m.ID)
		p.same("by the next", p.start(m, 1, false), []int{0})
	})
}

func (p desk) settled(m message.Message, state message.State) {
	p.Helper()
	_, err := p.Settle(p.Context(), []message.Outcome{{PartRef: message.PartRef{Ref: m.Ref()}, State: state, Again: at(1), At: at(1)}})
	p.must(err)
}

func TestNothingIsLeftOfForgottenMessages(t *testing.T) {
	onEveryDesk(t, 2*maxOfCall, func(p desk) {
		var ms []message.Message
		var outcomes []message.Outcome
		for range maxOfCall - 1 {
			ms = append(ms, p.letter(1))
		}
		ms = append(ms, p.letter(3))
		for i := range ms {
			ms[i].Report.URL = "https://example.com/"
			for n := range ms[i].Parts {
				outcomes = append(outcomes, message.Outcome{
					PartRef: message.PartRef{Ref: ms[i].Ref(), Part: n}, State: message.Rejected, Reason: "no carrier", At: at(1),
				})
			}
		}
		p.put(ms...)
		p.start(ms[0], 1, false)
		told, err := p.Settle(p.Context(), outcomes)
		p.must(err)
		p.same("to be told", len(told), len(ms))
		if last := told[len(told)-1].Parts[2]; last.Reason != "no carrier" || last.State != message.Rejected {
			p.Fatalf("%+v", last)
		}
		p.must(p.Forget(p.Context(), at(p.db.retention.Seconds()+1)))
		for _, key := range []string{
			keyMessages(1), keyMessageParts(1), keyMessageNotes(1), keyMessagesDue(1), keyMessagesPending(1), keyMessagesAll(1),
			keyMessagesEnded(1), keyMessagesUntold(1),
		} {
			if n, err := p.db.rdb.Exists(p.Context(), key).Result(); err != nil || n != 0 {
				p.Errorf("%s is left, %v", key, err)
			}
		}
	})
}

func TestTheLongestMessageThereIs(t *testing.T) {
	onEveryDesk(t, 255, func(p desk) {
		m := p.letter(255)
		p.put(m)
		if got := p.start(m, 1, false); len(got) != 255 || got[254] != 254 {
			p.Fatalf("begun: %v", got)
		}
		outcomes := make([]message.Outcome, 255)
		for i := range outcomes {
			outcomes[i] = message.Outcome{
				PartRef: message.PartRef{Ref: m.Ref(), Part: i}, State: message.Accepted, Carrier: "c", Ref: "r", At: at(1),
			}
		}
		_, err := p.Settle(p.Context(), outcomes)
		p.must(err)
		p.are(m.ID, strings.Repeat("accepted ", 255))
		p.same("due", p.claimed(60, 10), []message.ID{})
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
