package queue

import (
	"time"

	"github.com/penstock/penstock/relay/outbox"
)

type endpointQueue struct {
	name        string
	pace        outbox.Pace // of the newest delivery, created at paceTime
	paceTime    time.Time
	running     int
	waiting     []*item
	avgDuration time.Duration // moving average of an attempt
	nextStart   time.Time     // earliest start of the next attempt, if the pace has a rate
	timer       *time.Timer   // fires at nextStart while items wait
}

// maxQueueDelay limits the estimated time that an item waits in memory. Further items wait in
// the store. Within this time, minQueueShare items may wait in each queue, even if the other
// queues are full.
const (
	maxQueueDelay = time.Minute
	minQueueShare = 64
)

// queueName returns the name of a delivery's queue: its endpoint, or, without a pace,
// "mail" for mails, which share the operator's mail server, and "sms" for SMS, which
// only go to the gateway's own queue of messages.
func queueName(d *outbox.Delivery) string {
	switch {
	case d.Pace != (outbox.Pace{}):
		return d.EndpointKey()
	case d.SMS != nil:
		return "sms"
	case d.Mail != nil:
		return "mail"
	}
	return d.EndpointKey()
}

func (i *inFlight) queueFor(d *outbox.Delivery) *endpointQueue {
	name := queueName(d)
	q := i.queues[name]
	if q == nil {
		q = &endpointQueue{name: name, avgDuration: 50 * time.Millisecond}
		i.queues[name] = q
	}
	if !d.CreatedAt.Before(q.paceTime) {
		q.pace, q.paceTime = d.Pace, d.CreatedAt
	}
	return q
}

func (i *inFlight) maxRunning(q *endpointQueue) int {
	if q.pace.Concurrency > 0 {
		return q.pace.Concurrency
	}
	return i.opts.PerEndpoint
}

// canStart reports whether a queue may start another attempt now. A queue's
// share shrinks with the free capacity, so that a few endpoints that hang never
// use all of it.
func (i *inFlight) canStart(q *endpointQueue) bool {
	remaining := i.opts.Attempts - i.running
	return remaining > 0 && q.running < min(i.maxRunning(q), max(1, remaining/2)) && !q.nextStart.After(i.now())
}

// drainTime estimates the time until all waiting items and one more have been attempted.
func (i *inFlight) drainTime(q *endpointQueue) time.Duration {
	n := time.Duration(len(q.waiting) + 1)
	d := q.avgDuration * n / time.Duration(i.maxRunning(q))
	if q.pace.PerSecond > 0 {
		d = max(d, n*interval(q.pace))
	}
	return d
}

func interval(p outbox.Pace) time.Duration {
	return time.Duration(float64(time.Second) / p.PerSecond)
}

func (i *inFlight) start(q *endpointQueue, item *item) {
	item.queue = q
	q.running++
	i.running++
	if q.pace.PerSecond > 0 {
		now := i.now()
		if q.nextStart.Before(now) {
			q.nextStart = now
		}
		q.nextStart = q.nextStart.Add(interval(q.pace))
		i.scheduleNext(q)
	}
}

func (i *inFlight) scheduleNext(q *endpointQueue) {
	wait := q.nextStart.Sub(i.now())
	if q.timer == nil && wait > 0 {
		q.timer = time.AfterFunc(wait, func() { i.resume(q) })
	}
}

func (i *inFlight) resume(q *endpointQueue) {
	i.mu.Lock()
	defer i.mu.Unlock()
	q.timer = nil
	if len(q.waiting) > 0 && i.canStart(q) {
		go i.runFrom(i.startFirst(q))
	}
	if len(q.waiting) > 0 {
		i.scheduleNext(q)
	}
	i.removeIfEmpty(q)
}

// removeIfEmpty removes a queue without items, unless its timer is set.
func (i *inFlight) removeIfEmpty(q *endpointQueue) {
	if q.running == 0 && len(q.waiting) == 0 && q.timer == nil {
		delete(i.queues, q.name)
	}
}
