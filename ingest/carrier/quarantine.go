package carrier

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/inbound"
)

// Quarantine changes the statuses of events, also of another gateway's, after they
// were processed: it quarantines the first part of a message that no relay takes
// and releases a receipt that matched its message later. It implements
// inbound.Quarantine and message.Events.
type Quarantine struct {
	statuses func(node string) event.Statuses
}

// NewQuarantine returns a Quarantine over the statuses of each node.
func NewQuarantine(statuses func(node string) event.Statuses) *Quarantine {
	return &Quarantine{statuses: statuses}
}

// Put sets the status of the event of a message's first part.
func (q *Quarantine) Put(ctx context.Context, m *inbound.Message, r inbound.Result) error {
	id, _, _ := strings.Cut(m.ID, ".") // a post of several messages is one event
	node, sequence, ok := cutLast(id, "-"+string(event.SMS[:1]))
	seq, err := strconv.ParseUint(sequence, 10, 64)
	if !ok || err != nil {
		return fmt.Errorf("carrier: %q is not an event id", m.ID)
	}
	source, _, _ := strings.Cut(m.Carrier, "/")
	return q.statuses(node).Set(ctx, event.SMS, []event.Status{{
		ID: id, Seq: seq, State: r.State, Reason: r.Reason, Outcome: r.Note, Account: m.Account, Source: source,
	}})
}

// Applied clears the unrouted state of receipts that have matched. It is a
// message.Events.
func (q *Quarantine) Applied(ctx context.Context, events []string) error {
	byNode := make(map[string][]event.Status)
	for _, id := range events {
		node, sequence, ok := cutLast(id, "-"+string(event.Receipt[:1]))
		seq, err := strconv.ParseUint(sequence, 10, 64)
		if !ok || err != nil {
			return fmt.Errorf("carrier: %q is not an event id", id)
		}
		byNode[node] = append(byNode[node], event.Status{ID: id, Seq: seq, State: event.Done})
	}
	for node, statuses := range byNode {
		if err := q.statuses(node).Set(ctx, event.Receipt, statuses); err != nil {
			return err
		}
	}
	return nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}
