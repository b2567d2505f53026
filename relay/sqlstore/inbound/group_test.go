package inbound

import (
	"fmt"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay/inbound"
)

// groupStep is one thing that happens to a group of two parts, at a second, and
// what comes of it.
type groupStep struct {
	at   int64
	what string // "<number> <id> <content>" of a part that comes, "due", or "end <id>"
	want string // "<state> <holder> <contents>"
}

func TestGroup(t *testing.T) {
	const day = 24 * 3600
	for name, steps := range map[string][]groupStep{
		"a message has the id of its lowest number": {
			{0, "2 e1 b", "waiting"}, {0, "1 e2 a", "complete e2 ab"},
		},
		"a part that is another one puts what waited out": {
			{0, "1 e1 a", "waiting"}, {0, "1 e2 A", "waiting"}, {1, "2 e3 B", "complete e2 AB"}, {2, "1 e1 a", "complete e1 a"},
		},
		"a part of an earlier message is forgotten when that has gone on": {
			{0, "1 e1 a", "waiting"}, {0, "1 e2 A", "waiting"}, {0, "end e1", ""}, {1, "2 e3 B", "complete e2 AB"}, {2, "1 e1 a", "waiting"},
		},
		"a repetition may begin within twice the wait": {
			{0, "1 e1 a", "waiting"}, {0, "2 e2 b", "complete e1 ab"}, {0, "end e1", ""},
			{600, "1 e3 a", "waiting"}, {899, "2 e4 b", "duplicate e1"}, {900, "2 e4 b", "again e1 ab"},
		},
		"and is a message of its own later": {
			{0, "1 e1 a", "waiting"}, {0, "2 e2 b", "complete e1 ab"}, {0, "end e1", ""},
			{601, "1 e3 a", "waiting"}, {602, "2 e4 b", "complete e3 ab"},
		},
		"a repetition of what has not gone on is one": {
			{0, "1 e1 a", "waiting"}, {0, "2 e2 b", "complete e1 ab"}, {1, "1 e3 a", "waiting"}, {1, "2 e4 b", "duplicate e1"},
			{2, "1 e3 a", "complete e1 ab"},
		},
		"a part with the content of the other's number repeats nothing": {
			{0, "1 e1 a", "waiting"}, {0, "2 e2 b", "complete e1 ab"}, {1, "1 e3 b", "waiting"}, {301, "due", "e3 b"},
		},
		"a repetition of what went on without a part is one": {
			{0, "2 e1 b", "waiting"}, {300, "due", "e1 b"}, {301, "2 e2 b", "waiting"}, {601, "due", "e1"}, {602, "2 e2 b", "complete e1 b"},
		},
		"a copy of a repetition's part is known": {
			{0, "1 e1 a", "waiting"}, {0, "2 e2 b", "complete e1 ab"}, {0, "end e1", ""},
			{1, "1 e3 a", "waiting"}, {1, "1 e4 a", "duplicate e3"}, {2, "2 e5 b", "duplicate e1"}, {3, "1 e4 a", "again e1 ab"},
		},
		"the last message is remembered for a day": {
			{0, "1 e1 a", "waiting"}, {0, "2 e2 b", "complete e1 ab"}, {0, "end e1", ""},
			{day - 1, "1 e1 a", "again e1 ab"}, {day, "1 e1 a", "waiting"}, {day, "2 e2 b", "complete e1 ab"},
		},
		"for longer when it has not gone on": {
			{0, "1 e1 a", "waiting"}, {0, "2 e2 b", "complete e1 ab"}, {day, "1 e1 a", "complete e1 ab"}, {day, "end e1", ""}, {day, "1 e1 a", "waiting"},
		},
		"the wait begins with the first part": {
			{0, "1 e1 a", "waiting"}, {299, "1 e2 a", "duplicate e1"}, {299, "due", ""}, {300, "due", "e1 a"}, {300, "due", ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := &group{name: "g", ready: make(map[string]bool)}
			for i, s := range steps {
				if got := s.do(g); got != s.want {
					t.Errorf("step %d, %s: %q, want %q", i, s.what, got, s.want)
				}
			}
		})
	}
}

// do is one step, in a transaction of its own.
func (s groupStep) do(g *group) string {
	c := clock{now: s.at * 1000, leased: (s.at + 60) * 1000, wait: 300_000}
	g.expire(c)
	var number int
	var id, content string
	switch {
	case s.what == "due":
		if g.due == 0 || g.due > c.now {
			return ""
		}
		id, repeats := g.close(c, c.leased)
		if repeats {
			return id
		}
		return id + " " + g.contents(id)
	case strings.HasPrefix(s.what, "end "):
		delete(g.ready, s.what[4:])
		return ""
	}
	_, _ = fmt.Sscan(s.what, &number, &id, &content)
	state, holder := g.add(&part{id: id, number: number, digest: content, doc: content}, 2, c)
	out := string(state) + " " + holder
	if state == inbound.Completed || state == inbound.Again {
		out += " " + g.contents(holder)
	}
	return strings.TrimSpace(out)
}

// contents is a message's parts one after another.
func (g *group) contents(message string) (out string) {
	for _, p := range g.partsOf(message) {
		out += p.doc
	}
	return out
}
