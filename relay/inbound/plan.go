package inbound

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/outbox"
)

// plan is the results of a batch of messages and the records to save for them.
type plan struct {
	results       []Result
	deliveries    []outbox.Delivery
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
	p.deliveries = append(p.deliveries, d.Deliveries...)
	if d.InboxMessage != nil {
		p.inboxMessages = append(p.inboxMessages, *d.InboxMessage)
	}
}

// perform saves the inbox messages and the deliveries of a plan and dispatches the new
// deliveries. It is idempotent.
func (s *Service) perform(ctx context.Context, p *plan) error {
	if len(p.inboxMessages) > 0 {
		if err := s.deps.Store.Keep(ctx, p.inboxMessages); err != nil {
			return fmt.Errorf("inbound: inbox: %w", err)
		}
	}
	if len(p.deliveries) == 0 {
		return nil
	}
	now := s.o.Now()
	for i := range p.deliveries {
		p.deliveries[i].CreatedAt = now.Add(time.Duration(i)) // lists show them in the order of their messages
	}
	if err := s.deps.Deliveries.Send(ctx, p.deliveries); err != nil {
		return fmt.Errorf("inbound: deliveries: %w", err)
	}
	return nil
}
