package message

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db/dbtest"
)

// Two gateways work on one PostgreSQL at the same time.
func TestTwoGateways(t *testing.T) {
	server := dbtest.Shared(t)
	for name, test := range map[string]func(g gateways){
		"a message is claimed by one":                 claimedByOne,
		"a part is handed over by one":                begunByOne,
		"a key makes one order":                       oneOrder,
		"an early receipt finds its part":             receiptMeetsBinding,
		"ids are given out once":                      idsAreUnique,
		"a part is settled or deleted, refunded once": settledOrDeleted,
	} {
		t.Run(name, func(t *testing.T) {
			url := server.NewDatabase(t)
			test(gateways{newFixture(t, url, 10_000), newFixture(t, url, 10_000)})
		})
	}
}

type gateways [2]fixture

// together runs work on both gateways, in several goroutines each.
func (g gateways) together(work func(p fixture, gateway, worker int)) {
	var running sync.WaitGroup
	for i, p := range g {
		for n := range 3 {
			running.Go(func() { work(p, i, n) })
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

// counter counts how often something happened.
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

// once checks that so many things happened, each once.
func (c *counter) once(p fixture, want int) {
	p.Helper()
	for key, n := range c.n {
		if n != 1 {
			p.Errorf("%s: %d times", key, n)
		}
	}
	p.same("things that happened", len(c.n), want)
}

func claimedByOne(g gateways) {
	g.save(500)
	var claimed counter
	g.together(func(p fixture, _, _ int) {
		for n := 0; n < 3; {
			list, err := p.LeaseDue(p.Context(), at(1), at(60), 20)
			if err != nil {
				p.Error(err)
				return
			}
			if len(list) == 0 {
				n++ // others may have them locked
			}
			for i := range list {
				claimed.add(list[i].ID)
			}
		}
	})
	list, err := g[0].LeaseDue(g[0].Context(), at(1), at(60), 500)
	g[0].must(err)
	for i := range list {
		claimed.add(list[i].ID)
	}
	claimed.once(g[0], 500)
}

func begunByOne(g gateways) {
	ms := g.save(200)
	var begun counter
	g.together(func(p fixture, gateway, worker int) {
		starts := make([]Beginning, len(ms))
		for i := range ms { // each in another order
			starts[i] = startOf(ms[(i*7+worker*31+gateway*101)%len(ms)], fmt.Sprint("c", worker), 1, false)
		}
		parts, err := p.Begin(p.Context(), starts)
		if err != nil {
			p.Error(err)
		}
		for i := range parts {
			for range parts[i] {
				begun.add(starts[i].ID)
			}
		}
	})
	begun.once(g[0], len(ms))
}

func oneOrder(g gateways) {
	var made counter
	g.together(func(p fixture, _, _ int) {
		for k := range 10 {
			answer := fmt.Sprint("answer ", k)
			saved, err := p.Save(p.Context(), OrderRecords{
				Account: 1, Messages: []Message{p.message(1)}, Now: at(0),
				Key: IdempotencyKey{Hash: fmt.Sprint("key ", k), OrderHash: "o", Answer: []byte(answer), Keep: time.Hour},
			})
			if err != nil {
				p.Error(err)
			}
			if saved == nil {
				made.add(k)
			} else if string(saved) != answer {
				p.Errorf("%q, want %q", saved, answer)
			}
		}
	})
	made.once(g[0], 10)
	g[1].hasCredit(9_990)
}

func receiptMeetsBinding(g gateways) {
	const n = 100
	var found counter
	g.together(func(p fixture, gateway, worker int) {
		for i := range n {
			id := fmt.Sprint(i)
			switch {
			case gateway == 0 && worker == 0:
				for range p.bind(ID(i+1), "", id) {
					found.add(id)
				}
			case gateway == 1 && worker == 0:
				if p.match(Receipt{Carrier: "c1", IDs: []string{id}, State: Delivered, At: at(1)}).Found {
					found.add(id)
				}
			}
		}
	})
	found.once(g[0], n)
}

func idsAreUnique(g gateways) {
	var ids counter
	g.together(func(p fixture, _, _ int) {
		for range 200 {
			first, err := p.Reserve(p.Context(), 3)
			if err != nil {
				p.Error(err)
			}
			for n := range ID(3) {
				ids.add(first + n)
			}
		}
	})
	ids.once(g[0], 6*200*3)
}

func settledOrDeleted(g gateways) {
	ms := g.save(100)
	g.together(func(p fixture, gateway, worker int) {
		if worker == 0 {
			for i := range ms {
				if err := p.Delete(p.Context(), 1, ms[(i*3+gateway)%len(ms)].ID, at(1)); err != nil && relay.KindOf(err) != relay.KindNotFound {
					p.Error(err)
				}
			}
			return
		}
		outcomes := make([]Outcome, len(ms)/2)
		for i := range outcomes {
			outcomes[i] = Outcome{
				PartRef: PartRef{Ref: ms[(i*11+worker*5+gateway)%len(ms)].Ref()}, State: Rejected, Refund: true, At: at(1),
			}
		}
		if _, err := p.Settle(p.Context(), outcomes); err != nil {
			p.Error(err)
		}
	})
	g[0].hasCredit(10_000)
	g[0].same("pending", g[0].pendingIDs(), []ID{})
}
