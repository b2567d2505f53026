package submit

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/message"
)

// carrierQueue holds the messages waiting for one carrier and tracks its parts
// in flight, at most the windows of its connections.
type carrierQueue struct {
	worker      *Worker
	route       Route
	connections []*connection

	mu           sync.Mutex
	waiting      []*item
	waitingParts int // parts in waiting
	capacity     int // parts that may wait
	inFlight     int
	busy         map[*item]struct{} // items with a part in flight, if route.InTurn
	throttle     throttle
	rate         rateLimit
	stats        Stats
	notify       chan struct{}
	idle         chan struct{} // notified when nothing is in flight
}

// connection is a connection with its parts in flight. The queue's lock protects it.
type connection struct {
	Connection
	inFlight int
	rate     rateLimit
}

func newCarrierQueue(w *Worker, route Route) *carrierQueue {
	q := &carrierQueue{
		worker: w, route: route, busy: make(map[*item]struct{}),
		rate: rateLimit{perSecond: route.PerSecond}, notify: make(chan struct{}, 1), idle: make(chan struct{}, 1),
	}
	window := 0
	for _, c := range route.Connections {
		c.Window = cmp.Or(c.Window, 10)
		window += c.Window
		q.connections = append(q.connections, &connection{Connection: c, rate: rateLimit{perSecond: c.PerSecond}})
	}
	q.capacity = cmp.Or(w.opts.Backlog, max(256, 8*window))
	q.throttle = throttle{window: window, allowed: window}
	return q
}

// heldElsewhere reports whether another gateway sends the carrier's messages.
func (q *carrierQueue) heldElsewhere() bool {
	return q.route.HeldElsewhere != nil && q.route.HeldElsewhere()
}

// handOver empties the queue for another gateway. A message of which nothing is in flight is
// due at once; one with parts in flight is due when its lease ends.
func (q *carrierQueue) handOver() {
	q.mu.Lock()
	items := q.waiting
	parts := make([]int, len(items))
	for i, item := range items {
		parts[i], item.queued = len(item.queued), nil
	}
	q.waiting, q.waitingParts = nil, 0
	q.mu.Unlock()
	var leases []message.Lease
	for i, item := range items {
		l := q.worker.leases.Lease(&item.Hold)
		if int(item.unfinished.Load()) == parts[i] {
			leases = append(leases, l)
		}
		q.worker.partsDone(item, parts[i])
	}
	q.worker.leases.Release(q.worker.runCtx, leases, q.worker.deps.Now())
}

// ready reports whether a connection takes parts.
func (q *carrierQueue) ready() bool {
	return slices.ContainsFunc(q.connections, func(c *connection) bool { return c.Carrier.Ready() })
}

// connect chooses the connection with the most room in its window for a part; nil if none
// has room, because one was lost since the part was taken from the queue.
func (q *carrierQueue) connect(now time.Time) (best *connection) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, c := range q.connections {
		if n, _ := c.rate.allowed(now, c.Window-c.inFlight); n <= 0 || !c.Carrier.Ready() {
			continue
		}
		if best == nil || c.Window-c.inFlight > best.Window-best.inFlight {
			best = c
		}
	}
	if best != nil {
		best.inFlight++
		best.rate.consume(1)
	}
	return best
}

// add appends a message to the queue, or returns false if the queue is full. A
// message is never split, so the last one may exceed the capacity.
func (q *carrierQueue) add(item *item) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waitingParts >= q.capacity {
		return false
	}
	q.waiting = append(q.waiting, item)
	q.waitingParts += len(item.queued)
	relay.Notify(q.notify)
	return true
}

func (q *carrierQueue) freeCapacity() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.heldElsewhere() {
		return 0
	}
	return q.capacity - q.waitingParts
}

// sending reports whether the carrier is ready and the queue is not paused.
func (q *carrierQueue) sending() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ready() && !q.throttle.pausedUntil.After(q.worker.deps.Now())
}

func (q *carrierQueue) snapshot() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.stats
	s.Carrier, s.Waiting, s.UnderWay = q.route.Name, q.waitingParts, q.inFlight
	return s
}

// run submits until the worker stops.
func (q *carrierQueue) run() {
	for q.worker.runCtx.Err() == nil {
		if q.heldElsewhere() {
			q.handOver()
		}
		batch, wait := q.nextBatch()
		if len(batch) > 0 {
			q.submitBatch(batch)
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-q.notify:
		case <-timer.C:
		case <-q.worker.runCtx.Done():
		}
		timer.Stop()
	}
}

// idleWait is the time for which the queue sleeps without a notification.
const idleWait = time.Second

// partBatch is a set of parts of one message.
type partBatch struct {
	item  *item
	parts []int
}

// nextBatch removes the parts that may be submitted now, or returns how long to
// wait.
func (q *carrierQueue) nextBatch() ([]partBatch, time.Duration) {
	now := q.worker.deps.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	if wait := q.throttle.pausedUntil.Sub(now); wait > 0 {
		return nil, wait
	}
	if q.waitingParts == 0 {
		return nil, idleWait
	}
	// How many parts the connections take now, or how long until they may take one.
	n, wait := 0, idleWait
	for _, c := range q.connections {
		if !c.Carrier.Ready() {
			continue
		}
		k, untilNext := c.rate.allowed(now, c.Window-c.inFlight)
		n += max(0, k)
		wait = min(wait, cmp.Or(untilNext, idleWait))
	}
	n, untilNext := q.rate.allowed(now, min(n, q.throttle.allowed-q.inFlight))
	if n <= 0 {
		return nil, cmp.Or(untilNext, wait)
	}
	batch := q.pickParts(n)
	for _, p := range batch {
		q.inFlight += len(p.parts)
		q.waitingParts -= len(p.parts)
		q.rate.consume(len(p.parts))
	}
	if q.waitingParts < q.capacity/2 {
		relay.Notify(q.worker.capacityFreed)
	}
	return batch, idleWait
}

// pickParts removes up to n parts from the queue, in order.
func (q *carrierQueue) pickParts(n int) (batch []partBatch) {
	rest := q.waiting[:0]
	for i, item := range q.waiting {
		if n == 0 {
			rest = append(rest, q.waiting[i:]...)
			break
		}
		k := min(n, len(item.queued))
		if q.route.InTurn {
			k = min(k, 1)
			if _, isBusy := q.busy[item]; isBusy {
				k = 0
			}
		}
		if k > 0 {
			batch = append(batch, partBatch{item, item.queued[:k:k]})
			item.queued = item.queued[k:]
			n -= k
			if q.route.InTurn {
				q.busy[item] = struct{}{}
			}
		}
		if len(item.queued) > 0 {
			rest = append(rest, item)
		}
	}
	clear(q.waiting[len(rest):])
	q.waiting = rest
	return batch
}

// submitBatch marks parts as being sent in the store and submits them. It drops the
// messages whose lease has expired, since the store was unavailable, and all while the gate
// is closed: they are due for the next process that leases them.
func (q *carrierQueue) submitBatch(batch []partBatch) {
	batch = slices.DeleteFunc(batch, func(p partBatch) bool {
		mayBegin := q.worker.leases.MayBegin(&p.item.Hold)
		if !mayBegin {
			q.discard(p.item, len(p.parts))
		}
		return !mayBegin
	})
	if len(batch) == 0 {
		return
	}
	now := q.worker.deps.Now()
	until := now.Add(leaseTime)
	beginnings := make([]message.Beginning, len(batch))
	for i, p := range batch {
		q.worker.leases.Extending(&p.item.Hold, until)
		beginnings[i] = message.Beginning{
			Ref: p.item.Ref, Parts: p.parts, Carrier: q.route.Name, Now: now, Until: until,
			// Parts that are marked as being sent are submitted again if a crashed process
			// may have submitted them to an idempotent carrier, or if the store may have
			// marked them for this worker.
			AlsoSending: p.item.resubmit && q.route.Idempotent || p.item.maybeMarked,
		}
	}
	ctx, cancel := context.WithTimeout(q.worker.submitCtx, storeTimeout)
	begun, err := q.worker.deps.Work.Begin(ctx, beginnings)
	cancel()
	if err != nil {
		q.worker.log.Warn("cannot mark messages as sending", "carrier", q.route.Name, "error", err)
		q.requeue(batch)
		return
	}
	for i, p := range batch {
		q.discard(p.item, len(p.parts)-len(begun[i]))
		for _, part := range begun[i] {
			q.submitPart(p.item, part)
		}
	}
}

// requeue returns parts to the head of the queue after the store failed. The
// store may have marked them as being sent.
func (q *carrierQueue) requeue(batch []partBatch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	head := make([]*item, 0, len(batch)+len(q.waiting))
	for _, p := range batch {
		p.item.maybeMarked = true
		if len(p.item.queued) == 0 {
			head = append(head, p.item)
		}
		p.item.queued = append(p.parts, p.item.queued...)
		q.inFlight -= len(p.parts)
		q.waitingParts += len(p.parts)
		delete(q.busy, p.item)
	}
	q.waiting = append(head, q.waiting...)
	q.throttle.pausedUntil = q.worker.deps.Now().Add(minPause)
}

// discard drops parts that another process has or that were deleted.
func (q *carrierQueue) discard(item *item, n int) {
	if n == 0 {
		return
	}
	q.complete(item, n, nil)
	q.worker.partsDone(item, n)
}

// complete removes parts from those in flight, in the queue and on their connection. conn
// is nil if the parts were not submitted.
func (q *carrierQueue) complete(item *item, n int, conn *connection) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.inFlight -= n
	if conn != nil {
		conn.inFlight -= n
	}
	delete(q.busy, item)
	relay.Notify(q.notify)
	if q.inFlight == 0 {
		relay.Notify(q.idle)
	}
}
