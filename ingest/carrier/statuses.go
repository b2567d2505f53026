package carrier

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/inbound"
)

// LateStatuses changes the status of an event after its journal record was processed, on whichever
// gateway received the event. Two kinds of event need this: the first part of a reassembled message,
// and a receipt that arrived before its message was known. LateStatuses implements inbound.LateStatuses and message.Events.
type LateStatuses struct {
	statuses func(node string) *event.Statuses
}

// NewLateStatuses returns a LateStatuses over the statuses of each node.
func NewLateStatuses(statuses func(node string) *event.Statuses) *LateStatuses {
	return &LateStatuses{statuses: statuses}
}

// Put sets the status of the event of a message's first part.
func (l *LateStatuses) Put(ctx context.Context, m *inbound.Message, r inbound.Result) error {
	id, _, _ := strings.Cut(m.ID, ".") // a post of several messages is one event
	node, seq, err := splitID(id, event.SMS)
	if err != nil {
		return err
	}
	source, _, _ := strings.Cut(m.Carrier, "/")
	return l.statuses(node).Set(ctx, event.SMS, []event.Status{{
		ID: id, Seq: seq, State: r.State, Reason: r.Reason, Outcome: r.Outcome, Notes: r.Notes, Account: m.Account, Source: source,
	}})
}

// SetApplied sets the events of receipts that have since matched a message from unrouted to done.
func (l *LateStatuses) SetApplied(ctx context.Context, events []string) error {
	statusesByNode := make(map[string][]event.Status)
	for _, id := range events {
		node, seq, err := splitID(id, event.Receipt)
		if err != nil {
			return err
		}
		statusesByNode[node] = append(statusesByNode[node], event.Status{ID: id, Seq: seq, State: event.Done})
	}
	for node, statuses := range statusesByNode {
		if err := l.statuses(node).Set(ctx, event.Receipt, statuses); err != nil {
			return err
		}
	}
	return nil
}

// splitID returns the node and the sequence of an event's id; see intake.Item.
func splitID(id string, kind event.Kind) (node string, seq uint64, err error) {
	offset := strings.LastIndex(id, "-"+string(kind[:1]))
	if offset >= 0 {
		seq, err = strconv.ParseUint(id[offset+2:], 10, 64)
	}
	if offset < 0 || err != nil {
		return "", 0, fmt.Errorf("carrier: %q is not an event id", id)
	}
	return id[:offset], seq, nil
}
