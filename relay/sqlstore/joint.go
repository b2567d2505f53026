package sqlstore

import (
	"context"
	"sync"

	"github.com/penstock/penstock/relay"
)

// Joint batches concurrent requests for the same key into transactions: while one
// runs, further requests wait, and the next transaction takes all of them. It is for
// rows that many requests change, which PostgreSQL serializes: with a commit per
// request each would wait for the disk.
type Joint[K comparable, In, Out any] struct {
	// Most is the maximum size of a transaction; Size is the size of a request, nil: 1.
	Most int
	Size func(In) int
	// Do runs the requests of one key and returns an answer for each, in their order.
	Do func(ctx context.Context, key K, questions []In) []Answer[Out]

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
	question In
	answer   chan Answer[Out]
	lead     chan struct{} // closed when this caller runs the next transaction
}

// Ask queues a request and waits for its answer.
func (j *Joint[K, In, Out]) Ask(ctx context.Context, key K, question In) (Out, error) {
	one := &request[In, Out]{question: question, answer: make(chan Answer[Out], 1), lead: make(chan struct{})}
	j.mu.Lock()
	if j.queues == nil {
		j.queues = make(map[K][]*request[In, Out])
	}
	queue, running := j.queues[key]
	j.queues[key] = append(queue, one)
	j.mu.Unlock()
	if !running {
		close(one.lead)
	}
	select {
	case <-one.lead:
		j.ask(ctx, key)
		a := <-one.answer
		return a.Value, a.Err
	case a := <-one.answer:
		return a.Value, a.Err
	}
}

// ask runs the waiting requests and passes the lead to the next that waits.
func (j *Joint[K, In, Out]) ask(ctx context.Context, key K) {
	j.mu.Lock()
	all := j.queues[key]
	n, size := 0, 0
	for n < len(all) {
		if size += j.sizeOf(all[n].question); n > 0 && size > j.Most {
			break
		}
		n++
	}
	now := all[:n:n]
	j.queues[key] = all[n:]
	j.mu.Unlock()

	questions := make([]In, n)
	for i := range now {
		questions[i] = now[i].question
	}
	answers := make([]Answer[Out], n)
	for i := range answers { // of a panic
		answers[i].Err = relay.Errorf(relay.KindUnexpected, "the transaction was not run")
	}
	defer func() {
		for i := range now {
			now[i].answer <- answers[i]
		}
		j.next(key)
	}()
	copy(answers, j.Do(context.WithoutCancel(ctx), key, questions))
}

func (j *Joint[K, In, Out]) sizeOf(question In) int {
	if j.Size == nil {
		return 1
	}
	return j.Size(question)
}

// next passes the lead to the first waiting request, if there is one.
func (j *Joint[K, In, Out]) next(key K) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if queue := j.queues[key]; len(queue) > 0 {
		close(queue[0].lead)
	} else {
		delete(j.queues, key)
	}
}
