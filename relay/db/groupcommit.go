package db

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/penstock/penstock/relay"
)

// GroupCommit batches concurrent requests for the same key into transactions: while a
// transaction runs, further requests wait, and the next transaction runs all of them. Use it
// for rows that many requests change. PostgreSQL serializes these requests, so with a commit
// per request each would wait for the disk.
type GroupCommit[K comparable, In, Out any] struct {
	// MaxSize is the maximum size of a transaction. Size returns the size of a request. A
	// larger request has a transaction of its own.
	MaxSize int
	Size    func(In) int
	// Do runs the requests of one key and returns an answer for each, in their order.
	Do func(ctx context.Context, key K, inputs []In) []Answer[Out]

	mu     sync.Mutex
	queues map[K][]*request[In, Out] // a key is present while its goroutine runs
}

// Answer is the result of a request.
type Answer[Out any] struct {
	Value Out
	Err   error
}

type request[In, Out any] struct {
	ctx    context.Context
	input  In
	answer chan Answer[Out]
}

// Commit runs a request in a transaction and waits for its answer. If ctx ends before the
// transaction begins, the request is withdrawn. If ctx ends later, Commit waits for the
// transaction.
func (g *GroupCommit[K, In, Out]) Commit(ctx context.Context, key K, input In) (Out, error) {
	r := &request[In, Out]{ctx: ctx, input: input, answer: make(chan Answer[Out], 1)}
	g.mu.Lock()
	if g.queues == nil {
		g.queues = make(map[K][]*request[In, Out])
	}
	queue, running := g.queues[key]
	g.queues[key] = append(queue, r)
	g.mu.Unlock()
	if !running {
		go g.runAll(key)
	}
	select {
	case a := <-r.answer:
		return a.Value, a.Err
	case <-ctx.Done():
	}
	if g.withdraw(key, r) {
		var zero Out
		return zero, relay.Errorf(relay.KindUnavailable, "the transaction did not begin: %w", ctx.Err())
	}
	a := <-r.answer
	return a.Value, a.Err
}

func (g *GroupCommit[K, In, Out]) withdraw(key K, r *request[In, Out]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.queues[key], r)
	if i < 0 {
		return false
	}
	g.queues[key] = slices.Concat(g.queues[key][:i], g.queues[key][i+1:])
	return true
}

func (g *GroupCommit[K, In, Out]) runAll(key K) {
	for {
		g.mu.Lock()
		queue := g.queues[key]
		if len(queue) == 0 {
			delete(g.queues, key)
			g.mu.Unlock()
			return
		}
		n, size := 0, 0
		for n < len(queue) {
			if size += g.Size(queue[n].input); n > 0 && size > g.MaxSize {
				break
			}
			n++
		}
		g.queues[key] = queue[n:]
		g.mu.Unlock()

		inputs := make([]In, n)
		for i, r := range queue[:n] {
			inputs[i] = r.input
		}
		answers := g.runOne(context.WithoutCancel(queue[0].ctx), key, inputs)
		for i, r := range queue[:n] {
			r.answer <- answers[i]
		}
	}
}

// runOne runs one transaction. It converts a panic to an error of every request.
func (g *GroupCommit[K, In, Out]) runOne(ctx context.Context, key K, inputs []In) (answers []Answer[Out]) {
	defer func() {
		if r := recover(); r != nil {
			err := relay.Errorf(relay.KindUnexpected, "transaction: panic: %v\n%s", r, debug.Stack())
			answers = slices.Repeat([]Answer[Out]{{Err: err}}, len(inputs))
		}
	}()
	if answers = g.Do(ctx, key, inputs); len(answers) != len(inputs) {
		panic(fmt.Sprintf("%d answers to %d requests", len(answers), len(inputs)))
	}
	return answers
}
