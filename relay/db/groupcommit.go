package db

import (
	"context"
	"slices"
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

// Commit has Do run a request in a transaction and waits for its answer. If ctx ends before the request's
// transaction begins, the request is withdrawn; a transaction that has begun is waited
// for.
func (g *GroupCommit[K, In, Out]) Commit(ctx context.Context, key K, input In) (Out, error) {
	r := &request[In, Out]{input: input, answer: make(chan Answer[Out], 1), lead: make(chan struct{})}
	g.mu.Lock()
	if g.queues == nil {
		g.queues = make(map[K][]*request[In, Out])
	}
	queue, running := g.queues[key]
	g.queues[key] = append(queue, r)
	g.mu.Unlock()
	if !running {
		close(r.lead)
	}
	select {
	case <-r.lead:
	case a := <-r.answer:
		return a.Value, a.Err
	case <-ctx.Done():
	}
	if ctx.Err() != nil && g.withdraw(key, r) {
		var zero Out
		return zero, relay.Errorf(relay.KindUnavailable, "the transaction did not begin: %w", ctx.Err())
	}
	select {
	case <-r.lead:
		g.lead(ctx, key)
	default: // its transaction runs
	}
	a := <-r.answer
	return a.Value, a.Err
}

// withdraw removes a request that no transaction has taken, and passes on its lead.
func (g *GroupCommit[K, In, Out]) withdraw(key K, r *request[In, Out]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.queues[key], r)
	if i < 0 {
		return false
	}
	g.queues[key] = slices.Concat(g.queues[key][:i], g.queues[key][i+1:])
	select {
	case <-r.lead:
		g.passLead(key)
	default:
	}
	return true
}

// lead runs the waiting requests and passes the lead to the next that waits.
func (g *GroupCommit[K, In, Out]) lead(ctx context.Context, key K) {
	g.mu.Lock()
	queue := g.queues[key]
	n, size := 0, 0
	for n < len(queue) {
		if size += g.Size(queue[n].input); n > 0 && size > g.Most {
			break
		}
		n++
	}
	taken := queue[:n:n]
	g.queues[key] = queue[n:]
	g.mu.Unlock()

	inputs := make([]In, n)
	for i := range taken {
		inputs[i] = taken[i].input
	}
	answers := make([]Answer[Out], n)
	for i := range answers { // of a panic
		answers[i].Err = relay.Errorf(relay.KindUnexpected, "the transaction was not run")
	}
	defer func() {
		for i := range taken {
			taken[i].answer <- answers[i]
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.passLead(key)
	}()
	copy(answers, g.Do(context.WithoutCancel(ctx), key, inputs))
}

// passLead makes the first waiting request the leader, if there is one. The caller
// holds the lock.
func (g *GroupCommit[K, In, Out]) passLead(key K) {
	if queue := g.queues[key]; len(queue) > 0 {
		close(queue[0].lead)
	} else {
		delete(g.queues, key)
	}
}
