package submit

import (
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/delivery/carrier"
	"github.com/penstock/penstock/relay/message"
)

// fly hands a part to the carrier.
func (l *lane) fly(it *item, part int) {
	var answers atomic.Int32
	l.route.Carrier.Submit(l.w.life, it.submission(part), func(o carrier.Outcome) {
		if answers.Add(1) > 1 { // after an Unknown, which was all that was known
			l.w.book.correct(it, l.outcome(it, part, o))
			return
		}
		now := l.w.deps.Now()
		l.land(it, 1, func() { l.note(&o, now) })
		l.w.book.add(it, l.outcome(it, part, o))
	})
}

// note has the lane go as fast as an answer says, and counts it.
func (l *lane) note(o *carrier.Outcome, now time.Time) {
	switch {
	case o.Throttled:
		l.stats.Throttled++
		l.brake.throttled(now, o.After)
	case o.Verdict == carrier.Unknown:
		l.stats.Unknown++
	default:
		l.brake.taken()
	}
	switch o.Verdict {
	case carrier.Accepted:
		l.stats.Accepted++
	case carrier.Rejected:
		l.stats.Rejected++
	}
}

// outcome is what the store shall know about a part.
func (l *lane) outcome(it *item, part int, o carrier.Outcome) message.Outcome {
	now := l.w.deps.Now()
	out := message.Outcome{PartRef: it.ref(part), Carrier: l.route.Name, Ref: o.ID, Reason: o.Reason, At: now}
	switch o.Verdict {
	case carrier.Accepted:
		out.State = message.Accepted
	case carrier.Rejected:
		out.State = message.Rejected
	case carrier.Unknown:
		out.State = message.Unknown
	default:
		l.again(it, &out, o, now)
	}
	return out
}

// leastWait is the shortest time after which a message is tried again.
const (
	leastWait = 5 * time.Second
	longWait  = time.Hour
)

// again has a part tried another time, or gives it up.
func (l *lane) again(it *item, out *message.Outcome, o carrier.Outcome, now time.Time) {
	out.State = message.Pending
	if o.Throttled { // the lane waits, not the message
		out.Again = now.Add(max(time.Millisecond, l.pausing(now)))
		return
	}
	waited := now.Sub(it.m.ScheduledFor)
	if waited >= l.w.o.GiveUp {
		out.State, out.Refund = message.Rejected, true
		out.Reason = "given up after " + l.w.o.GiveUp.String() + ": " + o.Reason
		return
	}
	out.Again = now.Add(max(leastWait, min(waited, longWait), o.After))
}

// pausing is how long the lane still waits.
func (l *lane) pausing(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.brake.resume.Sub(now)
}
