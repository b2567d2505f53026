package queue

import (
	"time"

	"github.com/penstock/penstock/relay/outbox"
)

// lane is what goes to one endpoint.
type lane struct {
	name    string
	pace    outbox.Pace // of the newest delivery seen, made at
	made    time.Time
	running int
	waiting []*item
	took    time.Duration // moving average of an attempt
	next    time.Time     // before it no attempt begins, where the pace has a rate
	timer   *time.Timer   // fires at next while something waits
}

// memory is how long what waits in a lane may take there; the rest waits in the
// store. fewWaiting may wait in any lane, however full the others are.
const (
	memory     = time.Minute
	fewWaiting = 64
)

// laneName names the lane of a delivery: its endpoint, but one for all mails
// without a pace of their own, which share the operator's mail server.
func laneName(d *outbox.Delivery) string {
	if d.Request == nil && d.Pace == (outbox.Pace{}) {
		return "mail"
	}
	return d.Lane()
}

// lane returns the lane of a delivery, which may be new.
func (f *flight) lane(d *outbox.Delivery) *lane {
	name := laneName(d)
	l := f.lanes[name]
	if l == nil {
		l = &lane{name: name, took: 50 * time.Millisecond}
		f.lanes[name] = l
	}
	if !d.CreatedAt.Before(l.made) {
		l.pace, l.made = d.Pace, d.CreatedAt
	}
	return l
}

// bound is how many attempts a lane may have under way.
func (f *flight) bound(l *lane) int {
	if l.pace.Concurrency > 0 {
		return l.pace.Concurrency
	}
	return f.opts.PerEndpoint
}

// free reports whether a lane may have one more attempt under way now. The less
// room is left in all, the less one lane gets, so that a few endpoints that hang
// never take it all.
func (f *flight) free(l *lane) bool {
	left := f.opts.Attempts - f.running
	return left > 0 && l.running < min(f.bound(l), max(1, left/2)) && !l.next.After(f.now())
}

// roomy reports whether one more may wait in a lane. The less room is left in
// all the less one lane gets, and none holds more than it can send soon.
func (f *flight) roomy(l *lane) bool {
	share := max(fewWaiting, (f.opts.Backlog-f.waiting)/2)
	return len(l.waiting) < min(f.opts.EndpointBacklog, share) && f.drain(l) <= memory
}

// drain estimates when what waits in the lane will have been tried.
func (f *flight) drain(l *lane) time.Duration {
	n := time.Duration(len(l.waiting) + 1)
	d := l.took * n / time.Duration(f.bound(l))
	if l.pace.PerSecond > 0 {
		d = max(d, n*gap(l.pace))
	}
	return d
}

// gap is the time between two attempts of a pace with a rate.
func gap(p outbox.Pace) time.Duration {
	return time.Duration(float64(time.Second) / p.PerSecond)
}

func (f *flight) begin(l *lane, it *item) {
	it.lane = l
	l.running++
	f.running++
	f.held[it.d.ID] = it
	if l.pace.PerSecond > 0 {
		now := f.now()
		if l.next.Before(now) {
			l.next = now
		}
		l.next = l.next.Add(gap(l.pace))
		f.arm(l)
	}
}

func (f *flight) queue(l *lane, it *item) {
	it.lane = l
	if len(l.waiting) == 0 {
		f.behind = append(f.behind, l)
	}
	l.waiting = append(l.waiting, it)
	f.waiting++
	f.held[it.d.ID] = it
	f.arm(l)
}

// arm sees to a lane again when its rate allows the next attempt.
func (f *flight) arm(l *lane) {
	wait := l.next.Sub(f.now())
	if l.timer == nil && wait > 0 {
		l.timer = time.AfterFunc(wait, func() { f.allowed(l) })
	}
}

// allowed begins what waits in a lane and may begin now.
func (f *flight) allowed(l *lane) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l.timer = nil
	if len(l.waiting) > 0 && f.free(l) {
		go f.work(f.shift(l))
	}
	if len(l.waiting) > 0 {
		f.arm(l)
	}
	f.drop(l)
}

// drop forgets a lane with nothing in it, unless it must remember its rate.
func (f *flight) drop(l *lane) {
	if l.running == 0 && len(l.waiting) == 0 && l.timer == nil {
		delete(f.lanes, l.name)
	}
}
