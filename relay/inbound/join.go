package inbound

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/penstock/penstock/relay/event"
)

// Parts keeps the parts of messages until all of a message have come, or until
// those that have must go on without the others. All gateways share it.
type Parts interface {
	// Add takes parts in, each in one atomic step, in order, and says what
	// became of each.
	Add(ctx context.Context, parts []Arrival, t Times) ([]Added, error)
	// Due hands out groups that must go on now, each to one caller only until
	// the lease's end: those that waited too long, and those that somebody began
	// to send on and did not end.
	Due(ctx context.Context, t Times, limit int) ([]Gathered, error)
	// End forgets groups that have gone on.
	End(ctx context.Context, all []Gathered) error
	// Park keeps a group that nobody takes for the event that it is noted at, so
	// that adding that event's part again gives the whole group. For a day any
	// part of a group that has ended does so.
	Park(ctx context.Context, g Gathered, keep time.Duration) error
	// Whole returns the id of the message that a part has become part of, "" while
	// it waits or when nothing is remembered of it.
	Whole(ctx context.Context, group, part string) (string, error)
	// Unpark forgets it.
	Unpark(ctx context.Context, g Gathered) error
}

// Times is what a store of parts needs to know about time.
type Times struct {
	Now time.Time
	// Wait is how long after its first part a message goes on without those
	// that are missing. For twice as long the same part is known again.
	Wait time.Duration
	// Lease is how long a caller has to send a group on.
	Lease time.Duration
}

// Arrival is a part that came.
type Arrival struct {
	Group  string // the same for all parts of a message
	Digest string // the same for a part that comes twice
	Number int
	Total  int
	// Message is the part; its ID says whether it is the same arrival again.
	Message Message
}

// PartState is what became of a part.
type PartState string

// What becomes of a part.
const (
	Waiting   PartState = "waiting"   // for the others
	Repeated  PartState = "duplicate" // of Added.Holder
	Completed PartState = "complete"  // the caller sends the group on and ends it
	Again     PartState = "again"     // the group has ended; the caller routes it once more
)

// Added says what became of a part.
type Added struct {
	State  PartState
	Holder string // a message's id
	Group  Gathered
}

// Gathered is a group that must go on: all of its parts, or those that came.
type Gathered struct {
	Group string
	ID    string // of the message: that of the first part there is
	// Event is the id of the part at which it is noted that nobody takes it.
	Event string
	Parts []Message
}

// Aside notes that a message was set aside whose journal record has been
// processed long since.
type Aside interface {
	SetAside(ctx context.Context, m *Message, r Result) error
}

// ending is a group that a plan sends on, and the result that says how.
type ending struct {
	group  Gathered
	result int
	again  bool // it had ended
}

// gather takes the parts among new messages in and returns what became of each,
// by the message's index.
func (s *Service) gather(ctx context.Context, msgs []Message, holders []string) (map[int]Added, error) {
	var arrivals []Arrival
	var index []int
	for i := range msgs {
		if p, ok := PartOf(&msgs[i]); ok && holders[i] == msgs[i].ID {
			arrivals = append(arrivals, Arrival{
				Group: groupKey(&msgs[i], p), Digest: digest(&msgs[i]), Number: p.Number, Total: p.Total, Message: msgs[i],
			})
			index = append(index, i)
		}
	}
	if len(arrivals) == 0 {
		return nil, nil
	}
	added, err := s.deps.Parts.Add(ctx, arrivals, s.times())
	if err != nil {
		return nil, fmt.Errorf("inbound: parts: %w", err)
	}
	out := make(map[int]Added, len(added))
	for n, i := range index {
		out[i] = added[n]
	}
	return out, nil
}

func (s *Service) times() Times {
	return Times{Now: s.o.Now(), Wait: s.o.JoinWait, Lease: s.o.Lease}
}

// part plans for a part: nothing, or the whole message that it completes.
func (s *Service) part(p *plan, i int, m *Message, a Added, routes []*Route) {
	switch a.State {
	case Completed, Again:
		a.Group.Event = m.ID
		s.whole(p, i, a.Group, routes)
		p.endings[len(p.endings)-1].again = a.State == Again
		return
	}
	outcome := "duplicate of " + a.Holder
	if a.State == Waiting {
		part, _ := PartOf(m)
		outcome = fmt.Sprintf("part %d of %d, waits for the others", part.Number, part.Total)
	}
	p.results[i] = Result{MessageID: m.ID, Account: m.Account, State: event.Done, Outcome: outcome}
}

// whole plans for the message that a group makes.
func (s *Service) whole(p *plan, i int, g Gathered, routes []*Route) {
	m, missing := s.assembler.assemble(g.Parts)
	m.ID = g.ID
	p.add(i, &m, Decide(&m, routes, s.o.Settings))
	r := &p.results[i]
	r.Outcome = strings.TrimSuffix(fmt.Sprintf("joined of %d parts%s; %s", len(g.Parts), lost(missing), r.Outcome), "; ")
	p.endings = append(p.endings, ending{group: g, result: i})
}

// lost says which parts never came.
func lost(missing []int) string {
	if len(missing) == 0 {
		return ""
	}
	return ", without " + strings.Trim(fmt.Sprint(missing), "[]")
}

// end closes the groups whose messages have gone on, and keeps those that
// nobody takes for a replay.
func (s *Service) end(ctx context.Context, p *plan) error {
	var done []Gathered
	for _, e := range p.endings {
		var err error
		routed := p.results[e.result].State == event.Done
		switch {
		case !routed:
			err = s.deps.Parts.Park(ctx, e.group, s.o.Remember)
		case e.again:
			err = s.deps.Parts.Unpark(ctx, e.group)
		}
		if err != nil {
			return fmt.Errorf("inbound: parts: %w", err)
		}
		if !e.again {
			done = append(done, e.group)
		}
	}
	if len(done) == 0 {
		return nil
	}
	if err := s.deps.Parts.End(ctx, done); err != nil {
		return fmt.Errorf("inbound: parts: %w", err)
	}
	return nil
}
