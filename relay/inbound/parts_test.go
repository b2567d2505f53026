package inbound

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

// groups of the tests.
const (
	groupA = "a0000000000000000000000000000001"
	groupB = "b0000000000000000000000000000002"
)

// partsDriver drives a store of parts on its clock, in seconds.
type partsDriver struct {
	*testing.T
	r *rig
	s *Store // of one of the gateways
}

// at moves the clock to a second.
func (b *partsDriver) at(seconds int64) { b.r.clock.Store(seconds * 1000) }

func (b *partsDriver) times() Times {
	return Times{Now: b.r.now(), Wait: 300 * time.Second, Lease: 60 * time.Second}
}

func arrival(group string, number, total int, id, content string) PartArrival {
	return PartArrival{
		Group: group, Number: number, Total: total, Digest: fmt.Sprintf("%x", content),
		Message: Message{ID: id, Text: content + "\"é\n|", ReceivedAt: dbtest.At(0)},
	}
}

// add takes one part in and says what became of it: "state holder texts".
func (b *partsDriver) add(group string, number, total int, id, content string) string {
	b.Helper()
	got, err := b.s.Add(b.Context(), []PartArrival{arrival(group, number, total, id, content)}, b.times())
	if err != nil {
		b.Error(err)
		return err.Error()
	}
	return strings.TrimSpace(string(got[0].State) + " " + got[0].Holder + " " + contents(got[0].Group))
}

func contents(g ReassembledMessage) string {
	out := ""
	for _, m := range g.Parts {
		out += strings.TrimSuffix(m.Text, "\"é\n|")
	}
	return out
}

// due says what must go on now: "id:texts …".
func (b *partsDriver) due() string {
	b.Helper()
	got, err := b.s.Due(b.Context(), b.times(), 100)
	if err != nil {
		b.Error(err)
	}
	var out []string
	for _, g := range got {
		id := g.ID
		if g.Repeats != "" {
			id = "repeats " + g.Repeats
		}
		out = append(out, id+":"+contents(g))
	}
	return strings.Join(out, " ")
}

func (b *partsDriver) end(group, id string) {
	b.Helper()
	relaytest.NoError(b.T, b.s.End(b.Context(), []ReassembledMessage{{Group: group, ID: id}}))
}

// goneOn adds both parts of the message e1 to groupA, and ends it.
func (b *partsDriver) goneOn() {
	b.Helper()
	b.add(groupA, 1, 2, "e1", "a")
	b.add(groupA, 2, 2, "e2", "b")
	b.end(groupA, "e1")
}

func (b *partsDriver) is(what, got, want string) {
	b.Helper()
	if got != want {
		b.Errorf("%s: %q, want %q", what, got, want)
	}
}

func (b *partsDriver) whole(group, part string) string {
	b.Helper()
	got, err := b.s.MessageOf(b.Context(), group, part)
	relaytest.NoError(b.T, err)
	return got
}

func partCases() cases {
	out := make(cases)
	for name, test := range map[string]func(*partsDriver){
		"wait for the others, in any order":                partsJoin,
		"are taken once":                                   partsRepeat,
		"that all come again are another message":          partsRepeatLater,
		"go on without the one that does not come":         partsTimeOut,
		"go on when who sent them on has died":             partsLease,
		"with the reference of others begin a new message": partsReference,
		"that nobody takes can be tried again":             partsPark,
		"of the same text are a new message after a while": partsAgain,
		"of a whole repetition wait and are dropped":       partsSubset,
		"of many messages in one batch keep their order":   partsMany,
		"of several messages of a group in one batch":      partsInOneBatch,
		"are deleted when they need not be known":          partsAreSwept,
		"are completed by one gateway only":                partsRace,
		"are handed out to one gateway only":               partsSweepRace,
		"of the same groups in other orders":               partsOrders,
		"of groups that are being swept":                   partsSwept,
	} {
		out[name] = func(t *testing.T, r *rig) { test(&partsDriver{T: t, r: r, s: r.Store}) }
	}
	return out
}

func partsMany(b *partsDriver) {
	const n = 150
	var all []PartArrival
	for number := range 2 {
		for i := range n {
			group, id := fmt.Sprintf("%032x", i), fmt.Sprintf("e%d-%d", number, i)
			all = append(all, arrival(group, number+1, 2, id, fmt.Sprint(id, " ")))
		}
	}
	got, err := b.s.Add(b.Context(), all, b.times())
	if err != nil || len(got) != 2*n {
		b.Fatalf("%d answers, %v", len(got), err)
	}
	for i, a := range got {
		state, text := Waiting, ""
		if i >= n {
			state, text = Completed, fmt.Sprintf("e0-%d e1-%d ", i-n, i-n)
		}
		if a.State != state || contents(a.Group) != text {
			b.Fatalf("part %d is %s with %q, want %s with %q", i, a.State, contents(a.Group), state, text)
		}
	}
}

func partsInOneBatch(b *partsDriver) {
	all := []PartArrival{
		arrival(groupA, 1, 2, "e1", "a"), arrival(groupA, 2, 2, "e2", "b"), arrival(groupA, 2, 2, "e3", "b"), arrival(groupA, 1, 2, "e4", "a"),
		arrival(groupA, 1, 2, "e5", "x"), arrival(groupA, 1, 2, "e5", "x"), arrival(groupA, 1, 2, "e6", "x"), arrival(groupA, 2, 2, "e7", "y"),
		arrival(groupA, 2, 2, "e2", "b"), arrival(groupA, 1, 2, "e4", "a"),
	}
	for _, when := range []string{"at once", "once more"} {
		got, err := b.s.Add(b.Context(), all, b.times())
		relaytest.NoError(b.T, err)
		out := ""
		for _, a := range got {
			out += strings.TrimSpace(fmt.Sprint(a.State, " ", a.Holder, " ", contents(a.Group))) + ", "
		}
		want := "waiting, complete e1 ab, waiting, complete e4 ab, waiting, waiting, duplicate e5, complete e5 xy, complete e1 ab, complete e4 ab, "
		if when == "once more" {
			want = strings.Repeat("complete e1 ab, ", 2) + strings.Repeat("complete e4 ab, ", 2) + strings.Repeat("complete e5 xy, ", 4) + "complete e1 ab, complete e4 ab, "
		}
		b.is(when, out, want)
	}
}

func partsJoin(b *partsDriver) {
	b.is("3 of 3", b.add(groupA, 3, 3, "e1", "c"), "waiting")
	b.is("another group", b.add(groupB, 1, 2, "f1", "x"), "waiting")
	b.is("1 of 3", b.add(groupA, 1, 3, "e2", "a"), "waiting")
	b.is("the message of a part that waits", b.whole(groupA, "e2"), "")
	b.is("2 of 3", b.add(groupA, 2, 3, "e3", "b"), "complete e2 abc")
	b.is("processed again, before it has gone on", b.add(groupA, 1, 3, "e2", "a"), "complete e2 abc")
	b.end(groupA, "e2")
	b.end(groupA, "e2")
	b.is("processed again, after", b.add(groupA, 1, 3, "e2", "a"), "again e2 abc")
	b.is("the message of a part", b.whole(groupA, "e1"), "e2")
	b.is("of a part that nobody knows", b.whole(groupA, "f1"), "")
	b.at(299)
	b.is("due", b.due(), "")
	b.is("the other group", b.add(groupB, 2, 2, "f2", "y"), "complete f1 xy")
}

func partsRepeat(b *partsDriver) {
	b.is("first", b.add(groupA, 1, 2, "e1", "a"), "waiting")
	b.is("itself again", b.add(groupA, 1, 2, "e1", "a"), "waiting")
	b.is("a copy", b.add(groupA, 1, 2, "e2", "a"), "duplicate e1")
	b.is("the copy again", b.add(groupA, 1, 2, "e2", "a"), "duplicate e1")
	b.is("second", b.add(groupA, 2, 2, "e3", "b"), "complete e1 ab")
	b.end(groupA, "e1")
	b.at(5000)
	b.is("the copy, replayed", b.add(groupA, 1, 2, "e2", "a"), "again e1 ab")
}

func partsRepeatLater(b *partsDriver) {
	b.goneOn()
	b.at(20)
	b.is("a copy of the first", b.add(groupA, 1, 2, "e3", "a"), "waiting")
	b.is("a copy of the second", b.add(groupA, 2, 2, "e4", "b"), "complete e3 ab")
	b.end(groupA, "e3")
	b.at(1000)
	b.is("due", b.due(), "")
}

func partsSubset(b *partsDriver) {
	b.goneOn()
	b.is("a copy of the second", b.add(groupA, 2, 2, "e3", "b"), "waiting")
	b.at(5000) // no gateway was running earlier
	b.is("due", b.due(), "repeats e1:b")
	b.is("later", b.due(), "")
	b.is("the copy, replayed", b.add(groupA, 2, 2, "e3", "b"), "again e1 ab")
}

func partsAgain(b *partsDriver) {
	b.goneOn()
	b.at(601)
	b.is("a gateway that was away", b.add(groupA, 2, 2, "e2", "b"), "again e1 ab")
	b.is("the same text", b.add(groupA, 2, 2, "e3", "b"), "waiting")
	b.is("sent again", b.add(groupA, 1, 2, "e4", "a"), "complete e4 ab")
}

func partsTimeOut(b *partsDriver) {
	b.add(groupA, 3, 3, "e1", "c")
	b.at(200)
	b.add(groupA, 2, 3, "e2", "b")
	b.at(299)
	b.is("too early", b.due(), "")
	b.at(300)
	b.is("due", b.due(), "e2:bc")
	b.is("leased", b.due(), "")
	b.end(groupA, "e2")
	b.at(1000)
	b.is("gone", b.due(), "")
	b.is("the late part", b.add(groupA, 1, 3, "e3", "a"), "waiting")
	b.at(1300)
	b.is("goes on alone", b.due(), "e3:a")
}

func partsLease(b *partsDriver) {
	b.add(groupA, 1, 2, "e1", "a")
	b.is("complete", b.add(groupA, 2, 2, "e2", "b"), "complete e1 ab")
	b.at(59)
	b.is("leased", b.due(), "")
	b.at(60)
	b.is("the lease has run out", b.due(), "e1:ab")
	b.at(100)
	b.is("leased again", b.due(), "")
	b.at(120)
	b.is("and run out", b.due(), "e1:ab")
	b.end(groupA, "e1")
	b.at(1000)
	b.is("gone", b.due(), "")
}

func partsReference(b *partsDriver) {
	b.add(groupA, 1, 2, "e1", "a")
	b.is("another first part", b.add(groupA, 1, 2, "e2", "A"), "waiting")
	b.is("what waited goes on", b.due(), "e1:a")
	b.end(groupA, "e1")
	b.is("the second part", b.add(groupA, 2, 2, "e3", "B"), "complete e2 AB")
	b.end(groupA, "e2")
	b.is("a third message ends as the second", b.add(groupA, 2, 2, "e4", "B"), "waiting")
	b.is("and begins otherwise", b.add(groupA, 1, 2, "e5", "x"), "complete e5 xB")
}

func partsPark(b *partsDriver) {
	b.add(groupA, 1, 2, "e1", "a|")
	b.add(groupA, 2, 2, "e2", "b")
	g := ReassembledMessage{Group: groupA, ID: "e1", Event: "e2", Parts: []Message{{ID: "e1", Text: "a|"}, {ID: "e2", Text: "b"}}}
	for range 2 {
		relaytest.NoError(b.T, b.s.Park(b.Context(), g, 7*24*time.Hour))
	}
	b.end(groupA, "e1")
	b.at(2 * 24 * 3600)
	b.is("its event again", b.add(groupA, 2, 2, "e2", "b"), "again e1 a|b")
	relaytest.NoError(b.T, b.s.Unpark(b.Context(), g), b.s.Unpark(b.Context(), g))
	b.is("taken at last", b.add(groupA, 2, 2, "e2", "b"), "waiting")
	relaytest.NoError(b.T, b.s.Park(b.Context(), g, time.Hour))
	b.at(2*24*3600 + 3600)
	b.is("parked too long", b.add(groupA, 2, 2, "e2", "b"), "waiting")
}

func partsAreSwept(b *partsDriver) {
	b.add(groupA, 1, 2, "e1", "a")
	b.add(groupA, 2, 2, "e2", "b")
	b.add(groupB, 1, 2, "f1", "x")
	b.add(groupB, 2, 2, "f2", "y")
	b.end(groupA, "e1")
	b.at(24*3600 - 1)
	b.is("swept early", fmt.Sprint(b.r.sweep(b.T, "part_group", "part")), "6")
	b.at(24 * 3600)
	b.is("what is not remembered", b.whole(groupA, "e2"), "")
	b.is("begins a message", b.add(groupA, 2, 2, "e2", "b"), "waiting")
	b.is("beside what waits, and what has not gone on", fmt.Sprint(b.r.sweep(b.T, "part_group", "part")), "5")
	b.is("what has not gone on", b.due(), "f1:xy")
	b.end(groupB, "f1")
	b.is("when it has", fmt.Sprint(b.r.sweep(b.T, "part_group", "part")), "2")
	b.at(24*3600 + 300)
	b.is("what waited", b.due(), "e2:b")
	b.end(groupA, "e2")
	b.at(3 * 24 * 3600)
	b.is("all is gone", fmt.Sprint(b.r.sweep(b.T, "part_group", "part", "part_ready", "part_parked")), "0")
}

func partsRace(b *partsDriver) {
	const total = 40
	stores := []*Store{b.s, b.r.second(b.T)}
	var completed atomic.Int64
	dbtest.Together(total, func(n int) {
		one := &partsDriver{T: b.T, r: b.r, s: stores[n%2]}
		if strings.HasPrefix(one.add(groupA, n+1, total, fmt.Sprint("e", n), "x"), "complete e0 ") {
			completed.Add(1)
		}
	})
	if completed.Load() != 1 {
		b.Errorf("completed %d times", completed.Load())
	}
}

func partsSweepRace(b *partsDriver) {
	for n := range 50 {
		b.add(fmt.Sprintf("%032x", n+100), 1, 2, fmt.Sprint("e", n), "x")
		b.add(fmt.Sprintf("%x%031x", n%16, n), 1, 2, fmt.Sprint("f", n), "x")
	}
	b.at(400)
	stores := []*Store{b.s, b.r.second(b.T)}
	var mu sync.Mutex
	seen := make(map[string]int)
	dbtest.Together(4, func(n int) {
		late := &partsDriver{T: b.T, r: b.r, s: stores[n%2]}
		for found := late.due(); found != ""; found = late.due() {
			mu.Lock()
			for _, one := range strings.Fields(found) {
				seen[one]++
			}
			mu.Unlock()
		}
	})
	for one, n := range seen {
		if n != 1 {
			b.Errorf("%s was handed out %d times", one, n)
		}
	}
	if len(seen) != 100 {
		b.Errorf("%d were handed out", len(seen))
	}
}

// partsOrders has two gateways add parts of the same groups in batches of other
// orders: each message is completed once.
func partsOrders(b *partsDriver) {
	const gateways, groups = 8, 30
	stores := []*Store{b.s, b.r.second(b.T)}
	var completed atomic.Int64
	dbtest.Together(gateways, func(n int) {
		var batch []PartArrival
		for i := range groups {
			i = (i*7 + n*11) % groups
			batch = append(batch, arrival(fmt.Sprintf("%032x", i), n+1, gateways, fmt.Sprintf("e%d-%d", i, n), "x"))
		}
		got, err := stores[n%2].Add(b.Context(), batch, b.times())
		if err != nil {
			b.Error(err)
		}
		for _, a := range got {
			if a.State == Completed && len(a.Group.Parts) == gateways {
				completed.Add(1)
			}
		}
	})
	if completed.Load() != groups {
		b.Errorf("%d of %d messages were completed", completed.Load(), groups)
	}
}

// partsSwept adds parts to groups that another gateway is deleting.
func partsSwept(b *partsDriver) {
	const groups, days = 100, 5
	other := b.r.second(b.T)
	for day := range int64(days) {
		b.at(day * 24 * 3600)
		var swept sync.WaitGroup
		if day > 0 {
			swept.Go(func() {
				if err := other.Sweep(b.Context(), b.r.now()); err != nil {
					b.Error(err)
				}
			})
		}
		for n := range 2 {
			var batch []PartArrival
			for i := range groups {
				batch = append(batch, arrival(fmt.Sprintf("%032x", i), n+1, 2, fmt.Sprintf("e%d-%d-%d", day, i, n), "x"))
			}
			got, err := b.s.Add(b.Context(), batch, b.times())
			relaytest.NoError(b.T, err)
			var ended []ReassembledMessage
			for _, a := range got {
				if a.State == Completed && len(a.Group.Parts) == 2 {
					ended = append(ended, a.Group)
				}
			}
			if len(ended) != n*groups {
				b.Errorf("day %d: part %d completed %d messages", day, n+1, len(ended))
			}
			relaytest.NoError(b.T, b.s.End(b.Context(), ended))
		}
		swept.Wait()
	}
}
