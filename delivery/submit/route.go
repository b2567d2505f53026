package submit

import (
	"strings"
	"time"

	"github.com/penstock/penstock/delivery/carrier"
)

// Route is a carrier and the numbers that it serves.
type Route struct {
	Name string
	// Connections are the connections to the carrier, at least one. When one is lost, its parts
	// are submitted over the others.
	Connections []Connection
	// Prefixes are the prefixes of the carrier's numbers; empty means all numbers.
	Prefixes []string
	// PerSecond is the maximum number of parts per second over all connections; 0 means no
	// limit.
	PerSecond float64
	// BoundElsewhere reports whether another gateway holds the carrier's binds: then only that
	// gateway sends the carrier's messages. nil means never.
	BoundElsewhere func() bool
	// Idempotent means that the carrier recognizes a part that is submitted twice.
	Idempotent bool
	// Sequential means that the parts of a message are submitted one at a time, because the carrier
	// does not keep their order.
	Sequential bool
	// ReceiptsByCarrierID means that receipts name a part by the id that the carrier returned.
	ReceiptsByCarrierID bool
	// FitsSevenBit reports whether the carrier encodes a text of the GSM alphabet in 7
	// bits; other texts are sent as UCS-2. nil means all texts.
	FitsSevenBit func(text string) bool
	// AcceptsOriginator reports whether the carrier passes on an originator; nil means all.
	AcceptsOriginator func(originator string) bool
}

// Connection is a connection to a carrier: a bind to its SMSC, or its HTTP interface.
type Connection struct {
	Name    string // of the bind; empty for an HTTP carrier
	Carrier carrier.Carrier
	// Window is the maximum number of parts in flight; 0 means 10.
	Window int
	// PerSecond is the maximum number of parts per second; 0 means no limit.
	PerSecond float64
}

// queueFor returns the queue of the route with the longest prefix of a number, nil if there is
// none. Of two routes with this prefix the first wins.
func (s *Submitter) queueFor(number string) (selected *carrierQueue) {
	longest := -1
	for _, q := range s.queues {
		prefixes := q.route.Prefixes
		if len(prefixes) == 0 {
			prefixes = []string{""} // every number
		}
		for _, prefix := range prefixes {
			if len(prefix) > longest && strings.HasPrefix(number, prefix) {
				selected, longest = q, len(prefix)
			}
		}
	}
	return selected
}

// throttle pauses a queue whose carrier throttles or is unavailable. Each pause is longer than
// the one before. After a pause one part may be in flight, and twice as many after each answer
// that is not throttled.
type throttle struct {
	window, limit int           // maximum number of parts in flight: at full speed, and now
	pause         time.Duration // the latest pause
	pausedUntil   time.Time
}

// slowDown pauses the queue after a throttled answer, for at least the requested time. Answers
// that arrive during a pause belong to earlier submissions: they extend the pause only if they
// request more.
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
