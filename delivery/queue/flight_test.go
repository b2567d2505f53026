package queue

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/outbox"
)

// gate is a flight whose attempts wait until they are let go.
type gate struct {
	*flight
	mu    sync.Mutex
	begun []string
	start chan string
	open  map[string]chan struct{}
}

func newGate(o Options) *gate {
	g := &gate{start: make(chan string, 1000), open: make(map[string]chan struct{})}
	g.flight = newFlight(defaults(o), time.Now, func(it *item) {
		g.mu.Lock()
		g.begun = append(g.begun, it.d.ID)
		c := g.open[it.d.ID]
		g.mu.Unlock()
		g.start <- it.d.ID
		<-c
	})
	return g
}

func (g *gate) item(host, id string) *item {
	g.mu.Lock()
	if g.open[id] == nil {
		g.open[id] = make(chan struct{})
	}
	g.mu.Unlock()
	return &item{
		d:     outbox.Delivery{ID: id, Account: 1, Request: &outbox.Request{URL: "http://" + host + "/x"}},
		lease: time.Now().Add(time.Hour),
	}
}

func (g *gate) put(host string, n int) (states []admission) {
	for i := range n {
		states = append(states, g.admit(g.item(host, fmt.Sprintf("%s-%d", host, i))))
	}
	return states
}

func (g *gate) letGo(id string) {
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

func TestALaneTakesItsPlacesThenWaitsThenIsFull(t *testing.T) {
	g := newGate(Options{Attempts: 100, PerEndpoint: 2, EndpointBacklog: 3})
	got := g.put("a", 6)
	if want := []admission{taken, taken, taken, taken, taken, full}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if ids := g.await(2); !slices.Equal(ids, []string{"a-0", "a-1"}) {
		t.Errorf("begun %v", ids)
	}
	if g.admit(g.item("a", "a-0")) != taken {
		t.Error("what is held already was not taken as such")
	}
	if running, waiting := g.load(); running != 2 || waiting != 3 {
		t.Errorf("running %d, waiting %d", running, waiting)
	}
	g.letGo("a-0")
	if ids := g.await(1); ids[0] != "a-2" {
		t.Errorf("after the first: %v", ids)
	}
}

func TestLanesThatHangNeverTakeAllPlaces(t *testing.T) {
	g := newGate(Options{Attempts: 64, PerEndpoint: 16})
	for i := range 8 {
		g.put(fmt.Sprintf("hangs%d", i), 50)
	}
	running, _ := g.load()
	if running >= 64 {
		t.Fatalf("%d of 64 places are taken", running)
	}
	if got := g.put("healthy", 1); got[0] != taken || !g.holds("healthy-0") {
		t.Errorf("got %v", got)
	}
	for id := range g.start {
		if id == "healthy-0" {
			break
		}
	}
}

func TestAWaitingLaneGetsAPlaceThatAnotherLeft(t *testing.T) {
	g := newGate(Options{Attempts: 2, PerEndpoint: 2})
	g.put("a", 1)
	g.put("b", 1)
	g.put("c", 1) // no place is left
	g.await(2)
	g.letGo("a-0")
	if ids := g.await(1); ids[0] != "c-0" {
		t.Errorf("begun %v", ids)
	}
}

func TestEnterAndLeaveShareThePlaces(t *testing.T) {
	g := newGate(Options{PerEndpoint: 1})
	it := g.item("a", "first")
	if g.enter(it) != taken || it.lane == nil {
		t.Fatal("no place in an empty lane")
	}
	other := g.item("a", "second")
	if g.enter(other) != full || g.admit(other) != taken {
		t.Fatal("the lane has two places")
	}
	again := g.item("a", "first")
	if g.enter(again) != taken || again.lane != nil {
		t.Error("one delivery was begun twice")
	}
	g.leave(it, time.Millisecond)
	if ids := g.await(1); ids[0] != "second" {
		t.Errorf("begun %v", ids)
	}
}

func TestStopReturnsWhatWaitsAndTakesNothingMore(t *testing.T) {
	g := newGate(Options{PerEndpoint: 1})
	g.put("a", 3)
	g.await(1)
	if refs := g.stop(); len(refs) != 2 {
		t.Errorf("returned %v", refs)
	}
	if g.admit(g.item("b", "b-0")) != refused || g.enter(g.item("b", "b-1")) != refused {
		t.Error("took something after the stop")
	}
	g.letGo("a-0")
	<-g.idle()
}

func TestEndpointsAreHosts(t *testing.T) {
	for url, want := range map[string]string{
		"https://a.example:8443/x?y": "a.example:8443", "http://a.example/z": "a.example", "://": "unreadable",
	} {
		if got := endpoint(&outbox.Delivery{Request: &outbox.Request{URL: url}}); got != want {
			t.Errorf("%s: %s", url, got)
		}
	}
	if got := endpoint(&outbox.Delivery{Mail: &outbox.Mail{}}); got != "mail" {
		t.Errorf("mail: %s", got)
	}
}
