package carrier

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/inbound"
)

// Aside notes at a part's event that the message it belongs to was set aside,
// also when the event is another gateway's. It is an inbound.Aside.
type Aside struct{ marks func(node string) event.Marks }

// NewAside returns an Aside over the marks of each node.
func NewAside(marks func(node string) event.Marks) *Aside { return &Aside{marks: marks} }

// SetAside marks the event of a message's first part.
func (a *Aside) SetAside(ctx context.Context, m *inbound.Message, r inbound.Result) error {
	id, _, _ := strings.Cut(m.ID, ".") // a post of several messages is one event
	node, sequence, ok := cutLast(id, "-"+string(event.SMS[:1]))
	seq, err := strconv.ParseUint(sequence, 10, 64)
	if !ok || err != nil {
		return fmt.Errorf("carrier: %q is no event", m.ID)
	}
	source, _, _ := strings.Cut(m.Carrier, "/")
	return a.marks(node).Set(ctx, event.SMS, []event.Mark{{
		ID: id, Seq: seq, State: r.State, Reason: r.Reason, Account: m.Account, Source: source,
	}})
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}
