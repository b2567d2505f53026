package sqlstore

import (
	"context"
	"sync"

	"github.com/penstock/penstock/relay"
)

// GroupCommit batches concurrent requests for the same key into transactions: while one
// runs, further requests wait, and the next transaction takes all of them. It is for
// rows that many requests change, which PostgreSQL serializes: with a commit per
// request each would wait for the disk.
type GroupCommit[K comparable, In, Out any] struct {
	// Most is the maximum size of a transaction; Size is the size of a request.
	Most int
	Size func(In) int
	// Do runs the requests of one key and returns an answer for each, in their order.
	Do func(ctx context.Context, key K, inputs []In) []Answer[Out]

	mu     sync.Mutex
	queues map[K][]*request[In, Out]
}

// Answer is the result of a request.
type Answer[Out any] struct {
	Value Out
	Err   error
}

// request is a waiting request.
type request[In, Out any] struct {
	input  In
	answer chan Answer[Out]
	lead   chan struct{} // closed when this caller runs the next transaction
}

// Submit queues a request and waits for its answer.
func (g *GroupCommit[K, In, Out]) Submit(ctx context.Context, key K, input In) (Out, error) {
	one := &request[In, Out]{input: input, answer: make(chan Answer[Out], 1), lead: make(chan struct{})}
	g.mu.Lock()
	if g.queues == nil {
		g.queues = make(map[K][]*request[In, Out])
	}
	queue, running := g.queues[key]
	g.queues[key] = append(queue, one)
	g.mu.Unlock()
	if !running {
		close(one.lead)
	}
	select {
	case <-one.lead:
		g.commit(ctx, key)
		a := <-one.answer
		return a.Value, a.Err
	case a := <-one.answer:
		return a.Value, a.Err
	}
}

// commit runs the waiting requests and passes the lead to the next that waits.
func (g *GroupCommit[K, In, Out]) commit(ctx context.Context, key K) {
	g.mu.Lock()
	all := g.queues[key]
	n, size := 0, 0
	for n < len(all) {
		if size += g.Size(all[n].input); n > 0 && size > g.Most {
			break
		}
		n++
	}
	now := all[:n:n]
	g.queues[key] = all[n:]
	g.mu.Unlock()

	inputs := make([]In, n)
	for i := range now {
		inputs[i] = now[i].input
	}
	answers := make([]Answer[Out], n)
	for i := range answers { // of a panic
		answers[i].Err = relay.Errorf(relay.KindUnexpected, "the transaction was not run")
	}
	defer func() {
		for i := range now {
			now[i].answer <- answers[i]
		}
		g.next(key)
	}()
	copy(answers, g.Do(context.WithoutCancel(ctx), key, inputs))
}

// next passes the lead to the first waiting request, if there is one.
func (g *GroupCommit[K, In, Out]) next(key K) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if queue := g.queues[key]; len(queue) > 0 {
		close(queue[0].lead)
	} else {
		delete(g.queues, key)
	}
}
