package submit

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/delivery/carrier"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/message"
)

// carrierQueue contains the messages that wait for a carrier and counts its parts in flight.
// The windows of the connections limit the parts in flight.
type carrierQueue struct {
	submitter   *Submitter
	route       Route
	connections []*connection

	mu           sync.Mutex
	waiting      []*item
	waitingParts int                // number of parts of the items in waiting
	capacity     int                // number of parts that may wait
	inFlight     int                // parts that nextBatch has taken and that are neither complete nor requeued
	busy         map[*item]struct{} // items with a part in flight, if route.Sequential
	throttle     throttle
	rate         rateLimit
	stats        Stats
	notify       chan struct{}
	idle         chan struct{} // notified when no part is in flight
}

// connection is a connection with its parts in flight. The queue's lock protects it.
type connection struct {
	Connection
	inFlight int
	rate     rateLimit
}

func newCarrierQueue(s *Submitter, route Route) *carrierQueue {
	q := &carrierQueue{
		submitter: s, route: route, busy: make(map[*item]struct{}),
		rate: rateLimit{perSecond: route.PerSecond}, notify: make(chan struct{}, 1), idle: make(chan struct{}, 1),
	}
	window := 0
	for _, c := range route.Connections {
		c.Window = cmp.Or(c.Window, 10)
		window += c.Window
		q.connections = append(q.connections, &connection{Connection: c, rate: rateLimit{perSecond: c.PerSecond}})
	}
	q.capacity = cmp.Or(s.opts.Backlog, max(256, 8*window))
	q.throttle = throttle{window: window, limit: window}
	return q
}

// boundElsewhere reports whether another gateway sends the carrier's messages.
func (q *carrierQueue) boundElsewhere() bool {
	return q.route.BoundElsewhere != nil && q.route.BoundElsewhere()
}

// handOver empties the queue for the gateway that holds the binds. A message without parts in
// flight is due at once. A message with parts in flight is due when its lease ends.
func (q *carrierQueue) handOver() {
	q.mu.Lock()
	items := q.waiting
	parts := make([]int, len(items))
	for i, item := range items {
		parts[i], item.queuedParts = len(item.queuedParts), nil
	}
	q.waiting, q.waitingParts = nil, 0
	q.mu.Unlock()
	var leases []message.Lease
	for i, item := range items {
		l := q.submitter.leases.Lease(&item.Hold)
		if int(item.unfinished.Load()) == parts[i] {
			leases = append(leases, l)
		}
		q.submitter.finishParts(item, parts[i])
	}
	q.submitter.leases.Release(q.submitter.runCtx, leases, q.submitter.deps.Now())
}

// ready reports whether a connection takes parts.
func (q *carrierQueue) ready() bool {
	return slices.ContainsFunc(q.connections, func(c *connection) bool { return c.Carrier.Ready() })
}

// takeConnection returns the connection with the most room in its window, and counts a part
// on it. It returns nil if no connection has room, because one was lost after nextBatch.
func (q *carrierQueue) takeConnection(now time.Time) (best *connection) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, c := range q.connections {
		if n, _ := c.rate.allowance(now, c.Window-c.inFlight); n <= 0 || !c.Carrier.Ready() {
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
	q.waitingParts += len(item.queuedParts)
	relay.Notify(q.notify)
	return true
}

func (q *carrierQueue) freeCapacity() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.boundElsewhere() {
		return 0
	}
	return q.capacity - q.waitingParts
}

// canSend reports whether the carrier is ready and the queue is not paused.
func (q *carrierQueue) canSend() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ready() && !q.throttle.pausedUntil.After(q.submitter.deps.Now())
}

func (q *carrierQueue) snapshot() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.stats
	s.Carrier, s.Waiting, s.InFlight = q.route.Name, q.waitingParts, q.inFlight
	return s
}

// run submits parts until the Submitter stops.
func (q *carrierQueue) run() {
	for q.submitter.runCtx.Err() == nil {
		if q.boundElsewhere() {
			q.handOver()
		}
		batch, wait := q.nextBatch()
		if len(batch) > 0 {
			q.submitBatch(batch)
			continue
		}
		ctx, cancel := context.WithTimeout(q.submitter.runCtx, wait)
		relay.Wait(ctx, q.notify)
		cancel()
	}
}

// idleWait is the time for which the queue sleeps without a notification.
const idleWait = time.Second

// itemParts are parts of one message.
type itemParts struct {
	item  *item
	parts []int
}

// nextBatch removes the parts that may be submitted now from the queue. If there are none, it
// returns the time to wait.
func (q *carrierQueue) nextBatch() ([]itemParts, time.Duration) {
	now := q.submitter.deps.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	if wait := q.throttle.pausedUntil.Sub(now); wait > 0 {
		return nil, wait
	}
	if q.waitingParts == 0 {
		return nil, idleWait
	}
	// room is the number of parts that the connections take now, wait the time until the next one.
	room, wait := 0, idleWait
	for _, c := range q.connections {
		if !c.Carrier.Ready() {
			continue
		}
		k, untilNext := c.rate.allowance(now, c.Window-c.inFlight)
		room += max(0, k)
		wait = min(wait, cmp.Or(untilNext, idleWait))
	}
	n, untilNext := q.rate.allowance(now, min(room, q.throttle.limit-q.inFlight))
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
		relay.Notify(q.submitter.capacityFreed)
	}
	return batch, idleWait
}

// pickParts removes up to n parts from the queue, in order.
func (q *carrierQueue) pickParts(n int) (batch []itemParts) {
	remaining := q.waiting[:0]
	for i, item := range q.waiting {
		if n == 0 {
			remaining = append(remaining, q.waiting[i:]...)
			break
		}
		k := min(n, len(item.queuedParts))
		if q.route.Sequential {
			k = min(k, 1)
			if _, isBusy := q.busy[item]; isBusy {
				k = 0
			}
		}
		if k > 0 {
			batch = append(batch, itemParts{item, item.queuedParts[:k:k]})
			item.queuedParts = item.queuedParts[k:]
			n -= k
			if q.route.Sequential {
				q.busy[item] = struct{}{}
			}
		}
		if len(item.queuedParts) > 0 {
			remaining = append(remaining, item)
		}
	}
	clear(q.waiting[len(remaining):])
	q.waiting = remaining
	return batch
}

// submitBatch sets parts to the state sending in the store and submits them. It drops messages
// whose lease has expired because the store was unavailable, and all messages while the gate is
// closed: the next process that leases a message submits it.
func (q *carrierQueue) submitBatch(batch []itemParts) {
	batch = slices.DeleteFunc(batch, func(p itemParts) bool {
		mayBegin := q.submitter.leases.MayBegin(&p.item.Hold)
		if !mayBegin {
			q.discard(p.item, len(p.parts))
		}
		return !mayBegin
	})
	if len(batch) == 0 {
		return
	}
	now := q.submitter.deps.Now()
	until := now.Add(leaseTime)
	sendingParts := make([]message.SendingParts, len(batch))
	for i, p := range batch {
		q.submitter.leases.SetLatestEnd(&p.item.Hold, until)
		sendingParts[i] = message.SendingParts{
			Ref: p.item.Ref, Parts: p.parts, Carrier: q.route.Name, Now: now, LeaseEnd: until,
			// Parts in the state sending are submitted again if a crashed process may have
			// submitted them to an idempotent carrier, or if a call of MarkSending by this process
			// may have set the state.
			AlsoSending: p.item.resubmit && q.route.Idempotent || p.item.maybeSending,
		}
	}
	ctx, cancel := context.WithTimeout(q.submitter.submitCtx, storeTimeout)
	begunParts, err := q.submitter.deps.Store.MarkSending(ctx, sendingParts)
	cancel()
	if err != nil {
		q.submitter.log.Warn("cannot mark messages as sending", "carrier", q.route.Name, "error", err)
		q.requeue(batch)
		return
	}
	for i, p := range batch {
		q.discard(p.item, len(p.parts)-len(begunParts[i]))
		for _, part := range begunParts[i] {
			q.submitPart(p.item, part)
		}
	}
}

// requeue returns parts to the head of the queue after MarkSending has failed.
func (q *carrierQueue) requeue(batch []itemParts) {
	q.mu.Lock()
	defer q.mu.Unlock()
	head := make([]*item, 0, len(batch)+len(q.waiting))
	for _, p := range batch {
		p.item.maybeSending = true
		if len(p.item.queuedParts) == 0 {
			head = append(head, p.item)
		}
		p.item.queuedParts = append(p.parts, p.item.queuedParts...)
		q.inFlight -= len(p.parts)
		q.waitingParts += len(p.parts)
		delete(q.busy, p.item)
	}
	q.waiting = append(head, q.waiting...)
	q.throttle.pausedUntil = laterOf(q.throttle.pausedUntil, q.submitter.deps.Now().Add(minPause))
}

// discard drops n parts that another process may have leased or that were deleted.
func (q *carrierQueue) discard(item *item, n int) {
	if n > 0 {
		q.complete(item, n, nil)
		q.submitter.finishParts(item, n)
	}
}

// submitPart submits a part to the carrier and queues its outcome to be saved. The part stays
// in flight until its outcome is queued: Stop waits for the parts in flight and then saves the
// queued outcomes.
func (q *carrierQueue) submitPart(item *item, part int) {
	conn := q.takeConnection(q.submitter.deps.Now())
	if conn == nil {
		r := carrier.Result{Verdict: carrier.RetryLater, NotSubmitted: true, Reason: "no bind had room for the message"}
		q.submitter.outcomes.Add(pendingOutcome{item: item, outcome: q.outcomeOf(item, part, r)})
		q.complete(item, 1, nil)
		return
	}
	var answered atomic.Bool
	span := q.startSpan(item, part, conn)
	conn.Carrier.Submit(q.submitter.submitCtx, item.submission(part), func(r carrier.Result) {
		if answered.Swap(true) { // a late answer after an unknown result
			q.submitter.outcomes.Add(pendingOutcome{item: item, outcome: q.outcomeOf(item, part, r), correction: true})
			return
		}
		failure := ""
		if r.Verdict != carrier.Accepted {
			failure = cmp.Or(r.Cause, r.Reason)
		}
		span.Set("penstock.carrier_id", r.ID)
		span.End(time.Now(), failure)
		q.recordResult(&r)
		q.submitter.outcomes.Add(pendingOutcome{item: item, outcome: q.outcomeOf(item, part, r)})
		q.complete(item, 1, conn)
	})
}

// complete subtracts n from the parts in flight of the queue and of conn. conn is nil if the parts
// were not submitted.
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
