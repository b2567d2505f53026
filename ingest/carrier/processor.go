package carrier

import (
	"context"
	"errors"
	"fmt"
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

// Receiver is the part of inbound.Service that the processor uses.
type Receiver interface {
	Receive(ctx context.Context, msgs []inbound.Message) ([]inbound.Result, error)
}

// Processor passes journalled messages to their relays. It implements intake.Orderly.
type Processor struct {
	receiver Receiver
	adapters map[string]Adapter
	seed     maphash.Seed
}

// NewProcessor returns a Processor.
func NewProcessor(r Receiver) *Processor {
	return &Processor{receiver: r, adapters: Adapters(), seed: maphash.MakeSeed()}
}

// Add adds the adapter of a source that does not use HTTP. It must be called before
// Process.
func (p *Processor) Add(source string, a Adapter) { p.adapters[source] = a }

// Process parses each post again and passes on all messages in one batch.
func (p *Processor) Process(ctx context.Context, items []intake.Item) ([]event.Status, error) {
	msgs := make([]inbound.Message, 0, len(items)) // most posts are one
	origins := make([]int, 0, len(items))          // the item of each message
	statuses := make(map[int]event.Status)
	for i := range items {
		found, err := p.prepared(&items[i])
		if n, ok := errors.AsType[notMessage](err); ok {
			done := items[i].Status(event.Done, "")
			done.Notes.Add(string(n))
			statuses[i] = done
		} else if err != nil {
			statuses[i] = items[i].Status(event.Quarantined, why(err))
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
		if r.State != event.Done || r.Outcome != "" || len(r.Notes) > 0 {
			at := origins[n]
			m := items[at].Status(r.State, r.Reason)
			m.Outcome, m.Notes = r.Outcome, r.Notes
			statuses[at] = merge(statuses[at], m)
		}
	}
	return inOrder(statuses, len(items)), nil
}

// Messages parses a journalled post like Process. notice describes a post without
// messages, for example a carrier's test.
func (p *Processor) Messages(it *intake.Item) (found []inbound.Message, notice string, err error) {
	found, err = p.messages(it)
	if n, ok := errors.AsType[notMessage](err); ok {
		return nil, string(n), nil
	}
	return found, "", err
}

// Describe returns the numbers of the messages of a post, and which parts they are,
// without their texts: lists show it to users who may not read messages.
func (p *Processor) Describe(e *intake.Entry) string {
	found, err := p.messages(&intake.Item{Entry: *e})
	if n, ok := errors.AsType[notMessage](err); ok {
		return string(n)
	}
	var parts []string
	for i := range found {
		description := "from " + found[i].From + " to " + found[i].To
		if part, ok := inbound.PartOf(&found[i]); ok {
			description = fmt.Sprintf("part %d of %d, delivered with the others, %s", part.Number, part.Total, description)
		}
		parts = append(parts, description)
	}
	description := strings.Join(parts, "; ")
	if carrier, bind := carrierAndBind(e); e.Source == SMPP && bind != "" && description != "" {
		description += " over bind " + bind + " of carrier " + carrier
	}
	return description
}

// messages parses a journalled post. Several messages of a post get ids with their
// index.
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
		inbound.TrimText(m)
		if len(found) > 1 {
			m.ID += "." + strconv.Itoa(n)
		}
	}
	return found, err
}

// carrierOf returns the sender of a post: the adapter, and the source in the path.
func carrierOf(e *intake.Entry) string {
	_, source, _ := strings.Cut(e.Path, "/inbound/sms/"+e.Source+"/")
	return strings.TrimSuffix(e.Source+"/"+source, "/")
}

// merge merges the statuses of several messages of a post: the state is the most severe
// one.
func merge(a, b event.Status) event.Status {
	if a.ID == "" {
		return b
	}
	if b.State == event.Quarantined || a.State == event.Done {
		a.State = b.State
	}
	a.Reason, a.Outcome = join(a.Reason, b.Reason), join(a.Outcome, b.Outcome)
	a.Notes.Add(b.Notes...)
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

// why returns an error in one line, with its fields.
func why(err error) string {
	parts, fields := []string{err.Error()}, relay.FieldsOf(err)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		parts = append(parts, fields[name]...)
	}
	return strings.Join(parts, " ")
}

// parsed is the result of parsing a post.
type parsed struct {
	messages []inbound.Message
	err      error
}

// Keys returns a key per carrier message id, so that posts with the same id are
// processed in order: the first is the message. It keeps the parsed post for Process.
func (p *Processor) Keys(it *intake.Item, keys []uint64) []uint64 {
	found, err := p.messages(it)
	it.Prepared = parsed{found, err}
	for i := range found {
		if m := &found[i]; m.CarrierID != "" {
			keys = append(keys, hashKey(p.seed, "%d %q %q", m.Account, m.Carrier, m.CarrierID))
		}
	}
	return keys
}

// hashKey returns the hash of a formatted key.
func hashKey(seed maphash.Seed, format string, values ...any) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	_, _ = fmt.Fprintf(&h, format, values...)
	return h.Sum64()
}

// prepared returns the messages of a post, which Keys may have read already.
func (p *Processor) prepared(it *intake.Item) ([]inbound.Message, error) {
	if in, ok := it.Prepared.(parsed); ok {
		return in.messages, in.err
	}
	return p.messages(it)
}
