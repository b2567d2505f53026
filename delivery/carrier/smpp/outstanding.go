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

// window tracks the pending requests of a session.
type window struct {
	mu       sync.Mutex
	closed   bool
	pending  map[uint32]*pendingRequest
	resolved chan struct{} // notified when a request is resolved
}

func newWindow() *window {
	return &window{pending: make(map[uint32]*pendingRequest), resolved: make(chan struct{}, 1)}
}

// add adds a request and calls enqueue under the lock, so that PDUs are sent in
// the order of the calls. It returns false if the window is closed.
func (w *window) add(r *pendingRequest, enqueue func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.pending[r.sequence] = r
	enqueue()
	return true
}

// resolve removes and returns the request of a response; nil if there is none.
func (w *window) resolve(sequence uint32) *pendingRequest {
	w.mu.Lock()
	r := w.pending[sequence]
	delete(w.pending, sequence)
	w.mu.Unlock()
	select {
	case w.resolved <- struct{}{}:
	default:
	}
	return r
}

// expire marks the requests submitted before the given time as timed out and
// returns them. It drops those that timed out earlier and were submitted before
// forgetBefore.
func (w *window) expire(before, forgetBefore time.Time) (expired []*pendingRequest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for sequence, r := range w.pending {
		switch {
		case !r.timedOut && r.submittedAt.Before(before):
			r.timedOut = true
			expired = append(expired, r)
		case r.timedOut && r.submittedAt.Before(forgetBefore):
			delete(w.pending, sequence)
		}
	}
	return expired
}

// closeToNew makes add return false.
func (w *window) closeToNew() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
}

// count returns the number of requests that have not timed out.
func (w *window) count() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.pending {
		if !r.timedOut {
			n++
		}
	}
	return n
}

// close closes the window and returns the requests that are left.
func (w *window) close() []*pendingRequest {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	left := make([]*pendingRequest, 0, len(w.pending))
	for _, r := range w.pending {
		if !r.timedOut {
			left = append(left, r)
		}
	}
	clear(w.pending)
	return left
}

// handleResponse resolves the request of a response.
func (s *session) handleResponse(h smpp.Header, raw []byte) {
	r := s.window.resolve(h.Sequence)
	if r == nil {
		return // of an enquire_link, or unknown
	}
	r.done(outcomeOf(h, raw))
}

// expirePending completes requests that timed out as Unknown: the messages may
// have been accepted.
func (s *session) expirePending() {
	now := s.o.Now()
	for _, r := range s.window.expire(now.Add(-s.o.AnswerTimeout), now.Add(-lateFactor*s.o.AnswerTimeout)) {
		r.done(carrier.Outcome{Verdict: carrier.Unknown, Reason: "the SMSC has not answered within " + s.o.AnswerTimeout.String()})
	}
}

// lateFactor is for how many timeouts a late response is still used.
const lateFactor = 20

// failPending completes the pending requests of an ended session: those not
// written may be retried, the others are Unknown.
func (s *session) failPending(why error) {
	for _, r := range s.window.close() {
		if !r.written.Load() {
			r.done(carrier.Outcome{Verdict: carrier.Later, PauseQueue: true, Reason: "the bind ended before it was sent"})
			continue
		}
		r.done(carrier.Outcome{Verdict: carrier.Unknown, Reason: "the bind ended before the SMSC answered: " + why.Error()})
	}
}
