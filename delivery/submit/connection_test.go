package submit

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock/penstock/delivery/carrier"
	"github.com/penstock/penstock/relay/message"
	"github.com/penstock/penstock/relay/relaytest"
)

// count returns the number of submissions.
func (n *network) count() int { return len(n.submittedAt()) }

func TestPartsAreSpreadOverTheConnectionsWithinTheirWindows(t *testing.T) {
	a, b, receiver := &network{}, &network{}, &network{notReady: true}
	bubble(t, []Route{{Name: "one", Connections: []Connection{{Carrier: a, Window: 3}, {Carrier: b, Window: 5}, {Carrier: receiver}}}}, Options{}, func(t *testing.T, sub *Submitter, s *store) {
		s.save(1, "1", 20, time.Now())
		sub.Start()
		advance(time.Second)
		relaytest.Equal(t, "the parts in flight by connection", []int{a.count(), b.count(), receiver.count()}, []int{3, 5, 0})
		for _, n := range []*network{a, b} {
			for _, id := range strings.Fields(n.submittedIDs()) {
				n.complete(id, carrier.Result{Verdict: carrier.Accepted, ID: id})
			}
			n.change(func() { n.answer = accept })
		}
		advance(time.Second)
		relaytest.Equal(t, "the parts submitted", a.count()+b.count(), 20)
		stop(t, sub)
	})
}

func TestPartsOfALostConnectionAreSubmittedOverTheOthersAtOnce(t *testing.T) {
	a, b := &network{}, &network{answer: accept}
	bubble(t, []Route{{Name: "one", Connections: []Connection{{Carrier: a}, {Carrier: b}}}}, Options{}, func(t *testing.T, sub *Submitter, s *store) {
		b.change(func() { b.notReady = true })
		s.dispatch(sub, s.save(1, "1", 2, time.Now().Add(time.Minute)))
		sub.Start()
		advance(time.Second)
		relaytest.Equal(t, "the parts submitted over the only bind", a.submittedIDs(), "7-1-0 7-1-1")
		b.change(func() { b.notReady = false })
		sub.Resume("one")
		a.change(func() { a.notReady = true })
		a.complete("7-1-0", carrier.Result{Verdict: carrier.Unknown, Reason: "the bind ended before the SMSC answered"})
		a.complete("7-1-1", carrier.Result{Verdict: carrier.RetryLater, NotSubmitted: true, Reason: "the bind ended before the message was sent"})
		s.save(2, "1", 1, time.Now())
		advance(time.Second)
		submitted := strings.Fields(b.submittedIDs())
		slices.Sort(submitted)
		relaytest.Equal(t, "the parts submitted over the other bind", strings.Join(submitted, " "), "7-1-1 7-2-0")
		relaytest.Equal(t, "the states of the parts", s.states(1), "unknown accepted")
		stop(t, sub)
	})
}

func TestPartsWaitWhileEveryConnectionIsLost(t *testing.T) {
	a, b := &network{}, &network{notReady: true}
	bubble(t, []Route{{Name: "one", Connections: []Connection{{Carrier: a}, {Carrier: b}}}}, Options{}, func(t *testing.T, sub *Submitter, s *store) {
		s.dispatch(sub, s.save(1, "1", 1, time.Now().Add(time.Minute)))
		sub.Start()
		advance(time.Second)
		a.change(func() { a.notReady = true })
		a.complete("7-1-0", carrier.Result{Verdict: carrier.RetryLater, NotSubmitted: true})
		advance(48 * time.Hour)
		relaytest.Equal(t, "the state after two days", s.states(1), string(message.Pending))
		b.change(func() { b.notReady, b.answer = false, accept })
		sub.Resume("one")
		advance(time.Millisecond)
		relaytest.Equal(t, "the submissions over the other bind when it is up", b.submittedIDs(), "7-1-0")
		stop(t, sub)
	})
}

func TestRateLimitsOfConnectionsAndCarriersAreEnforced(t *testing.T) {
	for name, tc := range map[string]struct {
		carrierRate, rateA, rateB float64
		limitA, limitB, limit     int // maximum parts in ten seconds
	}{
		"limits of both connections":               {0, 20, 30, 200, 300, 500},
		"limit of the carrier":                     {40, 0, 0, 400, 400, 400},
		"limits of one connection and the carrier": {40, 10, 0, 100, 400, 400},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := &network{answer: accept}, &network{answer: accept}
			conns := []Connection{{Carrier: a, Window: 100, PerSecond: tc.rateA}, {Carrier: b, Window: 100, PerSecond: tc.rateB}}
			bubble(t, []Route{{Name: "one", PerSecond: tc.carrierRate, Connections: conns}}, Options{}, func(t *testing.T, sub *Submitter, s *store) {
				s.save(1, "1", 1000, time.Now())
				sub.Start()
				advance(10 * time.Second)
				const burst = 5 // parts in a tenth of a second at the highest rate of the cases, 50/s
				if a.count() > tc.limitA+burst || b.count() > tc.limitB+burst || a.count()+b.count() > tc.limit+2*burst {
					t.Errorf("%d and %d parts, want at most %d and %d, and %d together", a.count(), b.count(), tc.limitA, tc.limitB, tc.limit)
				}
				if total := a.count() + b.count(); total < tc.limit*9/10 {
					t.Errorf("%d parts together, want about %d", total, tc.limit)
				}
				stop(t, sub)
			})
		})
	}
}

func TestMessagesAreLeftToTheGatewayThatHoldsTheBinds(t *testing.T) {
	a, otherCarrier := &network{}, &network{answer: accept}
	var heldElsewhere atomic.Bool
	routes := []Route{
		{Name: "one", Prefixes: []string{"44"}, Connections: []Connection{{Carrier: a, Window: 1}}, BoundElsewhere: heldElsewhere.Load}, {Name: "other", Connections: connectionTo(otherCarrier)},
	}
	bubble(t, routes, Options{}, func(t *testing.T, sub *Submitter, s *store) {
		m1, m2 := s.save(1, "44", 2, time.Now().Add(time.Minute)), s.save(2, "44", 1, time.Now().Add(time.Minute))
		s.dispatch(sub, m1, m2)
		sub.Start()
		advance(time.Second)
		relaytest.Equal(t, "the part submitted while this gateway holds the bind", a.submittedIDs(), "7-1-0")
		heldElsewhere.Store(true)
		sub.Resume("one")
		advance(time.Second)
		relaytest.Equal(t, "the waiting message is due soon", s.due(2).Before(time.Now().Add(time.Second)), true)
		relaytest.Equal(t, "the reason to wait", sub.WaitReason("44"), `waiting: another gateway holds the binds of carrier "one"`)
		a.complete("7-1-0", carrier.Result{Verdict: carrier.Accepted})
		s.save(3, "44", 1, time.Now())
		s.dispatch(sub, s.save(4, "44", 1, time.Now().Add(time.Minute)))
		s.save(5, "49", 1, time.Now())
		leased := func() (n int) { s.change(func() { n = s.leased }); return n }
		advance(10 * time.Second)
		leasedBefore := leased()
		advance(20 * time.Second)
		if n := leased() - leasedBefore; n > 4*5 {
			t.Errorf("the messages were leased %d times in 20 s, want at most four messages every 5 s", n)
		}
		relaytest.Equal(t, "the parts submitted meanwhile", a.submittedIDs(), "7-1-0")
		relaytest.Equal(t, "the parts of the other carrier", otherCarrier.submittedIDs(), "7-5-0")
		heldElsewhere.Store(false)
		a.change(func() { a.answer = accept })
		sub.Resume("one")
		advance(20 * time.Second)
		relaytest.Equal(t, "the number of parts after this gateway holds the bind again", a.count(), 5)
		stop(t, sub)
	})
}

func TestAFailedMarkingDoesNotShortenThePause(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	q := newCarrierQueue(&Submitter{deps: Deps{Now: func() time.Time { return now }}}, Route{})
	q.throttle.slowDown(now, time.Minute) // an answer, while parts are being marked
	q.requeue(nil)
	relaytest.Equal(t, "the end of the pause", q.throttle.pausedUntil, now.Add(time.Minute))
}
