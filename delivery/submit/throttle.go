package submit

import "time"

// throttle pauses a queue whose carrier throttles or is unavailable. Each pause
// is longer than the one before; after it, one part may be in flight, and twice
// as many with each answer that is not throttled.
type throttle struct {
	window, allowed    int
	minPause, maxPause time.Duration
	pause              time.Duration // the latest one
	pausedUntil        time.Time
}

// slowDown pauses the queue after a throttled answer. Answers that arrive during
// a pause belong to earlier submissions and extend it only if they ask for more.
func (t *throttle) slowDown(now time.Time, requested time.Duration) {
	if now.Before(t.pausedUntil) {
		t.pausedUntil = laterOf(t.pausedUntil, now.Add(min(requested, maxRequestedPause)))
		return
	}
	t.pause = min(max(2*t.pause, t.minPause), t.maxPause)
	t.pausedUntil = now.Add(max(t.pause, min(requested, maxRequestedPause)))
	t.allowed = 1
}

// maxRequestedPause caps the pause that a carrier may request.
const maxRequestedPause = 10 * time.Minute

// speedUp raises the limit after an answer that was not throttled.
func (t *throttle) speedUp() {
	t.allowed = min(2*t.allowed, t.window)
	if t.allowed == t.window {
		t.pause = 0
	}
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// rateLimit spreads submissions evenly over a second.
type rateLimit struct {
	perSecond float64 // 0 means no limit
	next      time.Time
}

// allowed returns how many of n parts may be submitted now, or how long until
// one may be. A burst of a tenth of a second is allowed.
func (r *rateLimit) allowed(now time.Time, n int) (int, time.Duration) {
	if r.perSecond <= 0 || n <= 0 {
		return n, 0
	}

	if r.next.Before(now) {
		r.next = now
	}
	if wait := r.next.Sub(now); wait > 100*time.Millisecond {
		return 0, wait - 100*time.Millisecond
	}
	ahead := now.Add(100*time.Millisecond).Sub(r.next).Seconds() * r.perSecond
	return min(n, max(1, int(ahead))), 0
}

// consume records that n parts are submitted.
func (r *rateLimit) consume(n int) {
	if r.perSecond > 0 {
		r.next = r.next.Add(time.Duration(float64(n) / r.perSecond * float64(time.Second)))
	}
}
