package inbound

import (
	"fmt"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay/db"
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
		"all parts again are a message of their own": {
			{0, "1 e1 a", "waiting"}, {0, "2 e2 b", "complete e1 ab"}, {0, "end e1", ""},
			{20, "1 e3 a", "waiting"}, {20, "2 e4 b", "complete e3 ab"}, {21, "1 e3 a", "complete e3 ab"},
		},
		"also in another order before the first has gone on": {
			{0, "1 e1 a", "waiting"}, {0, "2 e2 b", "complete e1 ab"}, {1, "2 e4 b", "waiting"}, {1, "1 e3 a", "complete e3 ab"},
			{2, "1 e1 a", "complete e1 ab"}, {2, "2 e4 b", "complete e3 ab"},
		},
		"a part that repeats one within twice the wait is dropped": {
			{0, "1 e1 a", "waiting"}, {0, "2 e2 b", "complete e1 ab"}, {0, "end e1", ""},
			{600, "1 e3 a", "waiting"}, {900, "due", "repeats e1 a"}, {901, "1 e3 a", "again e1 ab"},
		},
		"and is a message of its own later": {
			{0, "1 e1 a", "waiting"}, {0, "2 e2 b", "complete e1 ab"}, {0, "end e1", ""}, {601, "1 e3 a", "waiting"}, {901, "due", "e3 a"},
		},
		"a part that repeats one is dropped when another message begins": {
			{0, "1 e1 a", "waiting"}, {0, "2 e2 b", "complete e1 ab"}, {1, "1 e3 a", "waiting"},
			{2, "1 e4 x", "waiting, repeats e1 a"}, {3, "2 e5 y", "complete e4 xy"},
		},
		"a part with the content of the other's number repeats nothing": {
			{0, "1 e1 a", "waiting"}, {0, "2 e2 b", "complete e1 ab"}, {1, "1 e3 b", "waiting"}, {301, "due", "e3 b"},
		},
		"a repetition of what went on without a part is one": {
			{0, "2 e1 b", "waiting"}, {300, "due", "e1 b"}, {301, "2 e2 b", "waiting"}, {601, "due", "repeats e1 b"}, {602, "2 e2 b", "complete e1 b"},
		},
		"a copy of a repetition's part is known": {
			{0, "1 e1 a", "waiting"}, {0, "2 e2 b", "complete e1 ab"}, {0, "end e1", ""},
			{1, "1 e3 a", "waiting"}, {1, "1 e4 a", "duplicate e3"}, {2, "2 e5 b", "complete e3 ab"}, {3, "1 e4 a", "complete e3 ab"},
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
	c := groupTimes{now: s.at * 1000, leased: (s.at + 60) * 1000, wait: 300_000}
	g.expire(c)
	var number int
	var id, content string
	switch {
	case s.what == "due":
		if g.due == 0 || g.due > c.now {
			return ""
		}
		dropped, err := g.dropRepetition(c)
		if err != nil || dropped.Repeats != "" {
			return repetition(dropped, err)
		}
		id := g.close(c, c.leased)
		return id + " " + g.contents(id)
	case strings.HasPrefix(s.what, "end "):
		delete(g.ready, s.what[4:])
		return ""
	}
	_, _ = fmt.Sscan(s.what, &number, &id, &content)
	doc, err := db.Encode(&Message{Text: content})
	if err != nil {
		return err.Error()
	}
	added, err := g.add(&part{id: id, number: number, digest: content, doc: doc}, 2, c)
	out := string(added.State) + " " + added.Holder
	if added.State == Completed || added.State == Again {
		out += " " + g.contents(added.Holder)
	}
	out = strings.TrimSpace(out)
	if err != nil || added.Dropped.Repeats != "" {
		out += ", " + repetition(added.Dropped, err)
	}
	return out
}

// repetition describes parts that were dropped.
func repetition(dropped ReassembledMessage, err error) string {
	if err != nil {
		return err.Error()
	}
	return "repeats " + dropped.Repeats + " " + texts(dropped)
}

func texts(m ReassembledMessage) (out string) {
	for _, p := range m.Parts {
		out += p.Text
	}
	return out
}

// contents is a message's parts one after another.
func (g *group) contents(message string) string {
	m, err := g.reassembled(message)
	if err != nil {
		return err.Error()
	}
	return texts(m)
}
