package inbound

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/outbox"
)

// plan is the results of a batch of messages and the records to save for them.
type plan struct {
	results       []Result
	deliveries    []outbox.Delivery
	owners        []int // of each delivery: the index of its message's result
	inboxMessages []InboxMessage
	endedGroups   []endedGroup
}

// add adds the decision about a message.
func (p *plan) add(i int, m *Message, d Decision) {
	r := Result{MessageID: m.ID, Account: m.Account, State: d.State, Reason: d.Reason, Notes: NotesOf(m)}
	if d.Matched != nil {
		r.Account = d.Matched.Account
	}
	if d.State == event.Done && len(d.Deliveries) == 0 && d.InboxMessage == nil {
		r.Notes.Add("nothing is delivered: " + d.Outcome)
	}
	p.results[i] = r
	for range d.Deliveries {
		p.owners = append(p.owners, i)
	}
	p.deliveries = append(p.deliveries, d.Deliveries...)
	if d.InboxMessage != nil {
		p.inboxMessages = append(p.inboxMessages, *d.InboxMessage)
	}
}

// perform saves a plan and dispatches its new deliveries. It is idempotent.
func (s *Service) perform(ctx context.Context, p *plan) error {
	if len(p.inboxMessages) > 0 {
		if err := s.deps.Inbox.Keep(ctx, p.inboxMessages); err != nil {
			return fmt.Errorf("inbound: inbox: %w", err)
		}
	}
	return s.send(ctx, p)
}

// send saves deliveries under a lease and dispatches those that are new.
func (s *Service) send(ctx context.Context, p *plan) error {
	ds := p.deliveries
	if len(ds) == 0 {
		return nil
	}
	now := s.o.Now()
	for i := range ds {
		ds[i].CreatedAt = now.Add(time.Duration(i)) // lists show them in the order of their messages
	}
	existing, err := s.deps.Deliveries.Create(ctx, ds, now.Add(s.o.Lease))
	if err != nil {
		return fmt.Errorf("inbound: deliveries: %w", err)
	}
	fresh := ds[:0] // the front of ds: those so far that are new
	for i := range ds {
		r := &p.results[p.owners[i]]
		if slices.Contains(existing, i) {
			r.Existing++
			continue
		}
		r.Deliveries++
		// An existing delivery came before: close the gap. Without one, nothing is
		// copied, because a Delivery is a large struct.
		if len(fresh) < i {
			ds[len(fresh)] = ds[i]
		}
		fresh = ds[:len(fresh)+1]
	}
	if len(fresh) > 0 {
		s.deps.Dispatcher.Dispatch(fresh)
	}
	return nil
}
