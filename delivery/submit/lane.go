package submit

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/penstock/penstock/relay/message"
)

// lane is what is on its way to one carrier: a line of messages, and parts under
// way, no more than its window.
type lane struct {
	w     *Worker
	route Route

	mu      sync.Mutex
	line    []*item
	waiting int // parts in the line
	room    int // parts that may be in the line
	flying  int
	turns   map[*item]struct{} // that have a part under way, where parts go in turn
	brake   brake
	pace    pace
	stats   Stats
	wake    chan struct{}
	landed  chan struct{} // told when nothing is under way
}

func newLane(w *Worker, r Route) *lane {
	r.Window = cmp.Or(r.Window, 10)
	return &lane{
		w: w, route: r, room: cmp.Or(w.o.Backlog, max(256, 8*r.Window)), turns: make(map[*item]struct{}),
		brake: brake{window: r.Window, allowed: r.Window, first: w.o.FirstPause, longest: w.o.LongestPause},
		pace:  pace{perSecond: r.PerSecond}, wake: make(chan struct{}, 1), landed: make(chan struct{}, 1),
	}
}

// add brings a message to the end of the line; false if the line is full. A
// message is never parted: the last may make the line longer than it should be.
func (l *lane) add(it *item) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting >= l.room {
		return false
	}
	l.line = append(l.line, it)
	l.waiting += len(it.next)
	tell(l.wake)
	return true
}

func (l *lane) roomLeft() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.room - l.waiting
}

// moves reports whether parts leave the line.
func (l *lane) moves() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.route.Carrier.Ready() && !l.brake.resume.After(l.w.deps.Now())
}

func (l *lane) counts() (waiting, flying int) {
	s := l.counted()
	return s.Waiting, s.UnderWay
}

func (l *lane) counted() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.stats
	s.Carrier, s.Waiting, s.UnderWay = l.route.Name, l.waiting, l.flying
	return s
}

func (l *lane) resumeNow() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.brake.resume = time.Time{}
	tell(l.wake)
}

// run submits until the worker ends.
func (l *lane) run() {
	for l.w.claims.Err() == nil {
		batch, wait := l.take()
		if len(batch) > 0 {
			l.begin(batch)
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-l.wake:
		case <-timer.C:
		case <-l.w.claims.Done():
		}
		timer.Stop()
	}
}

// idle is how long a lane sleeps that nobody wakes.
const idle = time.Second

// pick is some parts of one message.
type pick struct {
	it    *item
	parts []int
}

// take takes from the line what may leave now, or says how long to wait.
func (l *lane) take() ([]pick, time.Duration) {
	now := l.w.deps.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if wait := l.brake.resume.Sub(now); wait > 0 {
		return nil, wait
	}
	if l.waiting == 0 || !l.route.Carrier.Ready() {
		return nil, idle
	}
	n, wait := l.pace.allow(now, l.brake.allowed-l.flying)
	if n <= 0 {
		return nil, cmp.Or(wait, idle)
	}
	batch := l.pick(n)
	for _, p := range batch {
		l.flying += len(p.parts)
		l.waiting -= len(p.parts)
		l.pace.took(len(p.parts))
	}
	if l.waiting < l.room/2 {
		tell(l.w.room)
	}
	return batch, idle
}

// pick takes up to n parts off the line, in order.
func (l *lane) pick(n int) (batch []pick) {
	kept := l.line[:0]
	for i, it := range l.line {
		if n == 0 {
			kept = append(kept, l.line[i:]...)
			break
		}
		k := min(n, len(it.next))
		if _, out := l.turns[it]; l.route.InTurn {
			if k = min(k, 1); out {
				k = 0
			}
		}
		if k > 0 {
			batch = append(batch, pick{it, it.next[:k:k]})
			it.next = it.next[k:]
			n -= k
			if l.route.InTurn {
				l.turns[it] = struct{}{}
			}
		}
		if len(it.next) > 0 {
			kept = append(kept, it)
		}
	}
	clear(l.line[len(kept):])
	l.line = kept
	return batch
}

// begin writes down that parts are about to leave, and has them leave.
func (l *lane) begin(batch []pick) {
	now := l.w.deps.Now()
	starts := make([]message.Start, len(batch))
	for i, p := range batch {
		starts[i] = message.Start{
			Ref: p.it.m.Ref(), Parts: p.parts, Carrier: l.route.Name, Now: now, Until: now.Add(l.w.o.Lease), Again: l.asks(p.it, now),
		}
	}
	ctx, cancel := context.WithTimeout(l.w.life, storeTimeout)
	begun, err := l.w.deps.Work.Begin(ctx, starts)
	cancel()
	if err != nil {
		l.w.log.Warn("messages wait for the store", "carrier", l.route.Name, "error", err)
		l.putBack(batch)
		return
	}
	for i, p := range batch {
		l.drop(p.it, len(p.parts)-len(begun[i]))
		for _, part := range begun[i] {
			l.fly(p.it, part)
		}
	}
}

// asks reports whether parts that are being sent are asked for too: those that a
// dead process may have handed to a carrier that knows them, or those that the
// store noted for us, as long as the lease says that nobody else has them.
func (l *lane) asks(it *item, now time.Time) bool {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	return it.again && l.route.Again || it.noted && now.Before(it.until)
}

// putBack brings parts back to the head of the line, after the store was away.
// It may have noted that they are being sent.
func (l *lane) putBack(batch []pick) {
	l.w.mu.Lock()
	for _, p := range batch {
		p.it.noted = true
	}
	l.w.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	head := make([]*item, 0, len(batch)+len(l.line))
	for _, p := range batch {
		if len(p.it.next) == 0 {
			head = append(head, p.it)
		}
		p.it.next = append(p.parts, p.it.next...)
		l.flying -= len(p.parts)
		l.waiting += len(p.parts)
		delete(l.turns, p.it)
	}
	l.line = append(head, l.line...)
	l.brake.resume = l.w.deps.Now().Add(l.w.o.FirstPause)
}

// drop forgets parts that somebody else has, or that were deleted.
func (l *lane) drop(it *item, n int) {
	if n == 0 {
		return
	}
	l.land(it, n, nil)
	l.w.closed(it, n)
}

// land takes parts off those under way.
func (l *lane) land(it *item, n int, note func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flying -= n
	delete(l.turns, it)
	if note != nil {
		note()
	}
	tell(l.wake)
	if l.flying == 0 {
		tell(l.landed)
	}
}

// settle waits until nothing is under way.
func (l *lane) settle(ctx context.Context) {
	for {
		if _, flying := l.counts(); flying == 0 {
			return
		}
		select {
		case <-l.landed:
		case <-ctx.Done():
			return
		}
	}
}

// abandon empties the line and returns what was in it.
func (l *lane) abandon() (refs []message.Ref) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, it := range l.line {
		refs = append(refs, it.m.Ref())
	}
	l.line, l.waiting = nil, 0
	return refs
}
