package uplink

import (
	"context"
	"hash/maphash"
	"log/slog"
	"net/url"
	"strconv"
	"strings"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/netserver"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/iot"
)

// Ingester is iot.Service as the processor uses it.
type Ingester interface {
	Ingest(ctx context.Context, arrivals []iot.Arrival) ([]iot.Outcome, error)
}

// Processor brings journalled posts to readings. It is an intake.Orderly.
type Processor struct {
	iot     Ingester
	waiters *waiters
	logger  *slog.Logger
	seed    maphash.Seed
}

// NewProcessor returns a Processor.
func NewProcessor(i Ingester) *Processor {
	return &Processor{iot: i, waiters: newWaiters(), logger: slog.Default(), seed: maphash.MakeSeed()}
}

// parsed is what was found in a post.
type parsed struct {
	decoderID string
	frames    []decoders.Frame
	err       error
}

// read parses a post.
func read(e *intake.Entry) *parsed {
	if e.Source == string(netserver.Submission) {
		frames, err := submitted(e)
		return &parsed{frames: frames, err: err}
	}
	query, _ := url.ParseQuery(e.Query) // what can be read of it
	frames, err := parse(e, query)
	return &parsed{decoderID: query.Get("decoder_id"), frames: frames, err: err}
}

// Keys makes two posts of the same frame take their turns: the first is the one
// that counts. It keeps what it read for Process.
func (p *Processor) Keys(it *intake.Item, keys []uint64) []uint64 {
	in := read(&it.Entry)
	it.Prepared = in
	for i := range in.frames {
		f := &in.frames[i]
		if f.DedupID == "" {
			continue
		}
		var h maphash.Hash
		h.SetSeed(p.seed)
		_, _ = h.WriteString(f.Identifier)
		_ = h.WriteByte(0)
		_, _ = h.WriteString(f.DedupID)
		keys = append(keys, h.Sum64())
	}
	return keys
}

// Process ingests the frames of the posts in one batch.
func (p *Processor) Process(ctx context.Context, items []intake.Item) ([]event.Mark, error) {
	arrivals, origins, troubles := gather(items)
	outcomes, err := p.iot.Ingest(ctx, arrivals)
	if err != nil {
		return nil, err
	}
	points := make([][]iot.Point, len(items))
	for n, out := range outcomes {
		at := origins[n]
		points[at] = append(points[at], out.Points...)
		troubles[at].outcome(arrivals[n].Frame.Identifier, out)
	}
	p.tell(items, points)
	p.remark(arrivals, outcomes)
	return marks(items, troubles), nil
}

// gather reads posts: their frames, the item of each, and what is wrong with
// each item.
func gather(items []intake.Item) (arrivals []iot.Arrival, origins []int, troubles []trouble) {
	arrivals, origins = make([]iot.Arrival, 0, len(items)), make([]int, 0, len(items))
	troubles = make([]trouble, len(items))
	for i := range items {
		in, ok := items[i].Prepared.(*parsed)
		if !ok {
			in = read(&items[i].Entry)
		}
		if in.err != nil {
			troubles[i].add("", in.err.Error())
		}
		for n := range in.frames {
			a := arrival(&items[i], in.frames[n], n, len(in.frames))
			a.DecoderID = in.decoderID
			arrivals, origins = append(arrivals, a), append(origins, i)
		}
	}
	return arrivals, origins, troubles
}

// remark says in the log what is noted of frames that were stored all the same:
// once per batch, with the first as the example, so that a device with a wrong
// clock does not fill the disk.
func (p *Processor) remark(arrivals []iot.Arrival, outcomes []iot.Outcome) {
	count, first := 0, -1
	for n, out := range outcomes {
		if out.Note != "" && out.Refused == "" {
			if count++; first < 0 {
				first = n
			}
		}
	}
	if count > 0 {
		p.logger.Info("frames stored with remarks", "frames", count, "event", arrivals[first].Record,
			"dev_eui", arrivals[first].Frame.Identifier, "remark", intake.Reason(outcomes[first].Note))
	}
}

// tell answers the requests that wait for their frame.
func (p *Processor) tell(items []intake.Item, points [][]iot.Point) {
	for i := range items {
		if name := items[i].Entry.Waiter; name != "" {
			p.waiters.tell(name, points[i])
		}
	}
}

// arrival makes the n-th frame of a post an arrival. Frames of one post are
// told apart by their place in it.
func arrival(it *intake.Item, f decoders.Frame, n, of int) iot.Arrival {
	record := it.ID
	if of > 1 {
		record += "." + strconv.Itoa(n)
	}
	return iot.Arrival{Record: record, Account: it.Entry.Account, ReceivedAt: it.Entry.ReceivedAt, Frame: f}
}

// parse reads the frames of a journalled post.
func parse(e *intake.Entry, query url.Values) ([]decoders.Frame, error) {
	return netserver.Parse(netserver.Post{
		Path: hint(e.Path), Query: query, ContentType: e.ContentType,
		DeviceID: deviceIn(e.Path), Body: e.Body, ReceivedAt: e.ReceivedAt,
	})
}

// trouble collects why a post, or a part of it, was set aside.
type trouble struct {
	device  string
	reasons []string
	early   bool
}

func (t *trouble) add(device, reason string) {
	if t.device == "" {
		t.device = device
	}
	t.reasons = append(t.reasons, reason)
}

func (t *trouble) outcome(device string, out iot.Outcome) {
	t.early = t.early || out.Early
	if out.Refused != "" {
		t.add(device, out.Refused)
	}
	for _, lost := range out.Lost {
		t.add(device, lost)
	}
}

// marks sets those items aside that had trouble.
func marks(items []intake.Item, troubles []trouble) []event.Mark {
	var out []event.Mark
	for i, t := range troubles {
		if len(t.reasons) == 0 {
			continue
		}
		it := &items[i]
		out = append(out, event.Mark{
			ID: it.ID, Seq: it.Seq, State: event.Quarantined, Reason: intake.Reason(strings.Join(t.reasons, "; ")),
			Account: it.Entry.Account, Source: it.Entry.Source, Device: intake.Reason(t.device), Early: t.early,
		})
	}
	return out
}
