package submit

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/penstock/penstock/delivery/carrier"
)

// Route is a carrier and the numbers that it serves.
type Route struct {
	Name string
	// Connections are the connections over which the carrier takes parts, at least one. When
	// one is lost, the others take its parts.
	Connections []Connection
	// Prefixes are the prefixes of the numbers it serves; empty means all
	// numbers.
	Prefixes []string
	// PerSecond is the maximum number of parts per second over all connections; 0 means no
	// limit.
	PerSecond float64
	// HeldElsewhere reports whether another gateway sends the carrier's messages, which this
	// one does not send then. nil means never.
	HeldElsewhere func() bool
	// Idempotent means that the carrier recognizes a part that is submitted twice.
	Idempotent bool
	// InTurn submits the parts of a message one at a time, because the carrier
	// does not keep their order.
	InTurn bool
	// ReceiptsByCarrierID means that receipts name a part by the id that the carrier
	// returned.
	ReceiptsByCarrierID bool
	// FitsSevenBit reports whether the carrier encodes a text of the GSM alphabet in 7
	// bits; other texts are sent as UCS-2. nil means all texts.
	FitsSevenBit func(text string) bool
	// AcceptsOriginator reports whether the carrier passes on an originator; nil means all.
	AcceptsOriginator func(originator string) bool
}

// Connection is one way to a carrier: a bind to its SMSC, or its HTTP interface.
type Connection struct {
	Name    string // of the bind; empty for an HTTP carrier
	Carrier carrier.Carrier
	// Window is the maximum number of parts in flight; 0 means 10.
	Window int
	// PerSecond is the maximum number of parts per second; 0 means no limit.
	PerSecond float64
}

// router selects the carrier queue of a number by its longest prefix.
type router struct{ byPrefix []prefix }

type prefix struct {
	digits string
	queue  *carrierQueue
}

// newRouter returns a router over queues; of two with the same prefix the first
// wins.
func newRouter(queues []*carrierQueue) router {
	var r router
	for _, q := range queues {
		prefixes := q.route.Prefixes
		if len(prefixes) == 0 {
			prefixes = []string{""} // every number
		}
		for _, digits := range prefixes {
			r.byPrefix = append(r.byPrefix, prefix{digits, q})
		}
	}
	slices.SortStableFunc(r.byPrefix, func(a, b prefix) int { return cmp.Compare(len(b.digits), len(a.digits)) })
	return r
}

// queueFor returns the queue of the longest prefix of a number, or nil.
func (r router) queueFor(number string) *carrierQueue {
	for _, p := range r.byPrefix {
		if strings.HasPrefix(number, p.digits) {
			return p.queue
		}
	}
	return nil
}

// throttle pauses a queue whose carrier throttles or is unavailable. Each pause
// is longer than the one before; after it, one part may be in flight, and twice
// as many with each answer that is not throttled.
type throttle struct {
	window, allowed int
	pause           time.Duration // the latest one
	pausedUntil     time.Time
}

// slowDown pauses the queue after a throttled answer. Answers that arrive during a pause
// belong to earlier submissions and extend it only if they require more.
func (t *throttle) slowDown(now time.Time, requested time.Duration) {
	if now.Before(t.pausedUntil) {
		t.pausedUntil = laterOf(t.pausedUntil, now.Add(min(requested, maxRequestedPause)))
		return
	}
	t.pause = min(max(2*t.pause, minPause), maxPause)
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
