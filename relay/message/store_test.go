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
	onEvery(t, []testCase{
		{"messages are saved and charged once", 5, messagesAreSavedAndCharged},
		{"ids grow and are in a row", 0, idsGrow},
		{"a part is deleted and refunded once", 3, partIsDeletedOnce},
		{"pending entries are listed by page", 20, pendingPages},
		{"a key makes one order", 10, keyMakesOneOrder},
		{"a key is known for its time", 10, keyExpires},
		{"many orders at a time", 50, manyOrdersAtATime},
	})
}

func messagesAreSavedAndCharged(p fixture) {
	m, other := p.message(2), p.message(1)
	p.save(m, other)
	got, err := p.Get(p.Context(), 1, m.ID)
	p.must(err)
	relaytest.Equal(p, "the stored message", got, m)
	p.hasCredit(2)
	p.save(m, other) // once more is the same
	p.hasCredit(2)
	p.same("pending", p.pendingIDs(), []ID{m.ID, m.ID + 1, other.ID})
	entries, err := p.credit.Entries(p.Context(), 1, 0, 1)
	p.must(err)
	p.same("the entry", entries[0], credit.Entry{
		Sequence: 2, ID: "sent-" + m.ID.String(), At: at(0), Credits: -3, Balance: 2, Reason: credit.Sent,
		Reference: m.ID.String() + "-" + other.ID.String(),
	})
	dear := p.message(3)
	_, err = p.Save(p.Context(), OrderRecords{Account: 1, Messages: []Message{dear}, Now: at(1), Key: IdempotencyKey{Hash: "k", Keep: time.Hour}})
	p.kind(err, relay.KindNoCredit)
	p.same("keys", p.rows("message_order"), 0)
	_, err = p.Get(p.Context(), 1, dear.ID)
	p.kind(err, relay.KindNotFound)
	_, err = p.Get(p.Context(), 2, m.ID)
	p.kind(err, relay.KindNotFound)
	_, err = p.Save(p.Context(), OrderRecords{Account: 1, Now: at(1)})
	p.kind(err, relay.KindInvalid)
	_, err = p.Save(p.Context(), OrderRecords{Account: 1, Messages: []Message{dear, other}, Now: at(1)})
	p.kind(err, relay.KindUnexpected)
	p.hasCredit(2)
}

func idsGrow(p fixture) {
	last := ID(0)
	for _, n := range []int{1, 2, 1, 3, 1, 1, 500, 1, 10_000, 1} {
		first, err := p.Reserve(p.Context(), n)
		p.must(err)
		if first <= last {
			p.Fatalf("%d comes after %d", first, last)
		}
		last = first + ID(n) - 1
	}
	b := <-p.ids
	if b.nextID >= b.end {
		p.Errorf("after %d ids none is left of a block: each order would take a commit", last)
	}
	p.ids <- b
	p.ahead.Add(int64(time.Minute))
	if first, err := p.Reserve(p.Context(), 1); err != nil || first <= last {
		p.Fatalf("%d comes after %d, %v", first, last, err)
	}
	ctx, cancel := context.WithCancel(p.Context())
	b = <-p.ids
	cancel()
	_, err := p.Reserve(ctx, 1)
	p.kind(err, relay.KindUnavailable)
	p.ids <- b
}

func partIsDeletedOnce(p fixture) {
	m := p.message(3)
	p.save(m)
	p.must(p.Delete(p.Context(), 1, m.ID+1, at(1)))
	p.inStates(m.ID, "pending removed pending ")
	for _, entry := range []ID{m.ID + 1, m.ID + 9, m.ID - 1} {
		p.kind(p.Delete(p.Context(), 1, entry, at(1)), relay.KindNotFound)
	}
	p.hasCredit(1)
	p.same("pending", p.pendingIDs(), []ID{m.ID, m.ID + 2})
	p.kind(p.Delete(p.Context(), 2, m.ID, at(1)), relay.KindNotFound)
	p.same("begun", p.handOver(m, 1, false), []int{0, 2})
	for _, entry := range []ID{m.ID, m.ID + 2} { // they are being sent
		p.kind(p.Delete(p.Context(), 1, entry, at(1)), relay.KindNotFound)
	}
	p.hasCredit(1)
	alone := p.message(1)
	p.save(alone)
	p.must(p.Delete(p.Context(), 1, alone.ID, at(1)))
	p.hasCredit(1)
	p.inStates(alone.ID, "removed ")
	p.same("due", p.claim(60, 10), []ID{m.ID})
	p.forgotten(alone.ID, true)
	p.forgotten(m.ID, false)
}

func pendingPages(p fixture) {
	for range 3 {
		p.save(p.message(3), p.message(1))
	}
	all := p.pendingIDs()
	p.must(p.Delete(p.Context(), 1, all[5], at(1)))
	all = append(all[:5:5], all[6:]...)
	for offset := range len(all) + 2 {
		for limit := range 6 {
			list, total, err := p.Pending(p.Context(), 1, offset, limit)
			p.must(err)
			p.same("total", total, len(all))
			var ids []ID
			for _, e := range list {
				ids = append(ids, e.ID)
			}
			from := min(offset, len(all))
			p.same("page", ids, all[from:min(from+limit, len(all))])
		}
	}
	m, err := p.Get(p.Context(), 1, all[0])
	p.must(err)
	list, _, err := p.Pending(p.Context(), 1, 1, 1)
	p.must(err)
	p.same("a page of it", list, []PendingMessage{m.PendingMessage(1)})
}

func keyMakesOneOrder(p fixture) {
	save := func(b OrderRecords) (string, error) {
		saved, err := p.Save(p.Context(), b)
		return string(saved), err
	}
	once := IdempotencyKey{Hash: "k", OrderHash: "o", Answer: []byte(`{"a":"|"}`), Keep: time.Hour}
	batch := func() OrderRecords {
		return OrderRecords{Account: 1, Messages: []Message{p.message(1)}, Now: at(0), Key: once}
	}
	first := batch()
	for i, want := range []string{"", `{"a":"|"}`, `{"a":"|"}`} {
		b := batch()
		if i == 0 {
			b = first
		}
		if got, err := save(b); err != nil || got != want {
			p.Fatalf("%d: %q, %v", i, got, err)
		}
	}
	if saved, err := p.Save(p.Context(), first); err != nil || saved != nil {
		p.Fatalf("the order itself, repeated: %+v, %v", saved, err)
	}
	p.hasCredit(9)
	once.OrderHash = "another"
	_, err := save(batch())
	p.kind(err, relay.KindConflict)
	once.Hash = "another"
	if got, err := save(batch()); err != nil || got != "" {
		p.Fatalf("%q, %v", got, err)
	}
	p.hasCredit(8)
	p.same("pending", len(p.pendingIDs()), 2)
}

func keyExpires(p fixture) {
	save := func(now float64, order string) []byte {
		saved, err := p.Save(p.Context(), OrderRecords{
			Account: 1, Messages: []Message{p.message(1)}, Now: at(now),
			Key: IdempotencyKey{Hash: "k", OrderHash: order, Keep: time.Minute},
		})
		p.must(err)
		return saved
	}
	if save(0, "a") != nil || save(59, "a") == nil || save(60, "b") != nil || save(119, "b") == nil {
		p.Fatal("the key was not known for a minute")
	}
	p.hasCredit(8)
	p.must(p.Sweep(p.Context(), at(119)))
	p.same("keys", p.rows("message_order"), 1)
	p.must(p.Sweep(p.Context(), at(121)))
	p.same("keys", p.rows("message_order"), 0)
}

// The orders of 40 clients at a time are paid from one credit, and the one that
// they repeat under one key is sent once.
func manyOrdersAtATime(p fixture) {
	var sent, refused, repeated atomic.Int64
	dbtest.Together(40, func(i int) {
		ctx := context.WithoutCancel(p.Context())
		for n := range 3 {
			b := OrderRecords{Account: 1, Messages: []Message{p.message(2)}, Now: at(0)}
			if n == 0 {
				b.Key = IdempotencyKey{Hash: "k", OrderHash: "o", Answer: []byte("a"), Keep: time.Hour}
			}
			saved, err := p.Save(ctx, b)
			switch {
			case err == nil && saved != nil:
				repeated.Add(1)
			case err == nil:
				sent.Add(1)
			case relay.KindOf(err) == relay.KindNoCredit:
				refused.Add(1)
			default:
				p.Error(i, err)
			}
		}
	})
	p.hasCredit(0)
	if sent.Load() != 25 || sent.Load()+refused.Load()+repeated.Load() != 120 {
		p.Errorf("%d sent, %d refused, %d repeated", sent.Load(), refused.Load(), repeated.Load())
	}
	p.same("pending", len(p.pendingIDs()), 50)
}
