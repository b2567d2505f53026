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

// The groups of the tests.
const (
	groupA = "a0000000000000000000000000000001"
	groupB = "b0000000000000000000000000000002"
)

// partsDriver calls a store of parts. The tests give times in seconds.
type partsDriver struct {
	*testing.T
	rig   *rig
	store *Store // of one gateway
}

// setTime sets the clock.
func (d *partsDriver) setTime(seconds int64) { d.rig.clock.Store(seconds * 1000) }

func (d *partsDriver) times() Times {
	return Times{Now: d.rig.now(), Wait: 300 * time.Second, Lease: 60 * time.Second}
}

func arrival(group string, number, total int, id, content string) PartArrival {
	return PartArrival{
		Group: group, Number: number, Total: total, Digest: fmt.Sprintf("%x", content),
		Message: Message{ID: id, Text: content + "\"é\n|", ReceivedAt: dbtest.TimeAt(0)},
	}
}

// add adds one part and returns "state message-id texts".
func (d *partsDriver) add(group string, number, total int, id, content string) string {
	d.Helper()
	got, err := d.store.Add(d.Context(), []PartArrival{arrival(group, number, total, id, content)}, d.times())
	if err != nil {
		d.Error(err)
		return err.Error()
	}
	return strings.TrimSpace(string(got[0].State) + " " + got[0].MessageID + " " + contents(got[0].Group))
}

func contents(g ReassembledMessage) string {
	text := ""
	for _, m := range g.Parts {
		text += strings.TrimSuffix(m.Text, "\"é\n|")
	}
	return text
}

// due returns the due messages as "id:texts …".
func (d *partsDriver) due() string {
	d.Helper()
	got, err := d.store.Due(d.Context(), d.times(), 100)
	if err != nil {
		d.Error(err)
	}
	var messages []string
	for _, g := range got {
		id := g.ID
		if g.Repeats != "" {
			id = "repeats " + g.Repeats
		}
		messages = append(messages, id+":"+contents(g))
	}
	return strings.Join(messages, " ")
}

func (d *partsDriver) end(group, id string) {
	d.Helper()
	relaytest.NoError(d.T, d.store.End(d.Context(), []ReassembledMessage{{Group: group, ID: id}}))
}

// addAndEnd adds both parts of the message e1 to groupA and ends the message.
func (d *partsDriver) addAndEnd() {
	d.Helper()
	d.add(groupA, 1, 2, "e1", "a")
	d.add(groupA, 2, 2, "e2", "b")
	d.end(groupA, "e1")
}

func (d *partsDriver) equal(label, got, want string) {
	d.Helper()
	if got != want {
		d.Errorf("%s = %q, want %q", label, got, want)
	}
}

func (d *partsDriver) messageOf(group, part string) string {
	d.Helper()
	got, err := d.store.MessageOf(d.Context(), group, part)
	relaytest.NoError(d.T, err)
	return got
}

func partCases() cases {
	tests := make(cases)
	for name, test := range map[string]func(*partsDriver){
		"wait for the missing parts, in any order":                  partsJoin,
		"are counted once":                                          partsRepeat,
		"that are all repeated are another message":                 partsRepeatLater,
		"are joined without a missing part after the wait":          partsTimeOut,
		"are due again when their lease ends":                       partsLease,
		"with a reused reference begin a new message":               partsReference,
		"that are parked can be tried again":                        partsPark,
		"with the same text are a new message after twice the wait": partsAgain,
		"that repeat a message partly are dropped after the wait":   partsSubset,
		"of many messages in one batch are answered in order":       partsMany,
		"of several messages of a group fit in one batch":           partsInOneBatch,
		"are deleted a day after their message":                     partsAreSwept,
		"are completed by one gateway only":                         partsRace,
		"are returned to one gateway only":                          partsSweepRace,
		"of the same groups may arrive in any order":                partsOrders,
		"of groups that are being swept are not lost":               partsSweptConcurrently,
	} {
		tests[name] = func(t *testing.T, r *rig) { test(&partsDriver{T: t, rig: r, store: r.Store}) }
	}
	return tests
}

func partsMany(d *partsDriver) {
	const n = 150
	var parts []PartArrival
	for number := range 2 {
		for i := range n {
			group, id := fmt.Sprintf("%032x", i), fmt.Sprintf("e%d-%d", number, i)
			parts = append(parts, arrival(group, number+1, 2, id, fmt.Sprint(id, " ")))
		}
	}
	got, err := d.store.Add(d.Context(), parts, d.times())
	if err != nil || len(got) != 2*n {
		d.Fatalf("%d answers, error = %v, want %d answers", len(got), err, 2*n)
	}
	for i, a := range got {
		state, text := Waiting, ""
		if i >= n {
			state, text = Completed, fmt.Sprintf("e0-%d e1-%d ", i-n, i-n)
		}
		if a.State != state || contents(a.Group) != text {
			d.Fatalf("part %d is %s with %q, want %s with %q", i, a.State, contents(a.Group), state, text)
		}
	}
}

func partsInOneBatch(d *partsDriver) {
	parts := []PartArrival{
		arrival(groupA, 1, 2, "e1", "a"), arrival(groupA, 2, 2, "e2", "b"), arrival(groupA, 2, 2, "e3", "b"), arrival(groupA, 1, 2, "e4", "a"),
		arrival(groupA, 1, 2, "e5", "x"), arrival(groupA, 1, 2, "e5", "x"), arrival(groupA, 1, 2, "e6", "x"), arrival(groupA, 2, 2, "e7", "y"),
		arrival(groupA, 2, 2, "e2", "b"), arrival(groupA, 1, 2, "e4", "a"),
	}
	for _, call := range []string{"first call", "repeated call"} {
		got, err := d.store.Add(d.Context(), parts, d.times())
		relaytest.NoError(d.T, err)
		answers := ""
		for _, a := range got {
			answers += strings.TrimSpace(fmt.Sprint(a.State, " ", a.MessageID, " ", contents(a.Group))) + ", "
		}
		want := "waiting, complete e1 ab, waiting, complete e4 ab, waiting, waiting, duplicate e5, complete e5 xy, complete e1 ab, complete e4 ab, "
		if call == "repeated call" {
			want = strings.Repeat("complete e1 ab, ", 2) + strings.Repeat("complete e4 ab, ", 2) + strings.Repeat("complete e5 xy, ", 4) + "complete e1 ab, complete e4 ab, "
		}
		d.equal("answers to the "+call, answers, want)
	}
}

func partsJoin(d *partsDriver) {
	d.equal("answer to part 3 of 3", d.add(groupA, 3, 3, "e1", "c"), "waiting")
	d.equal("answer to a part of another group", d.add(groupB, 1, 2, "f1", "x"), "waiting")
	d.equal("answer to part 1 of 3", d.add(groupA, 1, 3, "e2", "a"), "waiting")
	d.equal("message of a waiting part", d.messageOf(groupA, "e2"), "")
	d.equal("answer to part 2 of 3", d.add(groupA, 2, 3, "e3", "b"), "complete e2 abc")
	d.equal("answer to a repeated part before the end", d.add(groupA, 1, 3, "e2", "a"), "complete e2 abc")
	d.end(groupA, "e2")
	d.end(groupA, "e2")
	d.equal("answer to a repeated part after the end", d.add(groupA, 1, 3, "e2", "a"), "again e2 abc")
	d.equal("message of a joined part", d.messageOf(groupA, "e1"), "e2")
	d.equal("message of an unknown part", d.messageOf(groupA, "f1"), "")
	d.setTime(299)
	d.equal("due", d.due(), "")
	d.equal("answer to the last part of the other group", d.add(groupB, 2, 2, "f2", "y"), "complete f1 xy")
}

func partsRepeat(d *partsDriver) {
	d.equal("answer to the first part", d.add(groupA, 1, 2, "e1", "a"), "waiting")
	d.equal("answer to the repeated first part", d.add(groupA, 1, 2, "e1", "a"), "waiting")
	d.equal("answer to a copy", d.add(groupA, 1, 2, "e2", "a"), "duplicate e1")
	d.equal("answer to the repeated copy", d.add(groupA, 1, 2, "e2", "a"), "duplicate e1")
	d.equal("answer to the second part", d.add(groupA, 2, 2, "e3", "b"), "complete e1 ab")
	d.end(groupA, "e1")
	d.setTime(5000)
	d.equal("answer to the replayed copy", d.add(groupA, 1, 2, "e2", "a"), "again e1 ab")
}

func partsRepeatLater(d *partsDriver) {
	d.addAndEnd()
	d.setTime(20)
	d.equal("answer to a copy of the first part", d.add(groupA, 1, 2, "e3", "a"), "waiting")
	d.equal("answer to a copy of the second part", d.add(groupA, 2, 2, "e4", "b"), "complete e3 ab")
	d.end(groupA, "e3")
	d.setTime(1000)
	d.equal("due", d.due(), "")
}

func partsSubset(d *partsDriver) {
	d.addAndEnd()
	d.equal("answer to a copy of the second part", d.add(groupA, 2, 2, "e3", "b"), "waiting")
	d.setTime(5000) // no gateway ran before
	d.equal("due", d.due(), "repeats e1:b")
	d.equal("due afterwards", d.due(), "")
	d.equal("answer to the replayed copy", d.add(groupA, 2, 2, "e3", "b"), "again e1 ab")
}

func partsAgain(d *partsDriver) {
	d.addAndEnd()
	d.setTime(601)
	d.equal("answer to a part repeated by a gateway that was down", d.add(groupA, 2, 2, "e2", "b"), "again e1 ab")
	d.equal("answer to a part with the same text", d.add(groupA, 2, 2, "e3", "b"), "waiting")
	d.equal("answer to the other part with the same text", d.add(groupA, 1, 2, "e4", "a"), "complete e4 ab")
}

func partsTimeOut(d *partsDriver) {
	d.add(groupA, 3, 3, "e1", "c")
	d.setTime(200)
	d.add(groupA, 2, 3, "e2", "b")
	d.setTime(299)
	d.equal("due before the wait ends", d.due(), "")
	d.setTime(300)
	d.equal("due", d.due(), "e2:bc")
	d.equal("due during the lease", d.due(), "")
	d.end(groupA, "e2")
	d.setTime(1000)
	d.equal("due after the end", d.due(), "")
	d.equal("answer to the late part", d.add(groupA, 1, 3, "e3", "a"), "waiting")
	d.setTime(1300)
	d.equal("due after the wait of the late part", d.due(), "e3:a")
}

func partsLease(d *partsDriver) {
	d.add(groupA, 1, 2, "e1", "a")
	d.equal("answer to the second part", d.add(groupA, 2, 2, "e2", "b"), "complete e1 ab")
	d.setTime(59)
	d.equal("due during the lease", d.due(), "")
	d.setTime(60)
	d.equal("due after the lease", d.due(), "e1:ab")
	d.setTime(100)
	d.equal("due during the second lease", d.due(), "")
	d.setTime(120)
	d.equal("due after the second lease", d.due(), "e1:ab")
	d.end(groupA, "e1")
	d.setTime(1000)
	d.equal("due after the end", d.due(), "")
}

func partsReference(d *partsDriver) {
	d.add(groupA, 1, 2, "e1", "a")
	d.equal("answer to another first part", d.add(groupA, 1, 2, "e2", "A"), "waiting")
	d.equal("due after another first part", d.due(), "e1:a")
	d.end(groupA, "e1")
	d.equal("answer to its second part", d.add(groupA, 2, 2, "e3", "B"), "complete e2 AB")
	d.end(groupA, "e2")
	d.equal("answer to a second part with known text", d.add(groupA, 2, 2, "e4", "B"), "waiting")
	d.equal("answer to its first part", d.add(groupA, 1, 2, "e5", "x"), "complete e5 xB")
}

func partsPark(d *partsDriver) {
	d.add(groupA, 1, 2, "e1", "a|")
	d.add(groupA, 2, 2, "e2", "b")
	g := ReassembledMessage{Group: groupA, ID: "e1", Event: "e2", Parts: []Message{{ID: "e1", Text: "a|"}, {ID: "e2", Text: "b"}}}
	for range 2 {
		relaytest.NoError(d.T, d.store.Park(d.Context(), g, 7*24*time.Hour))
	}
	d.end(groupA, "e1")
	d.setTime(2 * 24 * 3600)
	d.equal("answer to the repeated event", d.add(groupA, 2, 2, "e2", "b"), "again e1 a|b")
	relaytest.NoError(d.T, d.store.Unpark(d.Context(), g), d.store.Unpark(d.Context(), g))
	d.equal("answer after Unpark", d.add(groupA, 2, 2, "e2", "b"), "waiting")
	relaytest.NoError(d.T, d.store.Park(d.Context(), g, time.Hour))
	d.setTime(2*24*3600 + 3600)
	d.equal("answer after the parking expired", d.add(groupA, 2, 2, "e2", "b"), "waiting")
}

func partsAreSwept(d *partsDriver) {
	d.add(groupA, 1, 2, "e1", "a")
	d.add(groupA, 2, 2, "e2", "b")
	d.add(groupB, 1, 2, "f1", "x")
	d.add(groupB, 2, 2, "f2", "y")
	d.end(groupA, "e1")
	d.setTime(24*3600 - 1)
	d.equal("rows before a day has passed", fmt.Sprint(d.rig.sweep(d.T, "part_group", "part")), "6")
	d.setTime(24 * 3600)
	d.equal("message of a deleted part", d.messageOf(groupA, "e2"), "")
	d.equal("answer to a deleted part", d.add(groupA, 2, 2, "e2", "b"), "waiting")
	d.equal("rows of the waiting part and of the unfinished message", fmt.Sprint(d.rig.sweep(d.T, "part_group", "part")), "5")
	d.equal("due unfinished message", d.due(), "f1:xy")
	d.end(groupB, "f1")
	d.equal("rows after its end", fmt.Sprint(d.rig.sweep(d.T, "part_group", "part")), "2")
	d.setTime(24*3600 + 300)
	d.equal("due waiting part", d.due(), "e2:b")
	d.end(groupA, "e2")
	d.setTime(3 * 24 * 3600)
	d.equal("rows after two more days", fmt.Sprint(d.rig.sweep(d.T, "part_group", "part", "part_ready", "part_parked")), "0")
}

func partsRace(d *partsDriver) {
	const total = 40
	stores := []*Store{d.store, d.rig.secondStore(d.T)}
	var completed atomic.Int64
	dbtest.RunConcurrently(total, func(n int) {
		driver := &partsDriver{T: d.T, rig: d.rig, store: stores[n%2]}
		if strings.HasPrefix(driver.add(groupA, n+1, total, fmt.Sprint("e", n), "x"), "complete e0 ") {
			completed.Add(1)
		}
	})
	if completed.Load() != 1 {
		d.Errorf("the message was completed %d times, want once", completed.Load())
	}
}

func partsSweepRace(d *partsDriver) {
	for n := range 50 {
		d.add(fmt.Sprintf("%032x", n+100), 1, 2, fmt.Sprint("e", n), "x")
		d.add(fmt.Sprintf("%x%031x", n%16, n), 1, 2, fmt.Sprint("f", n), "x")
	}
	d.setTime(400)
	stores := []*Store{d.store, d.rig.secondStore(d.T)}
	var mu sync.Mutex
	seen := make(map[string]int)
	dbtest.RunConcurrently(4, func(n int) {
		driver := &partsDriver{T: d.T, rig: d.rig, store: stores[n%2]}
		for messages := driver.due(); messages != ""; messages = driver.due() {
			mu.Lock()
			for _, message := range strings.Fields(messages) {
				seen[message]++
			}
			mu.Unlock()
		}
	})
	for message, n := range seen {
		if n != 1 {
			d.Errorf("%s was returned %d times, want once", message, n)
		}
	}
	if len(seen) != 100 {
		d.Errorf("%d messages were returned, want 100", len(seen))
	}
}

// partsOrders adds parts of the same groups at two gateways, in batches with different orders: each
// message is completed once.
func partsOrders(d *partsDriver) {
	const calls, groups = 8, 30
	stores := []*Store{d.store, d.rig.secondStore(d.T)}
	var completed atomic.Int64
	dbtest.RunConcurrently(calls, func(n int) {
		var batch []PartArrival
		for i := range groups {
			i = (i*7 + n*11) % groups
			batch = append(batch, arrival(fmt.Sprintf("%032x", i), n+1, calls, fmt.Sprintf("e%d-%d", i, n), "x"))
		}
		got, err := stores[n%2].Add(d.Context(), batch, d.times())
		if err != nil {
			d.Error(err)
		}
		for _, a := range got {
			if a.State == Completed && len(a.Group.Parts) == calls {
				completed.Add(1)
			}
		}
	})
	if completed.Load() != groups {
		d.Errorf("%d messages were completed, want %d", completed.Load(), groups)
	}
}

// partsSweptConcurrently adds parts to groups that another gateway is deleting.
func partsSweptConcurrently(d *partsDriver) {
	const groups, days = 100, 5
	otherStore := d.rig.secondStore(d.T)
	for day := range int64(days) {
		d.setTime(day * 24 * 3600)
		var swept sync.WaitGroup
		if day > 0 {
			swept.Go(func() {
				if err := otherStore.Sweep(d.Context(), d.rig.now()); err != nil {
					d.Error(err)
				}
			})
		}
		for n := range 2 {
			var batch []PartArrival
			for i := range groups {
				batch = append(batch, arrival(fmt.Sprintf("%032x", i), n+1, 2, fmt.Sprintf("e%d-%d-%d", day, i, n), "x"))
			}
			got, err := d.store.Add(d.Context(), batch, d.times())
			relaytest.NoError(d.T, err)
			var ended []ReassembledMessage
			for _, a := range got {
				if a.State == Completed && len(a.Group.Parts) == 2 {
					ended = append(ended, a.Group)
				}
			}
			if len(ended) != n*groups {
				d.Errorf("day %d: part %d completed %d messages, want %d", day, n+1, len(ended), n*groups)
			}
			relaytest.NoError(d.T, d.store.End(d.Context(), ended))
		}
		swept.Wait()
	}
}
