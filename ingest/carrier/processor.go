package carrier

import (
	"context"
	"errors"
	"hash/maphash"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/inbound"
)

// Receiver is inbound.Service as the processor uses it.
type Receiver interface {
	Receive(ctx context.Context, msgs []inbound.Message) ([]inbound.Result, error)
}

// Processor brings journalled posts to their relays. It is an intake.Orderly.
type Processor struct {
	receiver Receiver
	adapters map[string]Adapter
	seed     maphash.Seed
}

// NewProcessor returns a Processor.
func NewProcessor(r Receiver) *Processor {
	return &Processor{receiver: r, adapters: Adapters(), seed: maphash.MakeSeed()}
}

// Add adds the adapter of a source that comes another way than over HTTP. It is
// for the time before Process is called.
func (p *Processor) Add(source string, a Adapter) { p.adapters[source] = a }

// Process reads each post again and receives all messages in one batch.
func (p *Processor) Process(ctx context.Context, items []intake.Item) ([]event.Status, error) {
	msgs := make([]inbound.Message, 0, len(items)) // most posts are one
	origins := make([]int, 0, len(items))          // the item of each message
	statuses := make(map[int]event.Status)
	for i := range items {
		found, err := p.prepared(&items[i])
		if err != nil && !isNoMessage(err) {
			statuses[i] = newStatus(&items[i], event.Quarantined, why(err))
		}
		for range found {
			origins = append(origins, i)
		}
		msgs = append(msgs, found...)
	}
	results, err := p.receiver.Receive(ctx, msgs)
	if err != nil {
		return nil, err
	}
	for n, r := range results {
		if r.State != event.Done || r.Note != "" {
			at := origins[n]
			m := newStatus(&items[at], r.State, r.Reason)
			m.Outcome = r.Note
			statuses[at] = merge(statuses[at], m)
		}
	}
	return inOrder(statuses, len(items)), nil
}

// Messages reads the messages of a journalled post as Process does. notice says what a
// post without messages is, for example a carrier's test.
func (p *Processor) Messages(it *intake.Item) (found []inbound.Message, notice string, err error) {
	found, err = p.messages(it)
	if n, ok := errors.AsType[notMessage](err); ok {
		return nil, string(n), nil
	}
	return found, "", err
}

// Describe names the numbers of the messages of a post. It leaves the texts out:
// lists show it to whoever may see that a message came.
func (p *Processor) Describe(e *intake.Entry) string {
	found, err := p.messages(&intake.Item{Entry: *e})
	if n, ok := errors.AsType[notMessage](err); ok {
		return string(n)
	}
	var parts []string
	for i := range found {
		parts = append(parts, "from "+found[i].From+" to "+found[i].To)
	}
	return strings.Join(parts, "; ")
}

// messages reads the messages of a journalled post. Those of one post are told
// apart by their place in it.
func (p *Processor) messages(it *intake.Item) ([]inbound.Message, error) {
	a, ok := p.adapters[it.Entry.Source]
	if !ok {
		return nil, relay.Errorf(relay.KindInvalid, "no adapter for the carrier %q", it.Entry.Source)
	}
	found, err := a.Parse(&it.Entry)
	for n := range found {
		m := &found[n]
		m.ID, m.Account, m.ReceivedAt, m.Trace = it.ID, it.Entry.Account, it.Entry.ReceivedAt, it.Trace
		m.Carrier = carrierOf(&it.Entry)
		inbound.TrimBOM(m)
		if len(found) > 1 {
			m.ID += "." + strconv.Itoa(n)
		}
	}
	return found, err
}

// carrierOf names who sent a post: the adapter, and the source in the path.
func carrierOf(e *intake.Entry) string {
	_, source, _ := strings.Cut(e.Path, "/inbound/sms/"+e.Source+"/")
	return strings.TrimSuffix(e.Source+"/"+source, "/")
}

func newStatus(it *intake.Item, s event.State, reason string) event.Status {
	return event.Status{
		ID: it.ID, Seq: it.Seq, State: s, Reason: reason, Account: it.Entry.Account, Source: it.Entry.Source,
	}
}

// merge merges the statuses of several messages of one post: the state is the one
// that asks most of an operator.
func merge(a, b event.Status) event.Status {
	if a.ID == "" {
		return b
	}
	if b.State == event.Quarantined || a.State == event.Done {
		a.State = b.State
	}
	a.Reason, a.Outcome = join(a.Reason, b.Reason), join(a.Outcome, b.Outcome)
	return a
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

func inOrder(statuses map[int]event.Status, n int) []event.Status {
	var out []event.Status
	for i := range n {
		if m, ok := statuses[i]; ok {
			out = append(out, m)
		}
	}
	return out
}

// why is an error in one line, with its fields.
func why(err error) string {
	parts, fields := []string{err.Error()}, relay.FieldsOf(err)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		parts = append(parts, fields[name]...)
	}
	return strings.Join(parts, " ")
}
