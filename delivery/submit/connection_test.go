package submit

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock/penstock/delivery/carrier"
	"github.com/penstock/penstock/relay/message"
	"github.com/penstock/penstock/relay/relaytest"
)

// count returns the number of submissions.
func (n *network) count() int { return len(n.tried()) }

func TestPartsAreSpreadOverTheConnectionsWithinTheirWindows(t *testing.T) {
	a, b, receiver := &network{}, &network{}, &network{notReady: true}
	bubble(t, []Route{{Name: "one", Connections: []Connection{{Carrier: a, Window: 3}, {Carrier: b, Window: 5}, {Carrier: receiver}}}}, Options{}, func(t *testing.T, w *Submitter, s *store) {
		s.save(1, "1", 20, time.Now())
		w.Start()
		settle(time.Second)
		relaytest.Equal(t, "the parts in flight by connection", []int{a.count(), b.count(), receiver.count()}, []int{3, 5, 0})
		for _, n := range []*network{a, b} {
			for _, id := range strings.Fields(n.all()) {
				n.complete(id, carrier.Outcome{Verdict: carrier.Accepted, ID: id})
			}
			n.set(func() { n.answer = accept })
		}
		settle(time.Second)
		relaytest.Equal(t, "the parts submitted", a.count()+b.count(), 20)
		stop(t, w)
	})
}

func TestOtherConnectionsTakeThePartsOfALostOneAtOnce(t *testing.T) {
	a, b := &network{}, &network{answer: accept}
	bubble(t, []Route{{Name: "one", Connections: []Connection{{Carrier: a}, {Carrier: b}}}}, Options{}, func(t *testing.T, w *Submitter, s *store) {
		b.set(func() { b.notReady = true })
		s.dispatch(w, s.save(1, "1", 2, time.Now().Add(time.Minute)))
		w.Start()
		settle(time.Second)
		relaytest.Equal(t, "the parts submitted over the only bind", a.all(), "7-1-0 7-1-1")
		b.set(func() { b.notReady = false })
		w.Resume("one")
		a.set(func() { a.notReady = true })
		a.complete("7-1-0", carrier.Outcome{Verdict: carrier.Unknown, Reason: "the bind ended before the SMSC answered"})
		a.complete("7-1-1", carrier.Outcome{Verdict: carrier.Later, Unsent: true, Reason: "the bind ended before it was sent"})
		s.save(2, "1", 1, time.Now())
		settle(time.Second)
		relaytest.Equal(t, "the parts submitted over the other bind", strings.Contains(b.all(), "7-1-1") && strings.Contains(b.all(), "7-2-0") && b.count() == 2, true)
		relaytest.Equal(t, "the states of the parts", s.states(1), "unknown accepted")
		stop(t, w)
	})
}

func TestPartsWaitWhileEveryConnectionIsLost(t *testing.T) {
	a, b := &network{}, &network{notReady: true}
	bubble(t, []Route{{Name: "one", Connections: []Connection{{Carrier: a}, {Carrier: b}}}}, Options{}, func(t *testing.T, w *Submitter, s *store) {
		s.dispatch(w, s.save(1, "1", 1, time.Now().Add(time.Minute)))
		w.Start()
		settle(time.Second)
		a.set(func() { a.notReady = true })
		a.complete("7-1-0", carrier.Outcome{Verdict: carrier.Later, Unsent: true})
		settle(48 * time.Hour)
		relaytest.Equal(t, "the state after two days", s.states(1), string(message.Pending))
		b.set(func() { b.notReady, b.answer = false, accept })
		w.Resume("one")
		settle(time.Millisecond)
		relaytest.Equal(t, "the submissions over the first bind that is up", b.all(), "7-1-0")
		stop(t, w)
	})
}

func TestTheRatesOfConnectionsAndCarrierAreKept(t *testing.T) {
	for name, tc := range map[string]struct {
		ofCarrier, ofA, ofB float64
		limitA, limitB, sum int // in ten seconds
	}{
		"of each connection":                {0, 20, 30, 200, 300, 500},
		"of the carrier":                    {40, 0, 0, 400, 400, 400},
		"of one connection and the carrier": {40, 10, 0, 100, 400, 400},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := &network{answer: accept}, &network{answer: accept}
			conns := []Connection{{Carrier: a, Window: 100, PerSecond: tc.ofA}, {Carrier: b, Window: 100, PerSecond: tc.ofB}}
			bubble(t, []Route{{Name: "one", PerSecond: tc.ofCarrier, Connections: conns}}, Options{}, func(t *testing.T, w *Submitter, s *store) {
				s.save(1, "1", 1000, time.Now())
				w.Start()
				settle(10 * time.Second)
				const burst = 5 // a tenth of a second
				if a.count() > tc.limitA+burst || b.count() > tc.limitB+burst || a.count()+b.count() > tc.sum+2*burst {
					t.Errorf("%d and %d parts, want at most %d and %d, and %d together", a.count(), b.count(), tc.limitA, tc.limitB, tc.sum)
				}
				if sum := a.count() + b.count(); sum < tc.sum*9/10 {
					t.Errorf("%d parts together, want about %d", sum, tc.sum)
				}
				stop(t, w)
			})
		})
	}
}

func TestMessagesAreLeftToTheGatewayThatHoldsTheBinds(t *testing.T) {
	a, other := &network{}, &network{answer: accept}
	var elsewhere atomic.Bool
	routes := []Route{
		{Name: "one", Prefixes: []string{"44"}, Connections: []Connection{{Carrier: a, Window: 1}}, HeldElsewhere: elsewhere.Load}, {Name: "other", Connections: over(other)},
	}
	bubble(t, routes, Options{}, func(t *testing.T, w *Submitter, s *store) {
		first, second := s.save(1, "44", 2, time.Now().Add(time.Minute)), s.save(2, "44", 1, time.Now().Add(time.Minute))
		s.dispatch(w, first, second)
		w.Start()
		settle(time.Second)
		relaytest.Equal(t, "the part submitted while this gateway holds the bind", a.all(), "7-1-0")
		elsewhere.Store(true)
		w.Resume("one")
		settle(time.Second)
		relaytest.Equal(t, "whether the message that waited is due soon", s.due(2).Before(time.Now().Add(time.Second)), true)
		relaytest.Equal(t, "why it waits", w.Waits("44"), "waits: another gateway holds the binds of the carrier one")
		a.complete("7-1-0", carrier.Outcome{Verdict: carrier.Accepted})
		s.save(3, "44", 1, time.Now())
		s.dispatch(w, s.save(4, "44", 1, time.Now().Add(time.Minute)))
		s.save(5, "49", 1, time.Now())
		leased := func() int { s.mu.Lock(); defer s.mu.Unlock(); return s.leased }
		settle(10 * time.Second)
		before := leased()
		settle(20 * time.Second)
		if n := leased() - before; n > 4*5 {
			t.Errorf("the messages were leased %d times in 20 s, want four of them at most every 5 s", n)
		}
		relaytest.Equal(t, "the parts submitted meanwhile", a.all(), "7-1-0")
		relaytest.Equal(t, "the parts of the other carrier", other.all(), "7-5-0")
		elsewhere.Store(false)
		a.set(func() { a.answer = accept })
		w.Resume("one")
		settle(20 * time.Second)
		relaytest.Equal(t, "the number of parts once it holds the bind again", a.count(), 5)
		stop(t, w)
	})
}
