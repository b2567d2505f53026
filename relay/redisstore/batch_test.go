package redisstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/message"
	"github.com/penstock/penstock/relay/outbox"
)

func TestNothingBeginsOfAMessageThatIsGone(t *testing.T) {
	onEveryDesk(t, 10, func(p desk) {
		m := p.letter(1) // never saved, or lost with a failover
		begun, err := p.Begin(p.Context(), []message.Start{{Ref: m.Ref(), Parts: []int{0}, Carrier: "c1", Now: at(1), Until: at(10)}})
		p.must(err)
		if len(begun[0]) != 0 {
			p.Errorf("parts %v of a message that does not exist may be handed over", begun[0])
		}
		_, err = p.Settle(p.Context(), []message.Outcome{{PartRef: message.PartRef{Ref: m.Ref()}, State: message.Accepted, Carrier: "c1", Ref: "r", At: at(2)}})
		p.must(err)
		p.must(p.Forget(p.Context(), at(1e9)))
		left, err := p.db.rdb.HGetAll(p.Context(), keyMessageParts(1)).Result()
		p.must(err)
		if len(left) > 0 {
			p.Errorf("left for ever: %q", left)
		}
	})
}

func TestTheTimeOfOneOutcomeIsNotThatOfAnother(t *testing.T) {
	onEveryDesk(t, 10, func(p desk) {
		a, b := p.letter(1), p.letter(1)
		p.put(a, b)
		_, err := p.Begin(p.Context(), []message.Start{
			{Ref: a.Ref(), Parts: []int{0}, Carrier: "c1", Now: at(1), Until: at(100)},
			{Ref: b.Ref(), Parts: []int{0}, Carrier: "c1", Now: at(1), Until: at(100)},
		})
		p.must(err)
		_, err = p.Settle(p.Context(), []message.Outcome{
			{PartRef: message.PartRef{Ref: a.Ref()}, State: message.Pending, Carrier: "c1", Again: at(1.25), At: at(1)},
			{PartRef: message.PartRef{Ref: b.Ref()}, State: message.Accepted, Carrier: "c1", Ref: "r", At: at(1.5)},
		})
		p.must(err)
		p.same("due", p.claimed(2, 10), []message.ID{a.ID})
	})
}

func TestAMomentBefore1970(t *testing.T) {
	onEveryDesk(t, 10, func(p desk) {
		m := p.letter(1)
		p.put(m)
		p.start(m, 0, false)
		p.settled(m, message.Accepted)
		for i, s := range []message.State{message.Buffered, message.Delivered} {
			_, err := p.Receive(p.Context(), []message.Receipt{{State: s, At: time.Unix(-5, 0), Part: message.PartRef{Ref: m.Ref()}, Found: true}}, at(float64(2+i)))
			if err != nil {
				p.Error(i, err)
			}
		}
	})
}

func TestAMessageThatIsSentAgainAfterItsEnd(t *testing.T) {
	onEveryDesk(t, 10, func(p desk) {
		m := p.letter(2)
		p.put(m)
		p.start(m, 0, false)
		p.start(m, 1, false)
		for n, s := range []message.State{message.Accepted, message.Unknown} {
			_, err := p.Settle(p.Context(), []message.Outcome{{PartRef: message.PartRef{Ref: m.Ref(), Part: n}, State: s, Carrier: "c1", At: at(2)}})
			p.must(err)
		}
		late := p.db.retention.Seconds()
		_, err := p.Settle(p.Context(), []message.Outcome{{PartRef: message.PartRef{Ref: m.Ref(), Part: 1}, State: message.Pending, Again: at(late), At: at(late)}})
		p.must(err)
		p.must(p.Forget(p.Context(), at(2*late)))
		p.same("due", p.claimed(2*late, 10), []message.ID{m.ID})
		// the end again, then gone, then a receipt and an outcome that are too late
		p.start(m, 1, true)
		_, err = p.Settle(p.Context(), []message.Outcome{{PartRef: message.PartRef{Ref: m.Ref(), Part: 1}, State: message.Accepted, Carrier: "c1", Ref: "r", At: at(2 * late)}})
		p.must(err)
		p.must(p.Forget(p.Context(), at(4*late)))
		_, err = p.Receive(p.Context(), []message.Receipt{{State: message.Delivered, At: at(4 * late), Part: message.PartRef{Ref: m.Ref(), Part: 1}, Found: true}}, at(4*late))
		p.must(err)
		p.settled(m, message.Pending)
		for _, key := range []string{keyMessages(1), keyMessageParts(1), keyMessageNotes(1), keyMessagesDue(1), keyMessagesPending(1), keyMessagesEnded(1), keyMessagesAll(1)} {
			if n, err := p.db.rdb.Exists(p.Context(), key).Result(); err != nil || n != 0 {
				p.Error(key, err)
			}
		}
	})
}

func TestOneBadDeliverySpoilsNoOther(t *testing.T) {
	onEvery(t, func(t *testing.T, open func(t *testing.T) *DB) {
		db := open(t)
		s := db.Outbox()
		ctx := t.Context()
		now := time.Now()
		var os []outbox.Outcome
		for _, id := range []string{"a", "b"} {
			ds := []outbox.Delivery{{ID: id, Account: 1, Kind: outbox.KindNotice, CreatedAt: now, Mail: &outbox.Mail{To: "x@example.com"}}}
			if _, err := s.Create(ctx, ds, now.Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			os = append(os, outbox.Outcome{ID: id, Account: 1, Attempt: outbox.Attempt{At: now}, State: outbox.Delivered, Endpoint: "e"})
		}
		if err := db.rdb.HSet(ctx, keyDelivery(1, "b"), "state", "odd").Err(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Finish(ctx, os); err == nil {
			t.Fatal("no error")
		}
		// as who saves outcomes does then, one by one
		if _, err := s.Finish(ctx, os[:1]); err != nil {
			t.Fatal(err)
		}
		due := db.rdb.ZRange(ctx, keyOutboxDue(1), 0, -1)
		done := db.rdb.ZRange(ctx, keyOutboxState(1, outbox.Delivered), 0, -1)
		if fmt.Sprint(due.Val()) != "[b]" || fmt.Sprint(done.Val()) != "[a]" {
			t.Errorf("due %v, delivered %v", due, done)
		}
		if _, taken, err := s.Lease(ctx, 1, "a", now.Add(2*time.Minute), now.Add(3*time.Minute)); err != nil || taken {
			t.Errorf("what was delivered is taken again: %t, %v", taken, err)
		}
	})
}
