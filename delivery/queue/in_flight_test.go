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

// blockingInFlight is an inFlight in which each attempt blocks until unblock is called with its
// delivery.
type blockingInFlight struct {
	*inFlight
	mu        sync.Mutex
	started   chan string // ids of attempts that have begun
	unblocked map[string]chan struct{}
}

func newBlockingInFlight(o Options) *blockingInFlight {
	b := &blockingInFlight{started: make(chan string, 1000), unblocked: make(map[string]chan struct{})}
	b.inFlight = newInFlight(withDefaults(o), emptySet(), time.Now, func(item *item) {
		b.mu.Lock()
		c := b.unblocked[item.delivery.ID]
		b.mu.Unlock()
		b.started <- item.delivery.ID
		<-c
	})
	b.inFlight.open()
	return b
}

func emptySet() *lease.Set[outbox.Ref] {
	return lease.NewSet(lease.Options[outbox.Ref]{Now: time.Now})
}

func (b *blockingInFlight) item(host, id string) *item {
	b.mu.Lock()
	if b.unblocked[id] == nil {
		b.unblocked[id] = make(chan struct{})
	}
	b.mu.Unlock()
	return newItem(outbox.Delivery{ID: id, Account: 1, Request: &outbox.Request{URL: "http://" + host + "/x"}}, time.Now().Add(time.Hour))
}

func (b *blockingInFlight) admitN(host string, n int) (states []admission) {
	for i := range n {
		states = append(states, b.admit(b.item(host, fmt.Sprintf("%s-%d", host, i))))
	}
	return states
}

func (b *blockingInFlight) unblock(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.unblocked[id])
}

func (b *blockingInFlight) await(n int) (ids []string) {
	for range n {
		ids = append(ids, <-b.started)
	}
	slices.Sort(ids)
	return ids
}

// expectLoad compares the number of running attempts and the number of waiting deliveries.
func (b *blockingInFlight) expectLoad(t *testing.T, running, waiting int) {
	t.Helper()
	r, w := b.counts()
	relaytest.Equal(t, "running and waiting", [2]int{r, w}, [2]int{running, waiting})
}

func TestAnEndpointQueueRefusesDeliveriesBeyondItsBacklog(t *testing.T) {
	b := newBlockingInFlight(Options{Attempts: 100, PerEndpoint: 2, EndpointBacklog: 3})
	relaytest.Equal(t, "the admissions", b.admitN("a", 6), []admission{admitted, admitted, admitted, admitted, admitted, full})
	relaytest.Equal(t, "the first attempts", b.await(2), []string{"a-0", "a-1"})
	if b.admit(b.item("a", "a-0")) != admitted {
		t.Error("a delivery in flight was not admitted")
	}
	b.expectLoad(t, 2, 3)
	b.unblock("a-0")
	relaytest.Equal(t, "the next attempt", b.await(1), []string{"a-2"})
}

func TestHangingEndpointsNeverUseAllCapacity(t *testing.T) {
	b := newBlockingInFlight(Options{Attempts: 64, PerEndpoint: 16})
	for i := range 8 {
		b.admitN(fmt.Sprintf("hangs%d", i), 50)
	}
	running, _ := b.counts()
	if running >= 64 {
		t.Fatalf("%d attempts run, want fewer than the limit of 64", running)
	}
	relaytest.Equal(t, "the admission of a healthy endpoint", b.admitN("healthy", 1), []admission{admitted})
	relaytest.Equal(t, "the delivery of the healthy endpoint is leased", b.leases.Has(outbox.Ref{Account: 1, ID: "healthy-0"}), true)
	for id := range b.started {
		if id == "healthy-0" {
			break
		}
	}
}

func TestAWaitingEndpointQueueGetsReleasedCapacity(t *testing.T) {
	b := newBlockingInFlight(Options{Attempts: 2, PerEndpoint: 2})
	b.admitN("a", 1)
	b.admitN("b", 1)
	b.admitN("c", 1) // waits, because two attempts run
	b.await(2)
	b.unblock("a-0")
	relaytest.Equal(t, "the next attempt", b.await(1), []string{"c-0"})
}

func TestStopReturnsWaitingDeliveriesAndAdmitsNoMore(t *testing.T) {
	b := newBlockingInFlight(Options{PerEndpoint: 1})
	b.admitN("a", 3)
	b.await(1)
	if refs := b.stop(); len(refs) != 2 {
		t.Errorf("stop returned %v, want two leases", refs)
	}
	if b.admit(b.item("b", "b-0")) != notRunning {
		t.Error("a delivery was admitted after stop")
	}
	b.unblock("a-0")
	<-b.drained
}

func TestEachEndpointHasItsQueue(t *testing.T) {
	request := func(url string) *outbox.Request { return &outbox.Request{URL: url} }
	relayed := outbox.Delivery{Account: 1, Endpoint: "e", Request: request("http://a.example/x")}
	plain := outbox.Delivery{Account: 1, Request: request("http://a.example/x?y")}
	mail := outbox.Delivery{Account: 1, Endpoint: "m", Mail: &outbox.Mail{To: "a@example.org"}}
	paced := mail
	paced.Pace.PerSecond = 1
	for _, c := range []struct {
		name      string
		a, b      outbox.Delivery
		sameQueue bool
	}{
		{"the same endpoint with different URLs", relayed, outbox.Delivery{Account: 1, Endpoint: "e", Request: request("http://a.example/z")}, true},
		{"two endpoints of one host", relayed, outbox.Delivery{Account: 1, Endpoint: "f", Request: relayed.Request}, false},
		{"two paths of a host, without endpoint names", plain, outbox.Delivery{Account: 1, Request: request("http://a.example/z")}, true},
		{"two ports of a host, without endpoint names", plain, outbox.Delivery{Account: 1, Request: request("http://a.example:81/x")}, false},
		{"two accounts, without endpoint names", plain, outbox.Delivery{Account: 2, Request: plain.Request}, false},
		{"mails without a pace", mail, outbox.Delivery{Account: 2, Mail: &outbox.Mail{To: "b@example.org"}}, true},
		{"mails with and without a pace", mail, paced, false},
		{"SMS of two accounts", outbox.Delivery{Account: 1, Endpoint: "a", SMS: &outbox.SMS{To: "1"}}, outbox.Delivery{Account: 2, SMS: &outbox.SMS{To: "2"}}, true},
		{"a mail and an SMS", mail, outbox.Delivery{Account: 1, SMS: &outbox.SMS{To: "1"}}, false},
		{"a mail and a message for a SIM", mail, outbox.Delivery{Account: 1, Endpoint: "s", SIM: &outbox.SIM{ICCID: "8944"}}, false},
	} {
		if got := queueName(&c.a) == queueName(&c.b); got != c.sameQueue {
			t.Errorf("%s: same queue = %t, want %t", c.name, got, c.sameQueue)
		}
	}
}

func TestAnEndpointQueueLimitsItsConcurrency(t *testing.T) {
	b := newBlockingInFlight(Options{PerEndpoint: 8})
	for i := range 5 {
		item := b.item("a", fmt.Sprintf("a-%d", i))
		item.delivery.Pace.Concurrency = 2
		b.admit(item)
	}
	b.expectLoad(t, 2, 3)
	changed := b.item("a", "a-5")
	changed.delivery.Pace.Concurrency, changed.delivery.CreatedAt = 4, time.Now()
	b.admit(changed)
	b.await(2)
	b.unblock("a-0")
	b.await(2) // the limit of the newest delivery allows two more attempts
	b.unblock("a-1")
	b.await(2)
	b.expectLoad(t, 4, 0)
}

func TestAnEndpointQueueLimitsItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var startTimes []time.Duration // of the attempts, since the start
		var mu sync.Mutex
		start := time.Now()
		f := newInFlight(withDefaults(Options{}), emptySet(), time.Now, func(*item) {
			mu.Lock()
			startTimes = append(startTimes, time.Since(start))
			mu.Unlock()
		})
		f.open()
		admit := func(id string) {
			f.admit(newItem(outbox.Delivery{
				ID: id, Account: 1, Endpoint: "e", Request: &outbox.Request{URL: "http://a/"}, Pace: outbox.Pace{PerSecond: 2},
			}, start.Add(time.Hour)))
		}
		admit("a")
		synctest.Wait() // the queue is empty, but keeps its rate limit
		for _, id := range []string{"b", "c", "d"} {
			admit(id)
		}
		time.Sleep(10 * time.Second)
		admit("e")
		synctest.Wait()
		want := []time.Duration{0, 500 * time.Millisecond, time.Second, 1500 * time.Millisecond, 10 * time.Second}
		relaytest.Equal(t, "the times of the attempts", startTimes, want)
		time.Sleep(time.Second)
		synctest.Wait()
		relaytest.Equal(t, "the number of remaining queues", len(f.queues), 0)
	})
}

func TestHangingEndpointsLeaveBacklogToOtherEndpoints(t *testing.T) {
	b := newBlockingInFlight(Options{PerEndpoint: 1, Backlog: 1000, EndpointBacklog: 1000})
	for i := range 20 {
		b.admitN(fmt.Sprintf("hangs%d", i), 1000)
	}
	if got := b.admitN("healthy", 1+minQueueShare); slices.Contains(got, full) {
		t.Errorf("a healthy endpoint has the admissions %v, want none refused", got)
	}
}

// releaseCounter counts the leases that are released.
type releaseCounter struct {
	lease.Store[outbox.Ref]
	count int
}

func (r *releaseCounter) Release(_ context.Context, leases []outbox.Lease, _ time.Time) error {
	r.count += len(leases)
	return nil
}

// The goroutine that processes frames dispatches the deliveries of rules. If it waited for the
// endpoint of one account, the frames of other accounts would wait too.
func TestDeliveriesOfRulesDoNotWaitForCapacity(t *testing.T) {
	for kind, want := range map[outbox.Kind]time.Duration{outbox.KindRule: 0, outbox.KindRelay: maxDispatchWait} {
		t.Run(string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &releaseCounter{}
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
				relaytest.Equal(t, "the number of released deliveries", store.count, 3)
				time.Sleep(time.Minute) // until the attempts have ended
			})
		})
	}
}
