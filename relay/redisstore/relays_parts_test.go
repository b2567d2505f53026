package redisstore

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/inbound"
)

// groups of the tests, in two shards.
const (
	groupA = "a0000000000000000000000000000001"
	groupB = "b0000000000000000000000000000002"
)

// partsBook drives a store of parts on a clock of its own, in seconds.
type partsBook struct {
	t   *testing.T
	s   *Parts
	now float64
}

func (b *partsBook) times() inbound.Times {
	return inbound.Times{Now: at(b.now), Wait: 300 * time.Second, Lease: 60 * time.Second}
}

func arrival(group string, number, total int, id, content string) inbound.Arrival {
	return inbound.Arrival{
		Group: group, Number: number, Total: total, Digest: fmt.Sprintf("%x", content),
		Message: inbound.Message{ID: id, Text: content + "\"é\n|", ReceivedAt: at(0)},
	}
}

// add takes one part in and says what became of it: "state holder texts".
func (b *partsBook) add(group string, number, total int, id, content string) string {
	b.t.Helper()
	got, err := b.s.Add(b.t.Context(), []inbound.Arrival{arrival(group, number, total, id, content)}, b.times())
	if err != nil {
		b.t.Fatal(err)
	}
	return strings.TrimSpace(string(got[0].State) + " " + got[0].Holder + " " + contents(got[0].Group))
}

func contents(g inbound.Gathered) string {
	out := ""
	for _, m := range g.Parts {
		out += strings.TrimSuffix(m.Text, "\"é\n|")
	}
	return out
}

// due says what must go on now: "id:texts …".
func (b *partsBook) due() string {
	b.t.Helper()
	got, err := b.s.Due(b.t.Context(), b.times(), 100)
	if err != nil {
		b.t.Fatal(err)
	}
	var out []string
	for _, g := range got {
		out = append(out, g.ID+":"+contents(g))
	}
	return strings.Join(out, " ")
}

func (b *partsBook) end(group, id string) {
	b.t.Helper()
	if err := b.s.End(b.t.Context(), []inbound.Gathered{{Group: group, ID: id}}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *partsBook) is(what, got, want string) {
	b.t.Helper()
	if got != want {
		b.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func TestParts(t *testing.T) {
	onEvery(t, func(t *testing.T, open func(t *testing.T) *DB) {
		for name, test := range map[string]func(*partsBook){
			"wait for the others, in any order":                  partsJoin,
			"are taken once":                                     partsRepeat,
			"that come again after the message went on are none": partsRepeatLater,
			"go on without the one that does not come":           partsTimeOut,
			"go on when who sent them on has died":               partsLease,
			"with the reference of others begin a new message":   partsReference,
			"that nobody takes can be tried again":               partsPark,
			"of the same text are a new message after a while":   partsAgain,
			"of a whole repetition wait and are dropped":         partsSubset,
			"of more than go in one round trip keep their order": partsMany,
		} {
			t.Run(name, func(t *testing.T) { test(&partsBook{t: t, s: open(t).Parts()}) })
		}
		t.Run("are completed by one process only", func(t *testing.T) { partsRace(t, open(t).Parts()) })
		t.Run("are handed out to one process only", func(t *testing.T) { partsSweepRace(t, open(t).Parts()) })
	})
}

func partsMany(b *partsBook) {
	const n = maxCalls + maxCalls/2
	var all []inbound.Arrival
	for number := range 2 {
		for i := range n {
			group, id := fmt.Sprintf("%032x", i), fmt.Sprintf("e%d-%d", number, i)
			all = append(all, arrival(group, number+1, 2, id, fmt.Sprint(id, " ")))
		}
	}
	got, err := b.s.Add(b.t.Context(), all, b.times())
	if err != nil || len(got) != 2*n {
		b.t.Fatalf("%d answers, %v", len(got), err)
	}
	for i, a := range got {
		state, text := inbound.Waiting, ""
		if i >= n {
			state, text = inbound.Completed, fmt.Sprintf("e0-%d e1-%d ", i-n, i-n)
		}
		if a.State != state || contents(a.Group) != text {
			b.t.Fatalf("part %d is %s with %q, want %s with %q", i, a.State, contents(a.Group), state, text)
		}
	}
}

func partsJoin(b *partsBook) {
	b.is("3 of 3", b.add(groupA, 3, 3, "e1", "c"), "waiting")
	b.is("another group", b.add(groupB, 1, 2, "f1", "x"), "waiting")
	b.is("1 of 3", b.add(groupA, 1, 3, "e2", "a"), "waiting")
	b.is("2 of 3", b.add(groupA, 2, 3, "e3", "b"), "complete e2 abc")
	b.is("processed again, before it has gone on", b.add(groupA, 1, 3, "e2", "a"), "complete e2 abc")
	b.end(groupA, "e2")
	b.is("processed again, after", b.add(groupA, 1, 3, "e2", "a"), "again e2 abc")
	b.now = 299
	b.is("due", b.due(), "")
	b.is("the other group", b.add(groupB, 2, 2, "f2", "y"), "complete f1 xy")
}

func partsRepeat(b *partsBook) {
	b.is("first", b.add(groupA, 1, 2, "e1", "a"), "waiting")
	b.is("itself again", b.add(groupA, 1, 2, "e1", "a"), "waiting")
	b.is("a copy", b.add(groupA, 1, 2, "e2", "a"), "duplicate e1")
	b.is("second", b.add(groupA, 2, 2, "e3", "b"), "complete e1 ab")
	b.end(groupA, "e1")
	b.now = 5000
	b.is("the copy, replayed", b.add(groupA, 1, 2, "e2", "a"), "again e1 ab")
}

func partsRepeatLater(b *partsBook) {
	b.add(groupA, 1, 2, "e1", "a")
	b.add(groupA, 2, 2, "e2", "b")
	b.end(groupA, "e1")
	b.now = 10
	b.is("a copy of the first", b.add(groupA, 1, 2, "e3", "a"), "waiting")
	b.is("a copy of the second", b.add(groupA, 2, 2, "e4", "b"), "duplicate e1")
	b.now = 1000
	b.is("due", b.due(), "")
}

func partsSubset(b *partsBook) {
	b.add(groupA, 1, 2, "e1", "a")
	b.add(groupA, 2, 2, "e2", "b")
	b.end(groupA, "e1")
	b.is("a copy of the second", b.add(groupA, 2, 2, "e3", "b"), "waiting")
	b.now = 5000 // nobody was there to look earlier
	b.is("due", b.due(), "")
	b.is("later", b.due(), "")
	b.is("the copy, replayed", b.add(groupA, 2, 2, "e3", "b"), "again e1 ab")
}

func partsAgain(b *partsBook) {
	b.add(groupA, 1, 2, "e1", "a")
	b.add(groupA, 2, 2, "e2", "b")
	b.end(groupA, "e1")
	b.now = 601
	b.is("a gateway that was away", b.add(groupA, 2, 2, "e2", "b"), "again e1 ab")
	b.is("the same text", b.add(groupA, 2, 2, "e3", "b"), "waiting")
	b.is("sent again", b.add(groupA, 1, 2, "e4", "a"), "complete e4 ab")
}

func partsTimeOut(b *partsBook) {
	b.add(groupA, 3, 3, "e1", "c")
	b.now = 200
	b.add(groupA, 2, 3, "e2", "b")
	b.now = 299
	b.is("too early", b.due(), "")
	b.now = 300
	b.is("due", b.due(), "e2:bc")
	b.is("leased", b.due(), "")
	b.end(groupA, "e2")
	b.now = 1000
	b.is("gone", b.due(), "")
	b.is("the late part", b.add(groupA, 1, 3, "e3", "a"), "waiting")
	b.now = 1300
	b.is("goes on alone", b.due(), "e3:a")
}

func partsLease(b *partsBook) {
	b.add(groupA, 1, 2, "e1", "a")
	b.is("complete", b.add(groupA, 2, 2, "e2", "b"), "complete e1 ab")
	b.now = 59
	b.is("leased", b.due(), "")
	b.now = 60
	b.is("the lease has run out", b.due(), "e1:ab")
	b.now = 100
	b.is("leased again", b.due(), "")
	b.now = 120
	b.is("and run out", b.due(), "e1:ab")
	b.end(groupA, "e1")
	b.now = 1000
	b.is("gone", b.due(), "")
}

func partsReference(b *partsBook) {
	b.add(groupA, 1, 2, "e1", "a")
	b.is("another first part", b.add(groupA, 1, 2, "e2", "A"), "waiting")
	b.is("what waited goes on", b.due(), "e1:a")
	b.end(groupA, "e1")
	b.is("the second part", b.add(groupA, 2, 2, "e3", "B"), "complete e2 AB")
	b.end(groupA, "e2")
	b.is("a third message ends as the second", b.add(groupA, 2, 2, "e4", "B"), "waiting")
	b.is("and begins otherwise", b.add(groupA, 1, 2, "e5", "x"), "complete e5 xB")
}

func partsPark(b *partsBook) {
	b.add(groupA, 1, 2, "e1", "a|")
	b.add(groupA, 2, 2, "e2", "b")
	g := inbound.Gathered{Group: groupA, ID: "e1", Event: "e2", Parts: []inbound.Message{{ID: "e1", Text: "a|"}, {ID: "e2", Text: "b"}}}
	if err := b.s.Park(b.t.Context(), g, time.Hour); err != nil {
		b.t.Fatal(err)
	}
	b.end(groupA, "e1")
	if err := b.s.db.rdb.Del(b.t.Context(), keyPartsFinished(groupA)).Err(); err != nil { // days later
		b.t.Fatal(err)
	}
	b.is("its event again", b.add(groupA, 2, 2, "e2", "b"), "again e1 a|b")
	if err := b.s.Unpark(b.t.Context(), g); err != nil {
		b.t.Fatal(err)
	}
	b.is("taken at last", b.add(groupA, 2, 2, "e2", "b"), "waiting")
}

func partsRace(t *testing.T, s *Parts) {
	const total = 40
	var completed atomic.Int64
	var all sync.WaitGroup
	for n := range total {
		all.Go(func() {
			b := &partsBook{t: t, s: s}
			if strings.HasPrefix(b.add(groupA, n+1, total, fmt.Sprint("e", n), "x"), "complete e0 ") {
				completed.Add(1)
			}
		})
	}
	all.Wait()
	if completed.Load() != 1 {
		t.Errorf("completed %d times", completed.Load())
	}
}

func partsSweepRace(t *testing.T, s *Parts) {
	b := &partsBook{t: t, s: s}
	for n := range 50 {
		b.add(fmt.Sprintf("%032x", n+100), 1, 2, fmt.Sprint("e", n), "x")
		b.add(fmt.Sprintf("%x%031x", n%16, n), 1, 2, fmt.Sprint("f", n), "x")
	}
	var mu sync.Mutex
	seen := make(map[string]int)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			late := &partsBook{t: t, s: s, now: 400}
			for found := late.due(); found != ""; found = late.due() {
				mu.Lock()
				for _, one := range strings.Fields(found) {
					seen[one]++
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	for one, n := range seen {
		if n != 1 {
			t.Errorf("%s was handed out %d times", one, n)
		}
	}
	if len(seen) != 100 {
		t.Errorf("%d were handed out", len(seen))
	}
}
