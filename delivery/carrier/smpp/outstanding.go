package smpp

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/decoders/smpp"
	"github.com/penstock/penstock/delivery/carrier"
)

// outgoingPDU is a PDU to be written. A submission has a pending request.
type outgoingPDU struct {
	raw     []byte
	request *pendingRequest
}

// pendingRequest is a submission without a response.
type pendingRequest struct {
	sequence    uint32
	submittedAt time.Time // when Submit was called
	done        func(carrier.Outcome)
	// written means that octets may have been sent: the SMSC may have the
	// message even if the connection broke.
	written atomic.Bool
	// timedOut means that the outcome is Unknown; a late response still corrects
	// it.
	timedOut bool
}

// outstanding tracks the submissions of a session that have no response yet. Package
// submit limits their number.
type outstanding struct {
	// order is held while a request is enqueued, which blocks while the SMSC does not
	// read. It is locked before mu.
	order    sync.Mutex
	mu       sync.Mutex
	closed   bool
	pending  map[uint32]*pendingRequest
	resolved chan struct{} // notified when a request is resolved
}

func newOutstanding() *outstanding {
	return &outstanding{pending: make(map[uint32]*pendingRequest), resolved: make(chan struct{}, 1)}
}

// add adds a request and calls enqueue, one request at a time, so that PDUs are sent in
// the order of the calls. Responses are resolved meanwhile. It returns false if no more
// are taken.
func (o *outstanding) add(r *pendingRequest, enqueue func()) bool {
	o.order.Lock()
	defer o.order.Unlock()
	o.mu.Lock()
	closed := o.closed
	if !closed {
		o.pending[r.sequence] = r
	}
	o.mu.Unlock()
	if !closed {
		enqueue()
	}
	return !closed
}

// resolve removes and returns the request of a response; nil if there is none.
func (o *outstanding) resolve(sequence uint32) *pendingRequest {
	o.mu.Lock()
	r := o.pending[sequence]
	delete(o.pending, sequence)
	o.mu.Unlock()
	select {
	case o.resolved <- struct{}{}:
	default:
	}
	return r
}

// expire marks the requests submitted before the given time as timed out and
// returns them. It drops those that timed out earlier and were submitted before
// forgetBefore.
func (o *outstanding) expire(before, forgetBefore time.Time) (expired []*pendingRequest) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for sequence, r := range o.pending {
		switch {
		case !r.timedOut && r.submittedAt.Before(before):
			r.timedOut = true
			expired = append(expired, r)
		case r.timedOut && r.submittedAt.Before(forgetBefore):
			delete(o.pending, sequence)
		}
	}
	return expired
}

// closeToNew makes add return false.
func (o *outstanding) closeToNew() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
}

// count returns the number of requests that have not timed out.
func (o *outstanding) count() (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range o.pending {
		if !r.timedOut {
			n++
		}
	}
	return n
}

// close takes no more, waits for a request that is being enqueued, and returns the
// requests that are left.
func (o *outstanding) close() []*pendingRequest {
	o.order.Lock()
	defer o.order.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	left := make([]*pendingRequest, 0, len(o.pending))
	for _, r := range o.pending {
		if !r.timedOut {
			left = append(left, r)
		}
	}
	clear(o.pending)
	return left
}

// handleResponse resolves the request of a response.
func (s *session) handleResponse(h smpp.Header, raw []byte) {
	r := s.outstanding.resolve(h.Sequence)
	if r == nil {
		return // of an enquire_link, or unknown
	}
	r.done(outcomeOf(h, raw))
}

// expirePending completes requests that timed out as Unknown: the messages may
// have been accepted.
func (s *session) expirePending() {
	now := s.o.Now()
	for _, r := range s.outstanding.expire(now.Add(-s.o.AnswerTimeout), now.Add(-lateFactor*s.o.AnswerTimeout)) {
		r.done(carrier.Outcome{Verdict: carrier.Unknown, Reason: "the SMSC has not answered within " + s.o.AnswerTimeout.String()})
	}
}

// lateFactor is for how many timeouts a late response is still used.
const lateFactor = 20

// failPending completes the pending requests of an ended session: those not
// written may be retried, the others are Unknown.
func (s *session) failPending(why error) {
	for _, r := range s.outstanding.close() {
		if !r.written.Load() {
			r.done(carrier.Outcome{Verdict: carrier.Later, PauseQueue: true, Reason: "the bind ended before it was sent"})
			continue
		}
		const reason = "the bind ended before the SMSC answered"
		r.done(carrier.Outcome{Verdict: carrier.Unknown, Reason: reason, Cause: reason + ": " + why.Error()})
	}
}
