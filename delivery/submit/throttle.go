package submit

import "time"

// throttle pauses a queue whose carrier throttles or is unavailable. Each pause is twice as long as
// the one before, up to maxPause, or as long as the carrier requests. After a pause one part may be
// in flight, and twice as many after each answer that is not throttled.
type throttle struct {
	window, limit int           // maximum number of parts in flight: at full speed, and now
	pause         time.Duration // the latest pause
	pausedUntil   time.Time
}

// slowDown pauses the queue after a throttled answer, for at least the requested time, up to
// maxRequestedPause. Answers that arrive during a pause belong to earlier submissions: they extend
// the pause only if they request more.
func (t *throttle) slowDown(now time.Time, requested time.Duration) {
	if now.Before(t.pausedUntil) {
		t.pausedUntil = laterOf(t.pausedUntil, now.Add(min(requested, maxRequestedPause)))
		return
	}
	t.pause = min(max(2*t.pause, minPause), maxPause)
	t.pausedUntil = now.Add(max(t.pause, min(requested, maxRequestedPause)))
	t.limit = 1
}

// maxRequestedPause caps the pause that a carrier may request.
const maxRequestedPause = 10 * time.Minute

func (t *throttle) speedUp() {
	t.limit = min(2*t.limit, t.window)
	if t.limit == t.window {
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
	perSecond float64   // 0 means no limit
	nextAt    time.Time // the time of the next part at an even rate
}

// allowance returns how many of n parts may be submitted now, or the time until one may be
// submitted. A burst contains at most the parts of a tenth of a second.
func (r *rateLimit) allowance(now time.Time, n int) (int, time.Duration) {
	if r.perSecond <= 0 || n <= 0 {
		return n, 0
	}
	if r.nextAt.Before(now) {
		r.nextAt = now
	}
	if wait := r.nextAt.Sub(now); wait > 100*time.Millisecond {
		return 0, wait - 100*time.Millisecond
	}
	burst := now.Add(100*time.Millisecond).Sub(r.nextAt).Seconds() * r.perSecond
	return min(n, max(1, int(burst))), 0
}

func (r *rateLimit) consume(n int) {
	if r.perSecond > 0 {
		r.nextAt = r.nextAt.Add(time.Duration(float64(n) / r.perSecond * float64(time.Second)))
	}
}
