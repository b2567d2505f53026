package carrier

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/inbound"
)

// LateStatuses sets the statuses of events, also of another gateway's, after their
// journal records were processed: that of the first part of a message that was
// reassembled, and that of a receipt that matched its message later. It implements
// inbound.LateStatuses and message.Events.
type LateStatuses struct {
	statuses func(node string) event.Statuses
}

// NewLateStatuses returns a LateStatuses over the statuses of each node.
func NewLateStatuses(statuses func(node string) event.Statuses) *LateStatuses {
	return &LateStatuses{statuses: statuses}
}

// Put sets the status of the event of a message's first part.
func (l *LateStatuses) Put(ctx context.Context, m *inbound.Message, r inbound.Result) error {
	id, _, _ := strings.Cut(m.ID, ".") // a post of several messages is one event
	node, sequence, ok := cutLast(id, "-"+string(event.SMS[:1]))
	seq, err := strconv.ParseUint(sequence, 10, 64)
	if !ok || err != nil {
		return fmt.Errorf("carrier: %q is not an event id", m.ID)
	}
	source, _, _ := strings.Cut(m.Carrier, "/")
	return l.statuses(node).Set(ctx, event.SMS, []event.Status{{
		ID: id, Seq: seq, State: r.State, Reason: r.Reason, Outcome: r.Note, Account: m.Account, Source: source,
	}})
}

// Applied clears the unrouted state of receipts that have matched. It is a
// message.Events.
func (l *LateStatuses) Applied(ctx context.Context, events []string) error {
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
		if err := l.statuses(node).Set(ctx, event.Receipt, statuses); err != nil {
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
