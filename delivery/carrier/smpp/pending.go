package smpp

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/decoders/smpp"
	"github.com/penstock/penstock/delivery/carrier"
)

// outgoing is a PDU on its way to the SMSC. Submissions have an answer owed.
type outgoing struct {
	raw  []byte
	owed *owed
}

// owed is a submission that the SMSC owes an answer to.
type owed struct {
	sequence uint32
	at       time.Time // when it was handed over
	done     func(carrier.Outcome)
	// written says that octets of it may have left: it may be at the SMSC, even
	// if the connection broke.
	written atomic.Bool
	// late says that it was given up, and its answer is of use if it comes.
	late bool
}

// debts are the answers that an SMSC owes in one session.
type debts struct {
	mu     sync.Mutex
	closed bool
	all    map[uint32]*owed
	paid   chan struct{} // told when one is paid
}

func newDebts() *debts { return &debts{all: make(map[uint32]*owed), paid: make(chan struct{}, 1)} }

// add notes a debt and hands it to queue, so that the PDUs leave in the order of
// the calls. It is false when the session takes no more.
func (d *debts) add(o *owed, queue func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	d.all[o.sequence] = o
	queue()
	return true
}

// pay takes the debt that an answer is for; nil if there is none.
func (d *debts) pay(sequence uint32) *owed {
	d.mu.Lock()
	o := d.all[sequence]
	delete(d.all, sequence)
	d.mu.Unlock()
	select {
	case d.paid <- struct{}{}:
	default:
	}
	return o
}

// overdue marks the debts that are older than a moment as late and returns them.
// Those that were late before, for as long again, are forgotten.
func (d *debts) overdue(before, ancient time.Time) (late []*owed) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for sequence, o := range d.all {
		switch {
		case !o.late && o.at.Before(before):
			o.late = true
			late = append(late, o)
		case o.late && o.at.Before(ancient):
			delete(d.all, sequence)
		}
	}
	return late
}

// stop takes no more debts.
func (d *debts) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
}

// open counts the debts that are not late.
func (d *debts) open() (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, o := range d.all {
		if !o.late {
			n++
		}
	}
	return n
}

// end takes no more debts and returns those that are left.
func (d *debts) end() []*owed {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	left := make([]*owed, 0, len(d.all))
	for _, o := range d.all {
		if !o.late {
			left = append(left, o)
		}
	}
	clear(d.all)
	return left
}

// answered pays the debt that an answer is for.
func (s *session) answered(h smpp.Header, raw []byte) {
	o := s.debts.pay(h.Sequence)
	if o == nil {
		return // an enquire_link's, or nobody knows whose
	}
	o.done(outcomeOf(h, raw))
}

// late gives up answers that do not come. Their messages may have arrived.
func (s *session) late() {
	now := s.o.Now()
	for _, o := range s.debts.overdue(now.Add(-s.o.AnswerTimeout), now.Add(-lateFor*s.o.AnswerTimeout)) {
		o.done(carrier.Outcome{Verdict: carrier.Unknown, Reason: "the SMSC has not answered within " + s.o.AnswerTimeout.String()})
	}
}

// lateFor is how many times the timeout an answer that comes too late is of use.
const lateFor = 20

// bankrupt tells of what the ended session leaves without an answer: what was
// not written can go again, the rest may have arrived.
func (s *session) bankrupt(why error) {
	for _, o := range s.debts.end() {
		if !o.written.Load() {
			o.done(carrier.Outcome{Verdict: carrier.Later, Throttled: true, Reason: "the bind ended before it was sent"})
			continue
		}
		o.done(carrier.Outcome{Verdict: carrier.Unknown, Reason: "the bind ended before the SMSC answered: " + why.Error()})
	}
}
