package message

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db/dbtest"
)

// Two gateways use one PostgreSQL database at the same time.
func TestTwoGateways(t *testing.T) {
	server := dbtest.Shared(t)
	for name, test := range map[string]func(g gateways){
		"a message is claimed by one gateway":             claimedByOne,
		"a part is handed over by one gateway":            begunByOne,
		"a key creates one order":                         oneOrder,
		"an early receipt finds its part":                 receiptMeetsBinding,
		"ids are reserved once":                           idsAreUnique,
		"a part is settled or deleted, and refunded once": settledOrDeleted,
	} {
		t.Run(name, func(t *testing.T) {
			url := server.NewDatabase(t)
			test(gateways{newFixture(t, url, 10_000), newFixture(t, url, 10_000)})
		})
	}
}

type gateways [2]fixture

// together runs work on both gateways, in several goroutines each.
func (g gateways) together(work func(f fixture, gateway, worker int)) {
	var running sync.WaitGroup
	for i, f := range g {
		for n := range 3 {
			running.Go(func() { work(f, i, n) })
		}
	}
	running.Wait()
}

func (g gateways) save(n int) (ms []Message) {
	for range n {
		ms = append(ms, g[0].message(1))
	}
	g[0].save(ms...)
	return ms
}

// counter counts events by key.
type counter struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *counter) add(key any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = make(map[string]int)
	}
	c.n[fmt.Sprint(key)]++
}

// wantOnce checks that want keys were counted, each once.
func (c *counter) wantOnce(f fixture, want int) {
	f.Helper()
	for key, n := range c.n {
		if n != 1 {
			f.Errorf("%s was counted %d times, want once", key, n)
		}
	}
	f.equal("counted keys", len(c.n), want)
}

func claimedByOne(g gateways) {
	g.save(500)
	var claimed counter
	g.together(func(f fixture, _, _ int) {
		for n := 0; n < 3; {
			list, err := f.LeaseDue(f.Context(), timeAt(1), timeAt(60), 20)
			if err != nil {
				f.Error(err)
				return
			}
			if len(list) == 0 {
				n++ // other workers may have locked the remaining messages
			}
			for i := range list {
				claimed.add(list[i].ID)
			}
		}
	})
	list, err := g[0].LeaseDue(g[0].Context(), timeAt(1), timeAt(60), 500)
	g[0].must(err)
	for i := range list {
		claimed.add(list[i].ID)
	}
	claimed.wantOnce(g[0], 500)
}

func begunByOne(g gateways) {
	ms := g.save(200)
	var begun counter
	g.together(func(f fixture, gateway, worker int) {
		sendingParts := make([]SendingParts, len(ms))
		for i := range ms { // each worker in another order
			sendingParts[i] = sendingPartsOf(ms[(i*7+worker*31+gateway*101)%len(ms)], fmt.Sprint("c", worker), 1, false)
		}
		parts, err := f.MarkSending(f.Context(), sendingParts)
		if err != nil {
			f.Error(err)
		}
		for i := range parts {
			for range parts[i] {
				begun.add(sendingParts[i].ID)
			}
		}
	})
	begun.wantOnce(g[0], len(ms))
}

func oneOrder(g gateways) {
	var created counter
	g.together(func(f fixture, _, _ int) {
		for k := range 10 {
			answer := fmt.Sprint("answer ", k)
			saved, err := f.Save(f.Context(), OrderRecords{
				Account: 1, Messages: []Message{f.message(1)}, Now: timeAt(0),
				Key: IdempotencyKey{Hash: fmt.Sprint("key ", k), OrderHash: "o", Answer: []byte(answer), Retention: time.Hour},
			})
			if err != nil {
				f.Error(err)
			}
			if saved == nil {
				created.add(k)
			} else if string(saved) != answer {
				f.Errorf("answer = %q, want %q", saved, answer)
			}
		}
	})
	created.wantOnce(g[0], 10)
	g[1].wantCredit(9_990)
}

func receiptMeetsBinding(g gateways) {
	const n = 100
	var found counter
	g.together(func(f fixture, gateway, worker int) {
		for i := range n {
			id := fmt.Sprint(i)
			switch {
			case gateway == 0 && worker == 0:
				for range f.bind(ID(i+1), "", id) {
					found.add(id)
				}
			case gateway == 1 && worker == 0:
				if f.match(Receipt{Carrier: "c1", IDs: []string{id}, State: Delivered, At: timeAt(1)}).Matched {
					found.add(id)
				}
			}
		}
	})
	found.wantOnce(g[0], n)
}

func idsAreUnique(g gateways) {
	var ids counter
	g.together(func(f fixture, _, _ int) {
		for range 200 {
			firstID, err := f.Reserve(f.Context(), 3)
			if err != nil {
				f.Error(err)
			}
			for n := range ID(3) {
				ids.add(firstID + n)
			}
		}
	})
	ids.wantOnce(g[0], 6*200*3)
}

func settledOrDeleted(g gateways) {
	ms := g.save(100)
	g.together(func(f fixture, gateway, worker int) {
		if worker == 0 {
			for i := range ms {
				if err := f.Delete(f.Context(), 1, ms[(i*3+gateway)%len(ms)].ID, timeAt(1)); err != nil && relay.KindOf(err) != relay.KindNotFound {
					f.Error(err)
				}
			}
			return
		}
		outcomes := make([]Outcome, len(ms)/2)
		for i := range outcomes {
			outcomes[i] = Outcome{
				PartRef: PartRef{Ref: ms[(i*11+worker*5+gateway)%len(ms)].Ref()}, State: Rejected, Refund: true, At: timeAt(1),
			}
		}
		if _, err := f.Settle(f.Context(), outcomes); err != nil {
			f.Error(err)
		}
	})
	g[0].wantCredit(10_000)
	g[0].equal("pending", g[0].pendingIDs(), []ID{})
}
