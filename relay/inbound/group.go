package inbound

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/penstock/penstock/relay/db"
)

// minRemembered is the time that the parts of the last message of a group are kept: a gateway
// that died processes some of them again when it is back, and an operator may replay them.
const minRemembered = 24 * time.Hour

// groupTimes is Times in milliseconds.
type groupTimes struct{ now, leased, wait int64 }

func groupTimesOf(t Times) groupTimes {
	return groupTimes{now: db.Millis(t.Now), leased: db.Millis(t.Now.Add(t.Lease)), wait: t.Wait.Milliseconds()}
}

// expires is the time at which the parts of a message that is made now expire.
func (t groupTimes) expires() int64 { return t.now + max(2*t.wait, minRemembered.Milliseconds()) }

// part is one arrival of a part.
type part struct {
	group   string
	id      string
	number  int
	digest  string
	message string // that it became part of; "" while it waits
	doc     string // JSON of Message; "" for one that repeats a part
	changed bool
}

// group has the parts with one reference: parts that wait for the others, the last message
// that was joined of such parts, and messages that have not been routed yet.
type group struct {
	name  string
	parts []*part
	ready map[string]bool // messages that have not gone on
	groupRow

	loaded    groupRow
	made      []readyRow // messages that became ready
	forgotten []string   // ids of parts
}

// groupRow is the row of a group; times are milliseconds.
type groupRow struct {
	due int64 // when the parts that wait go on without the others; 0: none waits
	// lastMessage is the message made last. The same parts, the first of which came
	// until repeatsUntil, repeat it. It is remembered until expires.
	lastMessage  string
	repeatsUntil int64
	expires      int64
}

// readyRow is a message that has not gone on, and when its lease ends.
type readyRow struct {
	group, id string
	due       int64
}

// add adds a part and returns its state, and its message. A different part in the place of
// one that waits means that the reference is used again: the waiting parts are routed at
// once without the missing ones, or are dropped and returned if they repeat the message
// before, and the part begins a new message.
func (g *group) add(p *part, total int, t groupTimes) (added Added, err error) {
	if known := g.find(func(k *part) bool { return k.id == p.id && k.message != "" }); known != nil {
		if g.ready[known.message] {
			return Added{State: Completed, Holder: known.message}, nil
		}
		return Added{State: Again, Holder: known.message}, nil
	}
	// Copies of a part that waits have no doc.
	if w := g.find(func(w *part) bool { return w.message == "" && w.doc != "" && w.number == p.number }); w != nil {
		if w.id == p.id {
			return Added{State: Waiting}, nil
		}
		if w.digest == p.digest {
			p.doc = ""
			g.put(p)
			return Added{State: Repeated, Holder: w.id}, nil
		}
		if added.Dropped, err = g.dropRepetition(t); err != nil {
			return added, err
		}
		if added.Dropped.Repeats == "" {
			g.close(t, t.now)
		}
	}
	g.put(p)
	if g.due == 0 {
		g.due = t.now + t.wait
	}
	added.State = Waiting
	if len(g.waiting()) == total {
		added.State, added.Holder = Completed, g.close(t, t.leased)
	}
	return added, nil
}

// close makes a message of the parts that wait, which is due at a time, and
// returns its id: that of the part with the lowest number.
func (g *group) close(t groupTimes, due int64) (id string) {
	id = g.waiting()[0].id
	g.assign(id)
	g.lastMessage, g.repeatsUntil, g.expires = id, t.now+2*t.wait, t.expires()
	g.ready[id] = true
	g.made = append(g.made, readyRow{g.name, id, due})
	g.forget()
	return id
}

// assign makes the parts that wait parts of a message.
func (g *group) assign(message string) {
	for _, p := range g.parts {
		if p.message == "" {
			p.message, p.changed = message, true
		}
	}
	g.due = 0
}

// dropRepetition drops the parts that wait and returns them, if each is one of the last
// message and they began soon after it. They are not all of a message, for that would
// have gone on: the sender repeats a part whose answer it did not get.
func (g *group) dropRepetition(t groupTimes) (dropped ReassembledMessage, err error) {
	if g.lastMessage == "" || g.due-t.wait > g.repeatsUntil {
		return dropped, nil
	}
	waiting := g.waiting()
	for _, w := range waiting {
		same := func(p *part) bool {
			return p.message == g.lastMessage && p.doc != "" && p.number == w.number && p.digest == w.digest
		}
		if g.find(same) == nil {
			return dropped, nil
		}
	}
	if dropped, err = g.reassembled(""); err != nil {
		return dropped, err
	}
	dropped.Repeats = g.lastMessage
	for _, p := range waiting {
		p.doc = ""
	}
	g.assign(g.lastMessage)
	return dropped, nil
}

// expire drops the last message when it is no longer needed, and what is left of others.
func (g *group) expire(t groupTimes) {
	if g.expires <= t.now {
		g.lastMessage = ""
	}
	g.forget()
}

// forget drops the parts of messages that have gone on, except for the last.
func (g *group) forget() {
	g.parts = slices.DeleteFunc(g.parts, func(p *part) bool {
		gone := p.message != "" && p.message != g.lastMessage && !g.ready[p.message]
		if gone {
			g.forgotten = append(g.forgotten, p.id)
		}
		return gone
	})
}

func (g *group) find(matches func(*part) bool) *part {
	if i := slices.IndexFunc(g.parts, matches); i >= 0 {
		return g.parts[i]
	}
	return nil
}

// put adds a part in the place of one with its id, if there is one.
func (g *group) put(p *part) {
	p.changed = true
	g.parts = append(slices.DeleteFunc(g.parts, func(old *part) bool { return old.id == p.id }), p)
}

// waiting is the parts that wait, by number.
func (g *group) waiting() []*part { return g.partsOf("") }

// partsOf is the parts of a message by number, without those that repeat one.
func (g *group) partsOf(message string) (parts []*part) {
	for _, p := range g.parts {
		if p.message == message && p.doc != "" {
			parts = append(parts, p)
		}
	}
	slices.SortFunc(parts, func(a, b *part) int { return cmp.Compare(a.number, b.number) })
	return parts
}

// reassembled returns a message of the group with its parts.
func (g *group) reassembled(id string) (ReassembledMessage, error) {
	message := ReassembledMessage{Group: g.name, ID: id}
	for _, p := range g.partsOf(id) {
		var part Message
		if err := db.Decode([]byte(p.doc), &part); err != nil {
			return message, fmt.Errorf("part %s: %w", p.id, err)
		}
		message.Parts = append(message.Parts, part)
	}
	return message, nil
}
