package submit

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/delivery/carrier"
	"github.com/penstock/penstock/delivery/lease"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/message"
)

// item is a leased message and its parts to submit.
type item struct {
	lease.Hold[message.Ref]
	msg         message.Message
	queuedParts []int // the parts to submit, in order; protected by the queue's lock
	resubmit    bool  // parts were in the state sending when a process crashed
	// maybeSending means that parts that were not submitted may be in the state sending, because
	// the answer of a MarkSending was lost. Only the queue's goroutine uses it.
	maybeSending bool
	// unfinished counts the parts that are queued, in flight, or have an outcome
	// that is not saved.
	unfinished atomic.Int32
}

func (i *item) ref(part int) message.PartRef {
	return message.PartRef{Ref: i.Ref, Part: part}
}

// submission returns the request for a part.
func (i *item) submission(part int) carrier.Submission {
	m, p := &i.msg, &i.msg.Parts[part]
	return carrier.Submission{
		ID: i.ref(part).String(), From: m.Originator, To: m.Destination, Coding: int(m.Coding),
		UDH: p.UDH, Data: p.Data, Text: p.Text, Flash: m.Flash,
		Replace: m.Replace && len(m.Parts) == 1, // a part of several would replace the one before
	}
}

// accept puts a message that is leased until end into its carrier's queue. It returns
// false if the caller must release the lease: the queue is full, another gateway holds the
// carrier's binds, the Submitter stops or the gate is closed. It returns true without queueing
// the message if the message is in memory already, where its hold takes over the lease, or if
// the message has no part to submit; that lease ends by itself.
func (s *Submitter) accept(m *message.Message, end time.Time) bool {
	if s.leases.Closed() {
		return false
	}
	q := s.queueFor(m.Destination)
	if q != nil && q.boundElsewhere() {
		return false
	}
	item := &item{Hold: lease.NewHold(m.Ref(), end), msg: *m}
	outcomes := s.classifyParts(item, q)
	n := len(item.queuedParts) + len(outcomes)
	if n == 0 || !s.leases.Add(&item.Hold) { // no parts, or the message is in memory already
		return true
	}
	item.unfinished.Store(int32(n))
	s.mu.Lock()
	added := !s.stopped && (len(item.queuedParts) == 0 || q.add(item))
	s.mu.Unlock()
	if !added {
		s.leases.Drop(item.Ref)
		return false
	}
	for _, o := range outcomes {
		s.outcomes.Add(pendingOutcome{item: item, outcome: o})
	}
	return true
}

// classifyParts sets item.queuedParts to the parts to submit, and returns the outcomes of the parts
// that cannot be submitted.
func (s *Submitter) classifyParts(item *item, q *carrierQueue) (outcomes []message.Outcome) {
	now := s.deps.Now()
	isIdempotent := func(name string) bool { return q != nil && q.route.Name == name && q.route.Idempotent }
	for n := range item.msg.Parts {
		p := &item.msg.Parts[n]
		o := message.Outcome{PartRef: item.ref(n), Carrier: p.Carrier, At: now}
		switch {
		case p.State == message.Sending && !isIdempotent(p.Carrier):
			o.State, o.Reason = message.Unknown, "the gateway stopped or lost the database before the outcome was saved"
			outcomes = append(outcomes, o)
		case p.State == message.Sending:
			item.queuedParts, item.resubmit = append(item.queuedParts, n), true
		case p.State != message.Pending || p.ScheduledAt.After(now):
		case q == nil:
			o.State, o.Refund, o.Reason = message.Rejected, true, "there is no carrier for the number"
			outcomes = append(outcomes, o)
		default:
			item.queuedParts = append(item.queuedParts, n)
		}
	}
	return outcomes
}

// finishParts records that n parts of an item are finished. It drops the item after the last one.
func (s *Submitter) finishParts(item *item, n int) {
	if item.unfinished.Add(int32(-n)) == 0 && s.leases.Drop(item.Ref) {
		relay.Notify(s.capacityFreed)
	}
}

const (
	// maxLeased is the largest number of messages that are leased at a time.
	maxLeased = 500
	// storeTimeout bounds a call of the store.
	storeTimeout = 5 * time.Second
	// fullDelay is the time after which a message is due again if the queue of its carrier was
	// full; congestedDelay if the queue also does not send.
	fullDelay      = 250 * time.Millisecond
	congestedDelay = 5 * time.Second
)

// leaseLoop leases due messages while the queues have capacity.
func (s *Submitter) leaseLoop() {
	for s.runCtx.Err() == nil {
		leased, hasMore := s.leaseBatch()
		if hasMore {
			continue
		}
		wait := s.opts.Poll
		if leased > 0 { // messages of other carriers may be due too
			wait /= 4
		}
		ctx, cancel := context.WithTimeout(s.runCtx, wait)
		relay.Wait(ctx, s.capacityFreed)
		cancel()
	}
}

// leaseBatch leases a batch of messages. It returns their number, and whether there may be more
// and the queues have capacity for them.
func (s *Submitter) leaseBatch() (leased int, hasMore bool) {
	s.leases.ReleaseSpare(s.runCtx)
	limit := min(maxLeased, s.freeCapacity())
	if limit <= 0 || s.leases.Closed() {
		return 0, false
	}
	ctx, cancel := context.WithTimeout(s.runCtx, storeTimeout)
	defer cancel()
	now := s.deps.Now()
	if now.Before(s.noLeaseBefore) {
		return 0, false
	}
	until := now.Add(leaseTime)
	messages, err := s.deps.Store.LeaseDue(ctx, now, until, limit)
	if err != nil && s.runCtx.Err() == nil {
		s.log.Warn("cannot lease due messages", "error", err)
	}
	unplaced := make(lease.LeasesByDelay[message.Ref]) // leases by the delay after which their messages are due again
	elsewhereCount := 0
	for i := range messages {
		q := s.queueFor(messages[i].Destination)
		isBoundElsewhere := q != nil && q.boundElsewhere()
		if isBoundElsewhere {
			elsewhereCount++
		}
		if s.accept(&messages[i], until) {
			continue
		}
		delay := fullDelay
		if q != nil && !isBoundElsewhere && !q.canSend() {
			delay = congestedDelay
		}
		unplaced[delay] = append(unplaced[delay], message.Lease{Ref: messages[i].Ref(), End: until})
	}
	if len(messages) > 0 && elsewhereCount == len(messages) {
		s.noLeaseBefore = now.Add(congestedDelay)
	}
	s.leases.ReleaseAfter(s.runCtx, unplaced)
	return len(messages), err == nil && len(messages) == limit && len(unplaced) == 0
}

// freeCapacity returns the number of parts for which the queues have capacity. Without a
// carrier, messages are leased to be rejected.
func (s *Submitter) freeCapacity() (n int) {
	if len(s.queues) == 0 {
		return maxLeased
	}
	for _, q := range s.queues {
		n += q.freeCapacity()
	}
	return n
}
