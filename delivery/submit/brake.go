package submit

import "time"

// brake holds a lane back whose carrier throttles or is away: nothing leaves for
// a while, longer each time, then one part, and twice as many with each answer
// that the carrier takes them again.
type brake struct {
	window, allowed int
	first, longest  time.Duration
	pause           time.Duration // the last one
	resume          time.Time
}

// throttled notes an answer that says to go slower. Those to what left before
// the brake was put on say nothing new.
func (b *brake) throttled(now time.Time, asked time.Duration) {
	if now.Before(b.resume) {
		b.resume = later(b.resume, now.Add(min(asked, maxAsked)))
		return
	}
	b.pause = min(max(2*b.pause, b.first), b.longest)
	b.resume = now.Add(max(b.pause, min(asked, maxAsked)))
	b.allowed = 1
}

// maxAsked is how long a carrier may ask to be left alone.
const maxAsked = 10 * time.Minute

// taken notes an answer that shows that the carrier is there and not too slow.
func (b *brake) taken() {
	b.allowed = min(2*b.allowed, b.window)
	if b.allowed == b.window {
		b.pause = 0
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// pace spreads what leaves over a second.
type pace struct {
	perSecond float64 // 0: there is no bound
	next      time.Time
}

// allow returns how many of n may leave now, else how long until one may. A
// tenth of a second's parts may leave at once.
func (p *pace) allow(now time.Time, n int) (int, time.Duration) {
	if p.perSecond <= 0 || n <= 0 {
		return n, 0
	}

	if p.next.Before(now) {
		p.next = now
	}
	if wait := p.next.Sub(now); wait > 100*time.Millisecond {
		return 0, wait - 100*time.Millisecond
	}
	ahead := now.Add(100*time.Millisecond).Sub(p.next).Seconds() * p.perSecond
	return min(n, max(1, int(ahead))), 0
}

// took notes that parts leave.
func (p *pace) took(n int) {
	if p.perSecond > 0 {
		p.next = p.next.Add(time.Duration(float64(n) / p.perSecond * float64(time.Second)))
	}
}
