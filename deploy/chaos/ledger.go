package main

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// item is an item of the load, such as a message.
type item struct {
	acked bool
	id    string // the gateway's id, such as the id of a message; empty if unknown
}

// ledger records every item that was sent, by kind and by an id that this program chose, and
// whether it was acknowledged.
type ledger struct {
	mu    sync.Mutex
	items map[string]map[string]item
	// unanswered counts, by kind, requests without a usable answer whose result has an id that
	// only the gateway knows, such as the id of a job.
	unanswered map[string]int
	// unavailable counts answers for which answer.unavailable is true. refused counts all other
	// answers except 2xx, and reasons has the first of them.
	unavailable, refused int
	reasons              []string
}

func newLedger() *ledger {
	return &ledger{items: map[string]map[string]item{}, unanswered: map[string]int{}}
}

// offer records an item that is about to be sent.
func (l *ledger) offer(kind, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.items[kind][id]; !known {
		l.put(kind, id, item{})
	}
}

// ack records that an item was acknowledged. gatewayID is the gateway's id of the item; it may be
// empty.
func (l *ledger) ack(kind, id, gatewayID string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put(kind, id, item{acked: true, id: gatewayID})
}

func (l *ledger) put(kind, id string, i item) {
	if l.items[kind] == nil {
		l.items[kind] = map[string]item{}
	}
	l.items[kind][id] = i
}

// noAnswer counts a request whose answer was lost.
func (l *ledger) noAnswer(kind string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unanswered[kind]++
}

// countAnswer counts an answer other than 2xx, and stores the first refusals.
func (l *ledger) countAnswer(kind string, a answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a.unavailable() {
		l.unavailable++
	} else if !a.ok() {
		if l.refused++; l.refused <= maxListed {
			l.reasons = append(l.reasons, fmt.Sprintf("%s: %s answered %d: %.300s", kind, a.request, a.status, a.body))
		}
	}
}

// sent returns the items of a kind that were sent.
func (l *ledger) sent(kind string) map[string]item {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.items[kind])
}

// sighting is the number of times that an item was found after the load, and its state.
type sighting struct {
	times  int
	undone string // why the item is not done; empty if it is done
}

// findings are sightings by kind and id.
type findings map[string]map[string]sighting

// see records that an item was found times more often. undone is the reason why it is not done.
func (f findings) see(kind, id string, times int, undone string) {
	if f[kind] == nil {
		f[kind] = map[string]sighting{}
	}
	earlier := f[kind][id]
	f[kind][id] = sighting{earlier.times + times, undone}
}

// seeOnce records that an item was found. If it was found before, it also records an item that was
// never sent, so that the repetition is unaccounted.
func (f findings) seeOnce(kind, id string) {
	f.see(kind, id, 1, "")
	if f[kind][id].times > 1 {
		f.see(kind, id+" (again)", 1, "")
	}
}

// verdict is the result of comparing sent items of a kind with found items.
type verdict struct {
	kind            string
	sent, acked     int
	lost            []string // acknowledged, but not found
	undone          []string // acknowledged and found, but not done
	duplicated      int      // found more than once with the same id
	unaccounted     []string // found, but never sent
	unansweredFound int      // found, but not acknowledged
}

// reconcile compares the sent items of a kind with the found ones. It takes unaccounted items for
// results of unanswered requests if there are no more of them than of such requests.
func (l *ledger) reconcile(kind string, f findings) verdict {
	sent, found := l.sent(kind), f[kind]
	v := verdict{kind: kind, sent: len(sent)}
	for _, id := range slices.Sorted(maps.Keys(sent)) {
		s, present := found[id]
		switch {
		case present && !sent[id].acked:
			v.unansweredFound++
		case sent[id].acked && !present:
			v.lost = append(v.lost, id+gatewayName(sent[id]))
		case sent[id].acked && s.undone != "":
			v.undone = append(v.undone, id+gatewayName(sent[id])+": "+s.undone)
		}
		if sent[id].acked {
			v.acked++
		}
		if s.times > 1 {
			v.duplicated++
		}
	}
	for _, id := range slices.Sorted(maps.Keys(found)) {
		if _, known := sent[id]; !known {
			v.unaccounted = append(v.unaccounted, id)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(v.unaccounted); n > 0 && n <= l.unanswered[kind] {
		v.unansweredFound += n
		v.unaccounted = nil
	}
	return v
}

// gatewayName returns the gateway's id of an item as " (id)", or nothing if it is unknown.
func gatewayName(i item) string {
	if i.id == "" {
		return ""
	}
	return " (" + i.id + ")"
}

// clean reports whether no item is lost, undone or unaccounted.
func (v verdict) clean() bool { return len(v.lost)+len(v.undone)+len(v.unaccounted) == 0 }
