package inbound

import (
	"fmt"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay/db"
)

// groupStep is an operation on a group of two parts at a time in seconds, and its result.
type groupStep struct {
	time int64
	op   string // "<number> <id> <content>" adds a part; "due" and "end <id>"
	want string // "<state> <message id> <contents>"
}

func TestGroup(t *testing.T) {
	const day = 24 * 3600
	for name, steps := range map[string][]groupStep{
		"a message has the id of its first part": {
			{0, "2 e1 b", "waiting"}, {0, "1 e2 a", "complete e2 ab"},
		},
		"a part with other content ends the waiting message": {
			{0, "1 e1 a", "waiting"}, {0, "1 e2 A", "waiting"}, {1, "2 e3 B", "complete e2 AB"}, {2, "1 e1 a", "complete e1 a"},
		},
		"a part of an ended incomplete message is not remembered": {
			{0, "1 e1 a", "waiting"}, {0, "1 e2 A", "waiting"}, {0, "end e1", ""}, {1, "2 e3 B", "complete e2 AB"}, {2, "1 e1 a", "waiting"},
		},
		"a complete repetition is a message of its own": {
			{0, "1 e1 a", "waiting"}, {0, "2 e2 b", "complete e1 ab"}, {0, "end e1", ""},
			{20, "1 e3 a", "waiting"}, {20, "2 e4 b", "complete e3 ab"}, {21, "1 e3 a", "complete e3 ab"},
		},
		"a complete repetition in another order, before the first message ended": {
			{0, "1 e1 a", "waiting"}, {0, "2 e2 b", "complete e1 ab"}, {1, "2 e4 b", "waiting"}, {1, "1 e3 a", "complete e3 ab"},
			{2, "1 e1 a", "complete e1 ab"}, {2, "2 e4 b", "complete e3 ab"},
		},
		"a part that repeats another within twice the wait is dropped": {
			{0, "1 e1 a", "waiting"}, {0, "2 e2 b", "complete e1 ab"}, {0, "end e1", ""},
			{600, "1 e3 a", "waiting"}, {900, "due", "repeats e1 a"}, {901, "1 e3 a", "again e1 ab"},
		},
		"a part that repeats another later is a message of its own": {
			{0, "1 e1 a", "waiting"}, {0, "2 e2 b", "complete e1 ab"}, {0, "end e1", ""}, {601, "1 e3 a", "waiting"}, {901, "due", "e3 a"},
		},
		"a part that repeats another is dropped when another message begins": {
			{0, "1 e1 a", "waiting"}, {0, "2 e2 b", "complete e1 ab"}, {1, "1 e3 a", "waiting"},
			{2, "1 e4 x", "waiting, repeats e1 a"}, {3, "2 e5 y", "complete e4 xy"},
		},
		"a part with the content of another number is not a repetition": {
			{0, "1 e1 a", "waiting"}, {0, "2 e2 b", "complete e1 ab"}, {1, "1 e3 b", "waiting"}, {301, "due", "e3 b"},
		},
		"a part of an incomplete message can be repeated": {
			{0, "2 e1 b", "waiting"}, {300, "due", "e1 b"}, {301, "2 e2 b", "waiting"}, {601, "due", "repeats e1 b"}, {602, "2 e2 b", "complete e1 b"},
		},
		"a copy of a part of a repetition is a duplicate": {
			{0, "1 e1 a", "waiting"}, {0, "2 e2 b", "complete e1 ab"}, {0, "end e1", ""},
			{1, "1 e3 a", "waiting"}, {1, "1 e4 a", "duplicate e3"}, {2, "2 e5 b", "complete e3 ab"}, {3, "1 e4 a", "complete e3 ab"},
		},
		"the last message is remembered for a day": {
			{0, "1 e1 a", "waiting"}, {0, "2 e2 b", "complete e1 ab"}, {0, "end e1", ""},
			{day - 1, "1 e1 a", "again e1 ab"}, {day, "1 e1 a", "waiting"}, {day, "2 e2 b", "complete e1 ab"},
		},
		"the last message is remembered longer until it ends": {
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
					t.Errorf("result of step %d, %s = %q, want %q", i, s.op, got, s.want)
				}
			}
		})
	}
}

// do runs the step as one transaction and returns its result.
func (s groupStep) do(g *group) string {
	times := groupTimes{now: s.time * 1000, leaseEnd: (s.time + 60) * 1000, wait: 300_000}
	g.expire(times)
	var number int
	var id, content string
	switch {
	case s.op == "due":
		if g.due == 0 || g.due > times.now {
			return ""
		}
		dropped, err := g.dropRepetition(times)
		if err != nil || dropped.Repeats != "" {
			return repetition(dropped, err)
		}
		id := g.close(times, times.leaseEnd)
		return id + " " + g.contents(id)
	case strings.HasPrefix(s.op, "end "):
		delete(g.ready, s.op[4:])
		return ""
	}
	_, _ = fmt.Sscan(s.op, &number, &id, &content)
	doc, err := db.Encode(&Message{Text: content})
	if err != nil {
		return err.Error()
	}
	added, err := g.add(&part{id: id, number: number, digest: content, doc: doc}, 2, times)
	result := string(added.State) + " " + added.MessageID
	if added.State == Completed || added.State == RouteAgain {
		result += " " + g.contents(added.MessageID)
	}
	result = strings.TrimSpace(result)
	if err != nil || added.Dropped.Repeats != "" {
		result += ", " + repetition(added.Dropped, err)
	}
	return result
}

// repetition returns dropped parts as text.
func repetition(dropped ReassembledMessage, err error) string {
	if err != nil {
		return err.Error()
	}
	return "repeats " + dropped.Repeats + " " + texts(dropped)
}

func texts(m ReassembledMessage) (text string) {
	for _, p := range m.Parts {
		text += p.Text
	}
	return text
}

// contents returns the texts of a message's parts.
func (g *group) contents(message string) string {
	m, err := g.reassembled(message)
	if err != nil {
		return err.Error()
	}
	return texts(m)
}
