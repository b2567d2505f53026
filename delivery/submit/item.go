package submit

import (
	"time"

	"github.com/penstock/penstock/delivery/carrier"
	"github.com/penstock/penstock/relay/message"
)

// item is a message in hand. Its fields are for who holds the worker's lock,
// but next, which is its lane's.
type item struct {
	m     message.Message
	next  []int // parts that are to be submitted, in order
	again bool  // some of them were being sent when somebody died
	until time.Time
	// noted says that the store may have it that some parts are being sent which
	// were not handed over: its answer was lost.
	noted bool
	// open counts parts that are to be submitted, under way, or have an outcome
	// that is not saved.
	open int
}

// ref names a part.
func (it *item) ref(part int) message.PartRef { return message.PartRef{Ref: it.m.Ref(), Part: part} }

// submission is a part as carriers take it.
func (it *item) submission(part int) carrier.Submission {
	m, p := &it.m, &it.m.Parts[part]
	return carrier.Submission{
		ID: it.ref(part).String(), From: m.Originator, To: m.Destination, Coding: int(m.Coding),
		UDH: p.UDH, Data: p.Data, Text: p.Text, Flash: m.Flash, Replace: m.Replace,
	}
}

// take brings a message into its carrier's line. It is false if there is no room
// there.
func (w *Worker) take(m *message.Message) bool {
	l := w.router.lane(m.Destination)
	it := &item{m: *m, until: w.deps.Now().Add(w.o.Lease)}
	outcomes := w.sort(it, l)
	it.open = len(it.next) + len(outcomes)
	if it.open == 0 {
		return true
	}
	w.mu.Lock()
	_, had := w.held[m.Ref()]
	switch {
	case had: // and its outcome is on its way to the store
		w.mu.Unlock()
		return true
	case w.stopped, l != nil && len(it.next) > 0 && !l.add(it):
		w.mu.Unlock()
		return false
	}
	w.held[m.Ref()] = it
	w.mu.Unlock()
	for _, o := range outcomes {
		w.book.add(it, o)
	}
	return true
}

// sort puts the parts in line that are to be submitted, and returns what is to
// be said of others.
func (w *Worker) sort(it *item, l *lane) (outcomes []message.Outcome) {
	now := w.deps.Now()
	for n := range it.m.Parts {
		p := &it.m.Parts[n]
		o := message.Outcome{PartRef: it.ref(n), Carrier: p.Carrier, At: now}
		switch {
		case p.State == message.Sending && !w.knows(p.Carrier, l):
			o.State, o.Reason = message.Unknown, "the gateway ended before the carrier had answered"
			outcomes = append(outcomes, o)
		case p.State == message.Sending:
			it.next, it.again = append(it.next, n), true
		case p.State != message.Pending || p.ScheduledAt.After(now):
		case l == nil:
			o.State, o.Refund, o.Reason = message.Rejected, true, "there is no carrier for the number"
			outcomes = append(outcomes, o)
		default:
			it.next = append(it.next, n)
		}
	}
	return outcomes
}

// knows reports whether the lane's carrier is the one that a part was handed to,
// and knows what it gets twice.
func (w *Worker) knows(carrier string, l *lane) bool {
	return l != nil && l.route.Name == carrier && l.route.Again
}

// closed says that so many parts of an item are done with. Once none is left,
// the message is no longer in hand.
func (w *Worker) closed(it *item, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if it.open -= n; it.open <= 0 {
		delete(w.held, it.m.Ref())
	}
}
