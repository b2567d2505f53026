package smpp

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/delivery/carrier"
	"github.com/penstock/penstock/relay"
)

// pendingRequest is a submission without a response.
type pendingRequest struct {
	raw         []byte // the PDU
	sequence    uint32
	submittedAt time.Time // when Submit was called
	done        func(carrier.Result)
	progress    atomic.Int32 // unwritten, written or abandoned
	// timedOut means that done was called without a response. A late response corrects its result.
	timedOut bool
}

// The progress of a request. An unwritten request changes once: it is written, so that the SMSC may
// have the message even if the connection breaks, or it is abandoned and never written.
const (
	unwritten int32 = iota
	written
	abandoned
)

func (r *pendingRequest) appendTo(buf []byte) []byte {
	if !r.progress.CompareAndSwap(unwritten, written) {
		return buf
	}
	return append(buf, r.raw...)
}

// abandon prevents an unwritten request from being written. It returns false if the request was
// written.
func (r *pendingRequest) abandon() bool { return r.progress.CompareAndSwap(unwritten, abandoned) }

// outstanding tracks the submissions of a session that have no response yet. Package
// submit limits their number.
type outstanding struct {
	mu       sync.Mutex
	closed   bool
	pending  map[uint32]*pendingRequest
	toWrite  chan *pendingRequest // in the order of the submissions
	resolved chan struct{}        // notified when a request is resolved
}

func newOutstanding(maxUnwritten int) *outstanding {
	return &outstanding{
		pending: make(map[uint32]*pendingRequest), toWrite: make(chan *pendingRequest, maxUnwritten), resolved: make(chan struct{}, 1),
	}
}

// add adds a request, which is then written. It returns false if outstanding is closed, or if
// maxUnwritten requests wait to be written because the SMSC does not read.
func (o *outstanding) add(r *pendingRequest) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return false
	}
	select {
	case o.toWrite <- r:
		o.pending[r.sequence] = r
		return true
	default:
		return false
	}
}

// hasRoom reports whether add accepts a request.
func (o *outstanding) hasRoom() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.closed && len(o.toWrite) < cap(o.toWrite)
}

// resolve removes and returns the request of a response. It returns nil if the request is unknown.
func (o *outstanding) resolve(sequence uint32) *pendingRequest {
	o.mu.Lock()
	r := o.pending[sequence]
	delete(o.pending, sequence)
	o.mu.Unlock()
	relay.Notify(o.resolved)
	return r
}

// expire marks the requests that were submitted before cutoff as timed out and returns them. It
// drops requests that timed out earlier and were submitted before forgetBefore.
func (o *outstanding) expire(cutoff, forgetBefore time.Time) (expired []*pendingRequest) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for sequence, r := range o.pending {
		switch {
		case !r.timedOut && r.submittedAt.Before(cutoff):
			r.timedOut = true
			expired = append(expired, r)
		case r.timedOut && r.submittedAt.Before(forgetBefore):
			delete(o.pending, sequence)
		}
	}
	return expired
}

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

// close refuses further requests and returns those without a response that have not timed out.
func (o *outstanding) close() []*pendingRequest {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	remaining := make([]*pendingRequest, 0, len(o.pending))
	for _, r := range o.pending {
		if !r.timedOut {
			remaining = append(remaining, r)
		}
	}
	clear(o.pending)
	return remaining
}

// lateFactor is the number of timeouts after which a late response is ignored.
const lateFactor = 20

// expirePending completes requests that timed out. Requests that were not written are sent over
// another bind; the others are Unknown, because their messages may have been accepted.
func (s *session) expirePending() {
	now := s.o.Now()
	for _, r := range s.outstanding.expire(now.Add(-s.o.AnswerTimeout), now.Add(-lateFactor*s.o.AnswerTimeout)) {
		if r.abandon() {
			r.done(unsentResult("the SMSC has not read for " + s.o.AnswerTimeout.String()))
			continue
		}
		r.done(carrier.Result{Verdict: carrier.Unknown, Reason: "the SMSC has not answered within " + s.o.AnswerTimeout.String()})
	}
}

func unsentResult(reason string) carrier.Result {
	return carrier.Result{Verdict: carrier.RetryLater, NotSubmitted: true, Reason: reason}
}

// failPending completes the requests of an ended session. Requests that were not written may be
// retried; the others are Unknown.
func (s *session) failPending(cause error) {
	for _, r := range s.outstanding.close() {
		if r.abandon() {
			r.done(unsentResult("the bind ended before the message was sent"))
			continue
		}
		const reason = "the bind ended before the SMSC answered"
		r.done(carrier.Result{Verdict: carrier.Unknown, Reason: reason, Cause: reason + ": " + cause.Error()})
	}
}
