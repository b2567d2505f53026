package uplink

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"log/slog"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/netserver"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/iot"
)

// Ingester is the part of iot.Service that the processor uses.
type Ingester interface {
	Ingest(ctx context.Context, arrivals []iot.Arrival) ([]iot.Outcome, error)
}

// Processor converts journalled posts to readings. It implements intake.Processor.
type Processor struct {
	// FindDevice finds a device for its name in descriptions; nil means identifiers only.
	FindDevice func(ctx context.Context, acct relay.AccountID, identifier string) (iot.Device, error)

	iot     Ingester
	waiters *waiters
	logger  *slog.Logger
	seed    maphash.Seed
	names   deviceNames
}

// NewProcessor returns a Processor. A nil logger means slog.Default.
func NewProcessor(i Ingester, logger *slog.Logger) *Processor {
	return &Processor{iot: i, waiters: &waiters{channels: make(map[string]chan answer)}, logger: cmp.Or(logger, slog.Default()), seed: maphash.MakeSeed()}
}

// parsedPost is the content of a journalled post.
type parsedPost struct {
	decoderID string
	frames    []decoders.Frame
	notes     decoders.Notes // on the post itself
	err       error          // of the post or a part of it
}

// readPost parses a journalled post. If sender is empty, readPost detects it from the body.
func readPost(e *intake.Entry, sender netserver.Sender) *parsedPost {
	if e.Source == string(netserver.Submission) {
		frames, err := parseSubmission(e)
		return &parsedPost{frames: frames, err: err}
	}
	query, _ := url.ParseQuery(e.Query) // without the malformed parameters
	frames, err := netserver.Parse(netserver.Post{
		Path: webhookName(e.Path), Query: query, ContentType: e.ContentType, Sender: sender,
		DeviceID: deviceOf(e.Path, query), Body: e.Body, ReceivedAt: e.ReceivedAt,
	})
	content := &parsedPost{decoderID: query.Get("decoder_id"), frames: frames, err: err, notes: unknownParameters(e, query)}
	if len(frames) == 0 && err == nil {
		content.notes.Add("the post has no frames")
	}
	return content
}

// Parse reads the frames of a post. Each frame with a DedupID has a key, so that two posts of the
// same frame are processed in order. Process quarantines posts with an invalid part.
func (p *Processor) Parse(item *intake.Item) (content *parsedPost, keys []uint64, err error) {
	sender := netserver.Sender(item.Entry.Source)
	if item.ProcessNow {
		sender = "" // the entry is processed again, and this version may detect another sender
	}
	content = readPost(&item.Entry, sender)
	for i := range content.frames {
		f := &content.frames[i]
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
	return content, keys, nil
}

// Process ingests the frames of the posts in one batch.
func (p *Processor) Process(ctx context.Context, posts []intake.ParsedItem[*parsedPost]) ([]event.Status, error) {
	arrivals, origins, results := arrivalsOf(posts)
	outcomes, err := p.iot.Ingest(ctx, arrivals)
	if err != nil {
		return nil, err
	}
	points := make([][]iot.Point, len(posts))
	for n, outcome := range outcomes {
		i := origins[n]
		points[i] = append(points[i], outcome.Points...)
		results[i].addOutcome(arrivals[n].Frame.Identifier, outcome)
		results[i].addDuplicate(&arrivals[n], outcome)
	}
	for i := range posts {
		if waiter := posts[i].Entry.Waiter; waiter != "" { // a request waits for the result
			// Reasons for a quarantine and duplicates come first.
			r, notes := &results[i], decoders.Notes(nil)
			notes.Add(r.reasons...)
			notes.Add(r.repeated...)
			if r.deferred {
				notes.Add("not processed yet: " + deferredReason)
			}
			notes.Add(r.notes...)
			p.waiters.notify(waiter, answer{points: points[i], notes: notes})
		}
	}
	p.logNotes(arrivals, outcomes)
	return p.statuses(posts, results), nil
}

// arrivalsOf returns the frames of posts, the index of each frame's post, and a result for
// each post.
func arrivalsOf(posts []intake.ParsedItem[*parsedPost]) (arrivals []iot.Arrival, origins []int, results []postResult) {
	arrivals, origins = make([]iot.Arrival, 0, len(posts)), make([]int, 0, len(posts))
	results = make([]postResult, len(posts))
	for i, item := range posts {
		results[i].notes = item.Content.notes
		if item.Content.err != nil {
			results[i].addReason("", item.Content.err.Error())
		}
		for n := range item.Content.frames {
			a := arrival(item.Item, item.Content.frames[n], n, len(item.Content.frames))
			a.DecoderID, a.DecodeNow, a.SkipRules = item.Content.decoderID, item.ProcessNow, item.SkipRules
			a.WaitForEarlier = item.WaitForEarlier
			arrivals, origins = append(arrivals, a), append(origins, i)
		}
	}
	return arrivals, origins, results
}

// logNotes logs the number of stored frames with notes once per batch, with the first note as an
// example, so that a device with a wrong clock does not fill the disk.
func (p *Processor) logNotes(arrivals []iot.Arrival, outcomes []iot.Outcome) {
	count, example := 0, -1
	for n, outcome := range outcomes {
		if len(outcome.Notes) > 0 && outcome.Refused == "" && arrivals[n].Frame.Kind == decoders.Uplink {
			if count++; example < 0 {
				example = n
			}
		}
	}
	if count > 0 {
		p.logger.Info("frames stored with notes", "frames", count, "event", arrivals[example].RecordID,
			"dev_eui", arrivals[example].Frame.Identifier, "note", outcomes[example].Notes[0])
	}
}

// arrival returns the n-th frame of a post as an arrival. The frames of a post have different record
// ids and times of receipt a nanosecond apart, so that frames without a time do not overwrite each
// other. A replay assigns the same times.
func arrival(item *intake.Item, f decoders.Frame, n, count int) iot.Arrival {
	a := iot.Arrival{Account: item.Entry.Account, ReceivedAt: item.Entry.ReceivedAt, Frame: f, Trace: item.Trace}
	if a.RecordID = RecordOf(item, n, count); count > 1 {
		a.Post = item.ID
		a.ReceivedAt = a.ReceivedAt.Add(time.Duration(n))
	}
	return a
}

// RecordOf returns the record id of the n-th frame of a post: the id of the event if the post has
// one frame, and otherwise the id with the frame's index.
func RecordOf(item *intake.Item, n, count int) string {
	if count > 1 {
		return item.ID + "." + strconv.Itoa(n)
	}
	return item.ID
}

// postResult collects the outcomes of the frames of a post.
type postResult struct {
	device      string
	reasons     []string
	notes       decoders.Notes
	provisional bool
	repeated    []string // notes on duplicate frames, with the ids of earlier events
	deferred    bool
}

func (r *postResult) addReason(device, reason string) {
	if r.device == "" {
		r.device = device
	}
	r.reasons = append(r.reasons, reason)
}

func (r *postResult) addOutcome(device string, outcome iot.Outcome) {
	r.provisional = r.provisional || outcome.Provisional
	r.deferred = r.deferred || outcome.Deferred
	r.notes.Add(outcome.Notes...)
	if outcome.Refused != "" {
		r.addReason(device, outcome.Refused)
	}
	for _, lost := range outcome.Lost {
		r.addReason(device, lost)
	}
}

// addDuplicate adds a note if a frame is a duplicate. Supplements of a frame are not duplicates.
func (r *postResult) addDuplicate(a *iot.Arrival, outcome iot.Outcome) {
	if !outcome.Duplicate || a.Frame.Supplement {
		return
	}
	note := "repeats " + eventOf(outcome.Repeats) + ", dropped"
	if a.Post != "" {
		note = "frame " + strings.TrimPrefix(a.RecordID, a.Post+".") + " " + note
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
const deferredReason = "the account's codecs use more than their share of time or exceed a limit"

// statuses returns the statuses of posts: pending if a frame is deferred, quarantined after an
// error, and done with notes or with the events that the post repeats.
func (p *Processor) statuses(posts []intake.ParsedItem[*parsedPost], results []postResult) []event.Status {
	var statuses []event.Status
	for i, r := range results {
		item := posts[i]
		if r.deferred {
			statuses = append(statuses, item.Status(event.Pending, deferredReason))
			continue
		}
		if len(r.reasons)+len(r.repeated)+len(r.notes) == 0 {
			continue
		}
		status := item.Status(event.Quarantined, intake.ClipReason(strings.Join(r.reasons, "; ")))
		status.Device, status.Provisional, status.Notes = intake.ClipReason(r.device), r.provisional, r.notes
		if len(r.reasons) == 0 {
			status.State = event.Done
		}
		if len(r.repeated) > 0 {
			status.Outcome = intake.ClipReason(strings.Join(r.repeated, "; ") + "; " + describePost(item, func(identifier string) string { return identifier })) // without reading the database
		}
		statuses = append(statuses, status)
	}
	return statuses
}

// unknownParameters returns a note for each unknown parameter of a webhook's URL. The query of
// a post without a body is the sender's data.
func unknownParameters(e *intake.Entry, query url.Values) (notes decoders.Notes) {
	if len(e.Body) == 0 {
		return nil
	}
	known := []string{"decoder_id", "event"}
	if webhookName(e.Path) == "generic" {
		known = append(known, "deviceId")
	}
	if e.Source == string(netserver.ThingPark) {
		known = append(known, "LrnDevEui", "LrnFPort", "LrnInfos", "AS_ID", "Time", "Token")
	}
	var unknown []string
	for name := range query {
		if !slices.Contains(known, name) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	for _, name := range unknown {
		notes.Add(fmt.Sprintf("the URL's parameter %.40q is unknown and is ignored; valid parameters are decoder_id, event and, for the generic webhook, deviceId", name))
	}
	return notes
}
