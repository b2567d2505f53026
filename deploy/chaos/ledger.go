package main

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// item is one thing that was sent.
type item struct {
	acked  bool
	answer string // what the answer named it, such as the id of a message
}

// ledger is the truth of a run: everything that was sent, by kind and by an id of
// the run's own, and what was acknowledged of it.
type ledger struct {
	mu    sync.Mutex
	items map[string]map[string]item
	// unanswered counts, by kind, requests whose answer was lost and whose result
	// has an id that the gateway gives, such as a job.
	unanswered map[string]int
	// away counts answers that something is away for now, and none; refused counts
	// all others that are no 2xx, of which reasons are the first.
	unavailable, refused int
	reasons              []string
}

func newLedger() *ledger {
	return &ledger{items: map[string]map[string]item{}, unanswered: map[string]int{}}
}

// offer notes what is about to be sent.
func (l *ledger) offer(kind, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.items[kind][id]; !known {
		l.put(kind, id, item{})
	}
}

// ack notes what was acknowledged.
func (l *ledger) ack(kind, id, answer string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put(kind, id, item{acked: true, answer: answer})
}

func (l *ledger) put(kind, id string, one item) {
	if l.items[kind] == nil {
		l.items[kind] = map[string]item{}
	}
	l.items[kind][id] = one
}

// noAnswer notes that an answer was lost.
func (l *ledger) noAnswer(kind string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unanswered[kind]++
}

// judge counts an answer that something is away, and notes one that nothing explains.
func (l *ledger) judge(kind string, a answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a.unavailable() {
		l.unavailable++
	} else if !a.done() {
		if l.refused++; l.refused <= maxListed {
			l.reasons = append(l.reasons, fmt.Sprintf("%s: %s: %d %.300s", kind, a.request, a.status, a.body))
		}
	}
}

// sent returns the items of a kind that were sent.
func (l *ledger) sent(kind string) map[string]item {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.items[kind])
}

// sighting is how often a run found an item, and why it is not done.
type sighting struct {
	times  int
	undone string // why it is not done, empty if it is
}

// findings are the sightings by kind and id.
type findings map[string]map[string]sighting

// see notes that an item was found, so many times; undone says why it is not done.
func (f findings) see(kind, id string, times int, undone string) {
	if f[kind] == nil {
		f[kind] = map[string]sighting{}
	}
	earlier := f[kind][id]
	f[kind][id] = sighting{earlier.times + times, undone}
}

// seeOnce notes that an item was found. A second time it is there as another, which was
// never sent.
func (f findings) seeOnce(kind, id string) {
	f.see(kind, id, 1, "")
	if f[kind][id].times > 1 {
		f.see(kind, id+" (again)", 1, "")
	}
}

// verdict is the reconciliation of a kind.
type verdict struct {
	kind            string
	sent, acked     int
	lost            []string // acknowledged, and not there
	undone          []string // acknowledged and there, and not done
	duplicated      int      // came more than once, with the same id
	unaccounted     []string // there, and never sent
	unansweredFound int      // not acknowledged, and there
}

// reconcile compares what was sent of a kind with what was found.
func (l *ledger) reconcile(kind string, f findings) verdict {
	sent, found := l.sent(kind), f[kind]
	v := verdict{kind: kind, sent: len(sent)}
	for _, id := range slices.Sorted(maps.Keys(sent)) {
		s, there := found[id]
		switch {
		case there && !sent[id].acked:
			v.unansweredFound++
		case sent[id].acked && !there:
			v.lost = append(v.lost, id+named(sent[id]))
		case sent[id].acked && s.undone != "":
			v.undone = append(v.undone, id+named(sent[id])+": "+s.undone)
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

// named is the gateway's name of an item, behind a blank.
func named(one item) string {
	if one.answer == "" {
		return ""
	}
	return " (" + one.answer + ")"
}

// clean reports whether everything is there and done.
func (v verdict) clean() bool { return len(v.lost)+len(v.undone)+len(v.unaccounted) == 0 }
