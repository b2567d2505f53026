package inbound

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/penstock/penstock/relay/db"
)

// minRemembered is the shortest time for which the parts of the last message of a group are
// stored: a restarted gateway processes some of them again, and an operator may replay them.
const minRemembered = 24 * time.Hour

// groupTimes is Times in milliseconds. leaseEnd is the end of a lease that begins now.
type groupTimes struct{ now, leaseEnd, wait int64 }

func groupTimesOf(t Times) groupTimes {
	return groupTimes{now: db.Millis(t.Now), leaseEnd: db.Millis(t.Now.Add(t.Lease)), wait: t.Wait.Milliseconds()}
}

// expires returns the time at which the parts of a message that is made now expire.
func (t groupTimes) expires() int64 { return t.now + max(2*t.wait, minRemembered.Milliseconds()) }

// part is one arrival of a part.
type part struct {
	group   string
	id      string
	number  int
	digest  string
	message string // the id of its message; "" while it waits
	doc     string // JSON of Message; "" for a repeated part
	changed bool
}

// group has the parts with one reference: parts that wait for others, and the parts of the last
// message and of messages that have not been routed yet.
type group struct {
	name  string
	parts []*part
	ready map[string]bool // the ids of messages that have not been routed
	groupRow

	loadedRow groupRow
	newReady  []readyRow // messages that became ready
	forgotten []string   // ids of the parts that forget dropped
}

// groupRow is the row of a group; times are in milliseconds.
type groupRow struct {
	due int64 // when the waiting parts are routed without the others; 0 if none waits
	// lastMessage is the id of the last message, which is stored until expires. The same
	// parts repeat the message if the first of them arrives before repeatsUntil.
	lastMessage  string
	repeatsUntil int64
	expires      int64
}

// readyRow is a message that has not been routed.
type readyRow struct {
	group, id string
	due       int64 // the end of its lease
}

// add adds a part and returns its state and its message. If a part with the same number and other
// content waits, the carrier uses the reference again: the waiting parts are routed at once without
// the missing ones, or are dropped and returned if they repeat the last message, and the new part
// begins a new message.
func (g *group) add(p *part, total int, t groupTimes) (added AddResult, err error) {
	if assigned := g.find(func(q *part) bool { return q.id == p.id && q.message != "" }); assigned != nil {
		if g.ready[assigned.message] {
			return AddResult{State: Completed, MessageID: assigned.message}, nil
		}
		return AddResult{State: RouteAgain, MessageID: assigned.message}, nil
	}
	// Repeated parts have no doc.
	if w := g.find(func(w *part) bool { return w.message == "" && w.doc != "" && w.number == p.number }); w != nil {
		if w.id == p.id {
			return AddResult{State: Waiting}, nil
		}
		if w.digest == p.digest {
			p.doc = ""
			g.put(p)
			return AddResult{State: Repeated, MessageID: w.id}, nil
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
		added.State, added.MessageID = Completed, g.close(t, t.leaseEnd)
	}
	return added, nil
}

// close makes a message of the waiting parts, to be routed at due unless a caller routes it before.
// It returns the message's id, which is the id of the part with the lowest number.
func (g *group) close(t groupTimes, due int64) (id string) {
	id = g.waiting()[0].id
	g.assign(id)
	g.lastMessage, g.repeatsUntil, g.expires = id, t.now+2*t.wait, t.expires()
	g.ready[id] = true
	g.newReady = append(g.newReady, readyRow{g.name, id, due})
	g.forget()
	return id
}

func (g *group) assign(message string) {
	for _, p := range g.parts {
		if p.message == "" {
			p.message, p.changed = message, true
		}
	}
	g.due = 0
}

// dropRepetition drops the waiting parts and returns them if they repeat parts of the last
// message soon after it. A carrier repeats a part if it got no answer.
func (g *group) dropRepetition(t groupTimes) (dropped ReassembledMessage, err error) {
	if g.lastMessage == "" || g.due-t.wait > g.repeatsUntil {
		return dropped, nil
	}
	waiting := g.waiting()
	for _, w := range waiting {
		isOriginal := func(p *part) bool {
			return p.message == g.lastMessage && p.doc != "" && p.number == w.number && p.digest == w.digest
		}
		if g.find(isOriginal) == nil {
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

// expire drops the parts of routed messages, and the parts of the last message if it has expired.
func (g *group) expire(t groupTimes) {
	if g.expires <= t.now {
		g.lastMessage = ""
	}
	g.forget()
}

// forget drops the parts of routed messages except the last message.
func (g *group) forget() {
	g.parts = slices.DeleteFunc(g.parts, func(p *part) bool {
		isForgotten := p.message != "" && p.message != g.lastMessage && !g.ready[p.message]
		if isForgotten {
			g.forgotten = append(g.forgotten, p.id)
		}
		return isForgotten
	})
}

func (g *group) find(matches func(*part) bool) *part {
	if i := slices.IndexFunc(g.parts, matches); i >= 0 {
		return g.parts[i]
	}
	return nil
}

func (g *group) put(p *part) {
	p.changed = true
	g.parts = append(slices.DeleteFunc(g.parts, func(old *part) bool { return old.id == p.id }), p)
}

func (g *group) waiting() []*part { return g.partsOf("") }

// partsOf returns the parts of a message, sorted by number, without repeated parts.
func (g *group) partsOf(message string) (parts []*part) {
	for _, p := range g.parts {
		if p.message == message && p.doc != "" {
			parts = append(parts, p)
		}
	}
	slices.SortFunc(parts, func(a, b *part) int { return cmp.Compare(a.number, b.number) })
	return parts
}

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
