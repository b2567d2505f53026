package uplink

import (
	"cmp"
	"context"
	"hash/maphash"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/netserver"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/iot"
)

// Ingester is the part of iot.Service that the processor uses.
type Ingester interface {
	Ingest(ctx context.Context, arrivals []iot.Arrival) ([]iot.Outcome, error)
}

// Processor converts journalled posts to readings. It implements intake.Orderly.
type Processor struct {
	iot     Ingester
	waiters *waiters
	logger  *slog.Logger
	seed    maphash.Seed
}

// NewProcessor returns a Processor. A nil logger means slog.Default.
func NewProcessor(i Ingester, logger *slog.Logger) *Processor {
	return &Processor{iot: i, waiters: newWaiters(), logger: cmp.Or(logger, slog.Default()), seed: maphash.MakeSeed()}
}

// parsed is the parsed content of a post.
type parsed struct {
	decoderID string
	frames    []decoders.Frame
	notes     decoders.Notes // about the post itself
	err       error
}

// parsePost parses a journalled post. An empty sender is detected from the body.
func parsePost(e *intake.Entry, query url.Values, sender netserver.Sender) *parsed {
	if e.Source == string(netserver.Submission) {
		frames, err := submitted(e)
		return &parsed{frames: frames, err: err}
	}
	frames, err := netserver.Parse(netserver.Post{
		Path: webhookName(e.Path), Query: query, ContentType: e.ContentType, Sender: sender,
		DeviceID: deviceOf(e.Path, query), Body: e.Body, ReceivedAt: e.ReceivedAt,
	})
	in := &parsed{decoderID: query.Get("decoder_id"), frames: frames, err: err, notes: unknownParameters(e, query)}
	if len(frames) == 0 && err == nil {
		in.notes.Add("the post has no frame that is read")
	}
	return in
}

// Keys returns a key per frame, so that two posts of the same frame are processed in
// order. It keeps the parsed post for Process.
func (p *Processor) Keys(it *intake.Item, keys []uint64) []uint64 {
	in := parsePost(&it.Entry, parseQuery(it.Entry.Query), netserver.Sender(it.Entry.Source))
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
func (p *Processor) Process(ctx context.Context, items []intake.Item) ([]event.Status, error) {
	arrivals, origins, results := parsePosts(items)
	outcomes, err := p.iot.Ingest(ctx, arrivals)
	if err != nil {
		return nil, err
	}
	points := make([][]iot.Point, len(items))
	for n, out := range outcomes {
		at := origins[n]
		points[at] = append(points[at], out.Points...)
		results[at].outcome(arrivals[n].Frame.Identifier, out)
		results[at].addDuplicate(&arrivals[n], out)
	}
	p.notify(items, points, results)
	p.logNotes(arrivals, outcomes)
	return p.statuses(items, results), nil
}

// parsePosts parses posts. It returns their frames, the index of each frame's item,
// and the errors of each item.
func parsePosts(items []intake.Item) (arrivals []iot.Arrival, origins []int, results []postResult) {
	arrivals, origins = make([]iot.Arrival, 0, len(items)), make([]int, 0, len(items))
	results = make([]postResult, len(items))
	for i := range items {
		in, ok := items[i].Prepared.(*parsed)
		if !ok {
			in = parsePost(&items[i].Entry, parseQuery(items[i].Entry.Query), "") // this version may detect another sender
		}
		results[i].notes = in.notes
		if in.err != nil {
			results[i].add("", in.err.Error())
		}
		for n := range in.frames {
			a := arrival(&items[i], in.frames[n], n, len(in.frames))
			a.DecoderID, a.NoDefer, a.NoRules = in.decoderID, items[i].NoDefer, items[i].NoRules
			a.WaitForEarlier = items[i].WaitForEarlier
			arrivals, origins = append(arrivals, a), append(origins, i)
		}
	}
	return arrivals, origins, results
}

// logNotes logs the notes of frames that were stored: once per batch, with the first
// note as an example, so that a device with a wrong clock does not fill the disk.
func (p *Processor) logNotes(arrivals []iot.Arrival, outcomes []iot.Outcome) {
	count, first := 0, -1
	for n, out := range outcomes {
		if len(out.Notes) > 0 && out.Refused == "" && arrivals[n].Frame.Kind == decoders.Uplink {
			if count++; first < 0 {
				first = n
			}
		}
	}
	if count > 0 {
		p.logger.Info("frames stored with notes", "frames", count, "event", arrivals[first].Record,
			"dev_eui", arrivals[first].Frame.Identifier, "note", outcomes[first].Notes[0])
	}
}

// notify sends the results of posts to the requests that wait for them.
func (p *Processor) notify(items []intake.Item, points [][]iot.Point, results []postResult) {
	for i := range items {
		if name := items[i].Entry.Waiter; name != "" {
			p.waiters.notify(name, answer{points: points[i], notes: results[i].answerNotes()})
		}
	}
}

// arrival returns the n-th frame of a post as an arrival. Frames of one post get
// distinct record ids and are received a nanosecond apart, so that frames without a
// time do not overwrite each other, and a replay assigns the same times.
func arrival(it *intake.Item, f decoders.Frame, n, of int) iot.Arrival {
	a := iot.Arrival{Account: it.Entry.Account, ReceivedAt: it.Entry.ReceivedAt, Frame: f, Trace: it.Trace}
	if a.Record = RecordOf(it, n, of); of > 1 {
		a.Post = it.ID
		a.ReceivedAt = a.ReceivedAt.Add(time.Duration(n))
	}
	return a
}

// RecordOf is the record id of the n-th frame of a post: its event's, if it is the
// only one.
func RecordOf(it *intake.Item, n, of int) string {
	if of > 1 {
		return it.ID + "." + strconv.Itoa(n)
	}
	return it.ID
}

// postResult collects why a post, or a part of it, was quarantined or dropped.
type postResult struct {
	device      string
	reasons     []string
	notes       decoders.Notes
	provisional bool
	repeated    []string // the events that its frames repeat
	deferred    bool
}

func (r *postResult) add(device, reason string) {
	if r.device == "" {
		r.device = device
	}
	r.reasons = append(r.reasons, reason)
}

func (r *postResult) outcome(device string, out iot.Outcome) {
	r.provisional = r.provisional || out.Provisional
	r.deferred = r.deferred || out.Deferred
	r.notes.Add(out.Notes...)
	if out.Refused != "" {
		r.add(device, out.Refused)
	}
	for _, lost := range out.Lost {
		r.add(device, lost)
	}
}

// answerNotes returns what the sender of the post is told: why it, or a part of it, is
// quarantined or repeats another, followed by the notes.
func (r *postResult) answerNotes() (notes decoders.Notes) {
	notes.Add(r.reasons...)
	notes.Add(r.repeated...)
	if r.deferred {
		notes.Add(deferredReason)
	}
	notes.Add(r.notes...)
	return notes
}

// addDuplicate notes that a frame was dropped as a duplicate of an earlier event.
// Supplements of a frame are not duplicates.
func (r *postResult) addDuplicate(a *iot.Arrival, out iot.Outcome) {
	if !out.Duplicate || a.Frame.Supplement {
		return
	}
	note := "repeats " + eventOf(out.Repeats) + ", dropped"
	if a.Post != "" {
		note = "frame " + strings.TrimPrefix(a.Record, a.Post+".") + " " + note
	}
	r.repeated = append(r.repeated, note)
}

// eventOf returns the event id of a record, which may be one of several frames.
func eventOf(record string) string {
	sequence := strings.LastIndexByte(record, '-') + 1
	event, _, _ := strings.Cut(record[sequence:], ".")
	return record[:sequence] + event
}

// deferredReason is the reason of a pending event whose frames were deferred.
const deferredReason = "waits for its turn: the account's codecs need more time than is their share, or exceed a limit"

// statuses defers items with a deferred frame, quarantines items with errors, and
// returns what is noted about the others: notes, and which events they repeat.
func (p *Processor) statuses(items []intake.Item, results []postResult) []event.Status {
	var out []event.Status
	for i, r := range results {
		it := &items[i]
		if r.deferred {
			out = append(out, it.Status(event.Pending, deferredReason))
			continue
		}
		if len(r.reasons)+len(r.repeated)+len(r.notes) == 0 {
			continue
		}
		m := it.Status(event.Quarantined, intake.ClipReason(strings.Join(r.reasons, "; ")))
		m.Device, m.Provisional, m.Notes = intake.ClipReason(r.device), r.provisional, r.notes
		if len(r.reasons) == 0 {
			m.State = event.Done
		}
		if len(r.repeated) > 0 {
			m.Outcome = intake.ClipReason(strings.Join(r.repeated, "; ") + "; " + p.Describe(&it.Entry))
		}
		out = append(out, m)
	}
	return out
}
