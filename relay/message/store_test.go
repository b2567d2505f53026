package message

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/credit"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestStore(t *testing.T) {
	onEveryEngine(t, []testCase{
		{"messages are saved and charged once", 5, messagesAreSavedAndCharged},
		{"reserved ids grow and are consecutive", 0, idsGrow},
		{"a part is deleted and refunded once", 3, partIsDeletedOnce},
		{"pending entries are listed by page", 20, pendingPages},
		{"a key creates one order", 10, keyMakesOneOrder},
		{"a key expires", 10, keyExpires},
		{"concurrent orders share the credit", 50, manyOrdersAtATime},
	})
}

func messagesAreSavedAndCharged(f fixture) {
	m, second := f.message(2), f.message(1)
	f.save(m, second)
	got, err := f.Get(f.Context(), 1, m.ID)
	f.must(err)
	relaytest.Equal(f, "the stored message", got, m)
	f.wantCredit(2)
	f.save(m, second) // a repeated save changes nothing
	f.wantCredit(2)
	f.equal("pending", f.pendingIDs(), []ID{m.ID, m.ID + 1, second.ID})
	entries, err := f.credit.Entries(f.Context(), 1, 0, 1)
	f.must(err)
	f.equal("the entry", entries[0], credit.Entry{
		Sequence: 2, ID: "sent-" + m.ID.String(), At: timeAt(0), Credits: -3, Balance: 2, Reason: credit.Sent,
		Reference: m.ID.String() + "-" + second.ID.String(),
	})
	dear := f.message(3)
	_, err = f.Save(f.Context(), OrderRecords{Account: 1, Messages: []Message{dear}, Now: timeAt(1), Key: IdempotencyKey{Hash: "k", Retention: time.Hour}})
	f.wantKind(err, relay.KindNoCredit)
	f.equal("keys", f.countRows("message_order"), 0)
	_, err = f.Get(f.Context(), 1, dear.ID)
	f.wantKind(err, relay.KindNotFound)
	_, err = f.Get(f.Context(), 2, m.ID)
	f.wantKind(err, relay.KindNotFound)
	_, err = f.Save(f.Context(), OrderRecords{Account: 1, Now: timeAt(1)})
	f.wantKind(err, relay.KindInvalid)
	_, err = f.Save(f.Context(), OrderRecords{Account: 1, Messages: []Message{dear, second}, Now: timeAt(1)})
	f.wantKind(err, relay.KindUnexpected)
	f.wantCredit(2)
}

func idsGrow(f fixture) {
	lastID := ID(0)
	for _, n := range []int{1, 2, 1, 3, 1, 1, 500, 1, 10_000, 1} {
		firstID, err := f.Reserve(f.Context(), n)
		f.must(err)
		if firstID <= lastID {
			f.Fatalf("reserved %d after %d", firstID, lastID)
		}
		lastID = firstID + ID(n) - 1
	}
	b := <-f.ids
	if b.nextID >= b.end {
		f.Errorf("no id is left in the block after %d: each order would need a commit", lastID)
	}
	f.ids <- b
	f.clockOffset.Add(int64(time.Minute))
	if firstID, err := f.Reserve(f.Context(), 1); err != nil || firstID <= lastID {
		f.Fatalf("reserved %d after %d, error = %v", firstID, lastID, err)
	}
	ctx, cancel := context.WithCancel(f.Context())
	b = <-f.ids
	cancel()
	_, err := f.Reserve(ctx, 1)
	f.wantKind(err, relay.KindUnavailable)
	f.ids <- b
}

func partIsDeletedOnce(f fixture) {
	m := f.message(3)
	f.save(m)
	f.must(f.Delete(f.Context(), 1, m.ID+1, timeAt(1)))
	f.wantStates(m.ID, "pending removed pending ")
	for _, entry := range []ID{m.ID + 1, m.ID + 9, m.ID - 1} {
		f.wantKind(f.Delete(f.Context(), 1, entry, timeAt(1)), relay.KindNotFound)
	}
	f.wantCredit(1)
	f.equal("pending", f.pendingIDs(), []ID{m.ID, m.ID + 2})
	f.wantKind(f.Delete(f.Context(), 2, m.ID, timeAt(1)), relay.KindNotFound)
	f.equal("begun", f.handOver(m, 1, false), []int{0, 2})
	for _, entry := range []ID{m.ID, m.ID + 2} { // both parts are Sending
		f.wantKind(f.Delete(f.Context(), 1, entry, timeAt(1)), relay.KindNotFound)
	}
	f.wantCredit(1)
	alone := f.message(1)
	f.save(alone)
	f.must(f.Delete(f.Context(), 1, alone.ID, timeAt(1)))
	f.wantCredit(1)
	f.wantStates(alone.ID, "removed ")
	f.equal("due", f.claim(60, 10), []ID{m.ID})
	f.wantForgotten(alone.ID, true)
	f.wantForgotten(m.ID, false)
}

func pendingPages(f fixture) {
	for range 3 {
		f.save(f.message(3), f.message(1))
	}
	pending := f.pendingIDs()
	f.must(f.Delete(f.Context(), 1, pending[5], timeAt(1)))
	pending = append(pending[:5:5], pending[6:]...)
	for offset := range len(pending) + 2 {
		for limit := range 6 {
			list, total, err := f.Pending(f.Context(), 1, offset, limit)
			f.must(err)
			f.equal("total", total, len(pending))
			var ids []ID
			for _, e := range list {
				ids = append(ids, e.ID)
			}
			start := min(offset, len(pending))
			f.equal("page", ids, pending[start:min(start+limit, len(pending))])
		}
	}
	m, err := f.Get(f.Context(), 1, pending[0])
	f.must(err)
	list, _, err := f.Pending(f.Context(), 1, 1, 1)
	f.must(err)
	f.equal("the second pending part", list, []View{m.View(1)})
}

func keyMakesOneOrder(f fixture) {
	save := func(b OrderRecords) (string, error) {
		saved, err := f.Save(f.Context(), b)
		return string(saved), err
	}
	key := IdempotencyKey{Hash: "k", OrderHash: "o", Answer: []byte(`{"a":"|"}`), Retention: time.Hour}
	batch := func() OrderRecords {
		return OrderRecords{Account: 1, Messages: []Message{f.message(1)}, Now: timeAt(0), Key: key}
	}
	order := batch()
	for i, want := range []string{"", `{"a":"|"}`, `{"a":"|"}`} {
		b := batch()
		if i == 0 {
			b = order
		}
		if got, err := save(b); err != nil || got != want {
			f.Fatalf("save %d: answer = %q, error = %v, want %q", i, got, err, want)
		}
	}
	if saved, err := f.Save(f.Context(), order); err != nil || saved != nil {
		f.Fatalf("repeated save of the same records: answer = %q, error = %v", saved, err)
	}
	f.wantCredit(9)
	key.OrderHash = "another"
	_, err := save(batch())
	f.wantKind(err, relay.KindConflict)
	key.Hash = "another"
	if got, err := save(batch()); err != nil || got != "" {
		f.Fatalf("save with another key: answer = %q, error = %v", got, err)
	}
	f.wantCredit(8)
	f.equal("pending", len(f.pendingIDs()), 2)
}

func keyExpires(f fixture) {
	save := func(now float64, order string) []byte {
		saved, err := f.Save(f.Context(), OrderRecords{
			Account: 1, Messages: []Message{f.message(1)}, Now: timeAt(now),
			Key: IdempotencyKey{Hash: "k", OrderHash: order, Retention: time.Minute},
		})
		f.must(err)
		return saved
	}
	if save(0, "a") != nil || save(59, "a") == nil || save(60, "b") != nil || save(119, "b") == nil {
		f.Fatal("the key was not stored for exactly a minute")
	}
	f.wantCredit(8)
	f.must(f.Sweep(f.Context(), timeAt(119)))
	f.equal("keys", f.countRows("message_order"), 1)
	f.must(f.Sweep(f.Context(), timeAt(121)))
	f.equal("keys", f.countRows("message_order"), 0)
}

// 40 concurrent clients share the credit of one account. The order that all of them send with
// one key is saved once.
func manyOrdersAtATime(f fixture) {
	var saved, refused, repeated atomic.Int64
	dbtest.RunConcurrently(40, func(i int) {
		ctx := context.WithoutCancel(f.Context())
		for n := range 3 {
			b := OrderRecords{Account: 1, Messages: []Message{f.message(2)}, Now: timeAt(0)}
			if n == 0 {
				b.Key = IdempotencyKey{Hash: "k", OrderHash: "o", Answer: []byte("a"), Retention: time.Hour}
			}
			answer, err := f.Save(ctx, b)
			switch {
			case err == nil && answer != nil:
				repeated.Add(1)
			case err == nil:
				saved.Add(1)
			case relay.KindOf(err) == relay.KindNoCredit:
				refused.Add(1)
			default:
				f.Error(i, err)
			}
		}
	})
	f.wantCredit(0)
	if saved.Load() != 25 || saved.Load()+refused.Load()+repeated.Load() != 120 {
		f.Errorf("%d saved, %d refused, %d repeated, want 25 saved of 120", saved.Load(), refused.Load(), repeated.Load())
	}
	f.equal("pending", len(f.pendingIDs()), 50)
}
