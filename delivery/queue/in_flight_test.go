package queue

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock/penstock/delivery/lease"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/relaytest"
)

// gate is an inFlight whose attempts block until unblock.
type gate struct {
	*inFlight
	mu    sync.Mutex
	begun []string
	start chan string
	open  map[string]chan struct{}
}

func newGate(o Options) *gate {
	g := &gate{start: make(chan string, 1000), open: make(map[string]chan struct{})}
	g.inFlight = newInFlight(withDefaults(o), emptySet(), time.Now, func(item *item) {
		g.mu.Lock()
		g.begun = append(g.begun, item.delivery.ID)
		c := g.open[item.delivery.ID]
		g.mu.Unlock()
		g.start <- item.delivery.ID
		<-c
	})
	g.inFlight.open()
	return g
}

func emptySet() *lease.Set[outbox.Ref] {
	return lease.NewSet(lease.Options[outbox.Ref]{Now: time.Now})
}

func (g *gate) item(host, id string) *item {
	g.mu.Lock()
	if g.open[id] == nil {
		g.open[id] = make(chan struct{})
	}
	g.mu.Unlock()
	return newItem(outbox.Delivery{ID: id, Account: 1, Request: &outbox.Request{URL: "http://" + host + "/x"}}, time.Now().Add(time.Hour))
}

func (g *gate) put(host string, n int) (states []admission) {
	for i := range n {
		states = append(states, g.admit(g.item(host, fmt.Sprintf("%s-%d", host, i))))
	}
	return states
}

func (g *gate) unblock(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.open[id])
}

func (g *gate) await(n int) (ids []string) {
	for range n {
		ids = append(ids, <-g.start)
	}
	slices.Sort(ids)
	return ids
}

// expectLoad compares how many attempts run and how many deliveries wait.
func (g *gate) expectLoad(t *testing.T, running, waiting int) {
	t.Helper()
	r, w := g.load()
	relaytest.Equal(t, "running and waiting", [2]int{r, w}, [2]int{running, waiting})
}

func TestAnEndpointQueueRunsThenQueuesThenRefuses(t *testing.T) {
	g := newGate(Options{Attempts: 100, PerEndpoint: 2, EndpointBacklog: 3})
	relaytest.Equal(t, "the admissions", g.put("a", 6), []admission{admitted, admitted, admitted, admitted, admitted, full})
	relaytest.Equal(t, "the first attempts", g.await(2), []string{"a-0", "a-1"})
	if g.admit(g.item("a", "a-0")) != admitted {
		t.Error("a delivery in flight was not admitted")
	}
	g.expectLoad(t, 2, 3)
	g.unblock("a-0")
	relaytest.Equal(t, "the next attempt", g.await(1), []string{"a-2"})
}

func TestHangingEndpointsNeverTakeAllCapacity(t *testing.T) {
	g := newGate(Options{Attempts: 64, PerEndpoint: 16})
	for i := range 8 {
		g.put(fmt.Sprintf("hangs%d", i), 50)
	}
	running, _ := g.load()
	if running >= 64 {
		t.Fatalf("%d attempts run of at most 64, want some left", running)
	}
	relaytest.Equal(t, "the admission of a healthy endpoint", g.put("healthy", 1), []admission{admitted})
	relaytest.Equal(t, "its delivery is leased", g.leases.Has(outbox.Ref{Account: 1, ID: "healthy-0"}), true)
	for id := range g.start {
		if id == "healthy-0" {
			break
		}
	}
}

func TestAWaitingEndpointQueueGetsReleasedCapacity(t *testing.T) {
	g := newGate(Options{Attempts: 2, PerEndpoint: 2})
	g.put("a", 1)
	g.put("b", 1)
	g.put("c", 1) // no capacity is left
	g.await(2)
	g.unblock("a-0")
	relaytest.Equal(t, "the next attempt", g.await(1), []string{"c-0"})
}

func TestStopReturnsWaitingDeliveriesAndAdmitsNoMore(t *testing.T) {
	g := newGate(Options{PerEndpoint: 1})
	g.put("a", 3)
	g.await(1)
	if refs := g.stop(); len(refs) != 2 {
		t.Errorf("stop returned %v, want two deliveries", refs)
	}
	if g.admit(g.item("b", "b-0")) != stopping {
		t.Error("a delivery was admitted after stop")
	}
	g.unblock("a-0")
	<-g.drained
}

func TestEachEndpointHasItsQueue(t *testing.T) {
	get := func(url string) *outbox.Request { return &outbox.Request{URL: url} }
	relay := outbox.Delivery{Account: 1, Endpoint: "e", Request: get("http://a.example/x")}
	plain := outbox.Delivery{Account: 1, Request: get("http://a.example/x?y")}
	mail := outbox.Delivery{Account: 1, Endpoint: "m", Mail: &outbox.Mail{To: "a@example.org"}}
	paced := mail
	paced.Pace.PerSecond = 1
	for _, c := range []struct {
		name string
		a, b outbox.Delivery
		same bool
	}{
		{"one endpoint of a relay with other placeholders", relay, outbox.Delivery{Account: 1, Endpoint: "e", Request: get("http://a.example/z")}, true},
		{"two endpoints at one host", relay, outbox.Delivery{Account: 1, Endpoint: "f", Request: relay.Request}, false},
		{"without an endpoint the host counts", plain, outbox.Delivery{Account: 1, Request: get("http://a.example/z")}, true},
		{"without an endpoint the port counts", plain, outbox.Delivery{Account: 1, Request: get("http://a.example:81/x")}, false},
		{"without an endpoint the account counts", plain, outbox.Delivery{Account: 2, Request: plain.Request}, false},
		{"mails share the mail server", mail, outbox.Delivery{Account: 2, Mail: &outbox.Mail{To: "b@example.org"}}, true},
		{"mails with a pace do not", mail, paced, false},
		{"SMS share the queue of messages", outbox.Delivery{Account: 1, Endpoint: "a", SMS: &outbox.SMS{To: "1"}}, outbox.Delivery{Account: 2, SMS: &outbox.SMS{To: "2"}}, true},
		{"SMS do not wait for mails", mail, outbox.Delivery{Account: 1, SMS: &outbox.SMS{To: "1"}}, false},
		{"messages for SIMs have a queue of their own", mail, outbox.Delivery{Account: 1, Endpoint: "s", SIM: &outbox.SIM{ICCID: "8944"}}, false},
	} {
		if got := queueName(&c.a) == queueName(&c.b); got != c.same {
			t.Errorf("%s: the same queue: %t, want %t", c.name, got, c.same)
		}
	}
}

func TestAnEndpointQueueLimitsItsConcurrency(t *testing.T) {
	g := newGate(Options{PerEndpoint: 8})
	for i := range 5 {
		item := g.item("a", fmt.Sprintf("a-%d", i))
		item.delivery.Pace.Concurrency = 2
		g.admit(item)
	}
	g.expectLoad(t, 2, 3)
	changed := g.item("a", "a-5")
	changed.delivery.Pace.Concurrency, changed.delivery.CreatedAt = 4, time.Now()
	g.admit(changed)
	g.await(2)
	g.unblock("a-0")
	g.await(2) // the newest delivery's limit allows more attempts
	g.unblock("a-1")
	g.await(2)
	g.expectLoad(t, 4, 0)
}

func TestAnEndpointQueueLimitsItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var begun []time.Duration
		var mu sync.Mutex
		start := time.Now()
		f := newInFlight(withDefaults(Options{}), emptySet(), time.Now, func(*item) {
			mu.Lock()
			begun = append(begun, time.Since(start))
			mu.Unlock()
		})
		f.open()
		put := func(id string) {
			f.admit(newItem(outbox.Delivery{
				ID: id, Account: 1, Endpoint: "e", Request: &outbox.Request{URL: "http://a/"}, Pace: outbox.Pace{PerSecond: 2},
			}, start.Add(time.Hour)))
		}
		put("a")
		synctest.Wait() // the queue is empty, and keeps its rate limit
		for _, id := range []string{"b", "c", "d"} {
			put(id)
		}
		time.Sleep(10 * time.Second)
		put("e")
		synctest.Wait()
		want := []time.Duration{0, 500 * time.Millisecond, time.Second, 1500 * time.Millisecond, 10 * time.Second}
		relaytest.Equal(t, "the times of the attempts", begun, want)
		time.Sleep(time.Second)
		synctest.Wait()
		relaytest.Equal(t, "the number of queues left", len(f.queues), 0)
	})
}

func TestHangingEndpointsLeaveMemoryToOthers(t *testing.T) {
	g := newGate(Options{PerEndpoint: 1, Backlog: 1000, EndpointBacklog: 1000})
	for i := range 20 {
		g.put(fmt.Sprintf("hangs%d", i), 1000)
	}
	if got := g.put("healthy", 1+minQueueShare); slices.Contains(got, full) {
		t.Errorf("a healthy endpoint is refused: %v", got)
	}
}

// released counts the leases that are released.
type released struct {
	lease.Store[outbox.Ref]
	count int
}

func (r *released) Release(_ context.Context, leases []outbox.Lease, _ time.Time) error {
	r.count += len(leases)
	return nil
}

// Frames are processed by the goroutine that dispatches what rules create: if that waited
// for the endpoint of one account, frames of others would wait too.
func TestDeliveriesOfRulesDoNotWaitForCapacity(t *testing.T) {
	for kind, want := range map[outbox.Kind]time.Duration{outbox.KindRule: 0, outbox.KindRelay: maxDispatchWait} {
		t.Run(string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &released{}
				leases := lease.NewSet(lease.Options[outbox.Ref]{Now: time.Now, Store: store})
				q := &Queue{deps: Deps{Now: time.Now}, leases: leases, attemptCtx: t.Context()}
				q.inFlight = newInFlight(withDefaults(Options{PerEndpoint: 1, EndpointBacklog: 1}), leases, time.Now, func(*item) { time.Sleep(time.Second) })
				q.inFlight.open()
				var ds []outbox.Delivery
				for i := range 5 {
					ds = append(ds, outbox.Delivery{
						ID: fmt.Sprint(i), Account: 1, Kind: kind, Endpoint: "e", Request: &outbox.Request{URL: "http://a/"}, CreatedAt: time.Now(), NextAttemptAt: time.Now().Add(time.Hour),
					})
				}
				start := time.Now()
				q.Dispatch(ds)
				relaytest.Equal(t, "the time that Dispatch waits", time.Since(start), want)
				relaytest.Equal(t, "the deliveries that are left to the store", store.count, 3)
				time.Sleep(time.Minute) // until the attempts have ended
			})
		})
	}
}
