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

// Processor passes journalled messages to their relays. It implements intake.Processor.
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

// post is the content of a journalled post.
type post struct {
	messages []inbound.Message
	err      error // of Adapter.Parse
}

// Parse parses a post. The carrier's id of each message is a key, so that posts with the same id
// are processed in order: the later ones are duplicates.
func (p *Processor) Parse(item *intake.Item) (content post, keys []uint64, err error) {
	content.messages, content.err = p.messages(item)
	for i := range content.messages {
		if m := &content.messages[i]; m.CarrierID != "" {
			keys = append(keys, hashKey(p.seed, "%d %q %q", m.Account, m.Carrier, m.CarrierID))
		}
	}
	return content, keys, nil
}

func hashKey(seed maphash.Seed, format string, values ...any) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	_, _ = fmt.Fprintf(&h, format, values...)
	return h.Sum64()
}

// Process passes the messages of all posts to the receiver in one batch.
func (p *Processor) Process(ctx context.Context, posts []intake.ParsedItem[post]) ([]event.Status, error) {
	msgs := make([]inbound.Message, 0, len(posts)) // most posts have one message
	origins := make([]int, 0, len(posts))          // the post of each message
	statuses := make([]event.Status, len(posts))   // the ID is empty if a post needs no status
	for i, item := range posts {
		if notice, ok := errors.AsType[notMessage](item.Content.err); ok {
			done := item.Status(event.Done, "")
			done.Notes.Add(string(notice))
			statuses[i] = done
		} else if item.Content.err != nil {
			statuses[i] = item.Status(event.Quarantined, errorLine(item.Content.err))
		}
		for range item.Content.messages {
			origins = append(origins, i)
		}
		msgs = append(msgs, item.Content.messages...)
	}
	results, err := p.receiver.Receive(ctx, msgs)
	if err != nil {
		return nil, err
	}
	for n, r := range results {
		if r.State != event.Done || r.Outcome != "" || len(r.Notes) > 0 {
			i := origins[n]
			status := posts[i].Status(r.State, r.Reason)
			status.Outcome, status.Notes = r.Outcome, r.Notes
			statuses[i] = merge(statuses[i], status)
		}
	}
	return onlyWithID(statuses), nil
}

// Messages parses a journalled post as Process does. notice describes a post without messages,
// for example a carrier's test.
func (p *Processor) Messages(item *intake.Item) (found []inbound.Message, notice string, err error) {
	found, err = p.messages(item)
	if n, ok := errors.AsType[notMessage](err); ok {
		return nil, string(n), nil
	}
	return found, "", err
}

// Describe returns the sender, the recipient and the part number of each message of a post, and the
// bind. It omits texts, because lists show descriptions to users who may not read messages.
func (p *Processor) Describe(item intake.ParsedItem[post]) string {
	if notice, ok := errors.AsType[notMessage](item.Content.err); ok {
		return string(notice)
	}
	var parts []string
	for i := range item.Content.messages {
		m := &item.Content.messages[i]
		description := "from " + m.From + " to " + m.To
		if part, ok := inbound.PartOf(m); ok {
			description = fmt.Sprintf("part %d of %d, delivered with the others, %s", part.Number, part.Total, description)
		}
		parts = append(parts, description)
	}
	description := strings.Join(parts, "; ")
	if carrier, bind := carrierAndBind(&item.Entry); item.Entry.Source == SMPP && bind != "" && description != "" {
		description += " over bind " + bind + " of carrier " + carrier
	}
	return description
}

// Subjects returns the recipients of the messages of a post.
func (p *Processor) Subjects(item intake.ParsedItem[post]) []string {
	var numbers []string
	for i := range item.Content.messages {
		numbers = append(numbers, item.Content.messages[i].To)
	}
	return numbers
}

// messages parses a journalled post. The id of each of several messages ends with its index.
func (p *Processor) messages(item *intake.Item) ([]inbound.Message, error) {
	a, ok := p.adapters[item.Entry.Source]
	if !ok {
		return nil, relay.Errorf(relay.KindInvalid, "no adapter for the carrier %q", item.Entry.Source)
	}
	found, err := a.Parse(&item.Entry)
	for n := range found {
		m := &found[n]
		m.ID, m.Account, m.ReceivedAt, m.Trace = item.ID, item.Entry.Account, item.Entry.ReceivedAt, item.Trace
		m.Carrier = carrierOf(&item.Entry)
		inbound.TrimText(m)
		if len(found) > 1 {
			m.ID += "." + strconv.Itoa(n)
		}
	}
	return found, err
}

// carrierOf returns the sender of a post: the adapter, and the source in the path.
func carrierOf(e *intake.Entry) string {
	_, source, _ := strings.Cut(e.Path, messagePath+e.Source+"/")
	return strings.TrimSuffix(e.Source+"/"+source, "/")
}

// merge merges the statuses of two messages of a post. The state is the more severe one.
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

func onlyWithID(statuses []event.Status) []event.Status {
	return slices.DeleteFunc(statuses, func(s event.Status) bool { return s.ID == "" })
}

func errorLine(err error) string {
	parts, fields := []string{err.Error()}, relay.FieldsOf(err)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		parts = append(parts, fields[name]...)
	}
	return strings.Join(parts, " ")
}
