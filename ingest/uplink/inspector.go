package uplink

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/replay"
)

// Inspector examines journalled posts and stores nothing: it previews replays and lists recent
// frames of a device.
type Inspector struct {
	intake *intake.Intake
	iot    *iot.Service
}

// NewInspector returns an inspector of the posts of an intake.
func NewInspector(in *intake.Intake, s *iot.Service) *Inspector {
	return &Inspector{intake: in, iot: s}
}

// Preview previews posts in order of arrival. Not safe for concurrent use.
type Preview struct{ frames *iot.Preview }

// NewPreview returns an empty preview.
func (i *Inspector) NewPreview() *Preview { return &Preview{i.iot.NewPreview()} }

// Posts returns the expected results of processing posts.
func (p *Preview) Posts(ctx context.Context, items []intake.Item) ([]replay.PreviewedPost, error) {
	posts := make([]intake.ParsedItem[*parsedPost], len(items))
	for i := range items {
		posts[i] = intake.ParsedItem[*parsedPost]{Item: &items[i], Content: readPost(&items[i].Entry, "")} // detects the sender, as a replay does
	}
	arrivals, origins, results := arrivalsOf(posts)
	previews, err := p.frames.Frames(ctx, arrivals)
	if err != nil {
		return nil, err
	}
	previewed := make([]replay.PreviewedPost, len(items))
	for n, f := range previews {
		i := origins[n]
		previewed[i].Frames = append(previewed[i].Frames, f)
		results[i].addOutcome(f.Identifier, f.Outcome)
	}
	for n := range previewed {
		previewed[n].State = event.Done
		if reasons := results[n].reasons; len(reasons) > 0 {
			previewed[n].State, previewed[n].Reason = event.Quarantined, intake.ClipReason(strings.Join(reasons, "; "))
		}
	}
	return previewed, nil
}

// Preview calls fn with the expected results of replaying the posts that a filter selects. It
// implements replay.Posts.
func (i *Inspector) Preview(ctx context.Context, f event.Filter, until time.Time, limit int, stop func() bool, fn func(*event.Event, *replay.PreviewedPost)) (int, time.Time, error) {
	preview := i.NewPreview()
	count, reached, err := i.intake.Batches(ctx, f, until, limit, func(sel intake.Selection) error {
		if stop() {
			return nil
		}
		previews, err := preview.Posts(ctx, sel.Items)
		if err != nil {
			return err
		}
		for n := range previews {
			fn(&sel.Events[n], &previews[n])
		}
		return nil
	})
	return count, reached.Time, err
}

// Frames returns the frames of a journalled post with the expected results of processing it now.
func (i *Inspector) Frames(ctx context.Context, item *intake.Item) ([]iot.PreviewedFrame, error) {
	previews, err := i.NewPreview().Posts(ctx, []intake.Item{*item})
	if err != nil {
		return nil, err
	}
	return previews[0].Frames, nil
}

// The limits of a search for frames of a device: the number of posts and the duration.
const (
	maxScanned  = 20_000
	maxScanTime = 5 * time.Second
)

// Recent returns the last uplinks of a device, newest first, from the journal of this gateway. If
// the journal has fewer than limit, Recent adds logged raw frames of the device.
func (i *Inspector) Recent(ctx context.Context, acct relay.AccountID, d iot.Device, limit int) ([]iot.Arrival, error) {
	// 1. Search posts that contain the stored form of the identifier. If there are none, the network
	// server may use another form, so parse all posts.
	arrivals, err := i.search(ctx, event.Filter{Account: acct, Device: d.Identifier}, d.Identifier, limit)
	if err == nil && len(arrivals) == 0 {
		arrivals, err = i.search(ctx, event.Filter{Account: acct}, d.Identifier, limit)
	}
	if err != nil || len(arrivals) == limit {
		return arrivals, err
	}
	// 2. Add frames of the frame log.
	frames, err := i.iot.Frames(ctx, acct, d.ID)
	if err != nil {
		return nil, err
	}
	for _, r := range frames {
		a, ok := r.Arrival(acct)
		isKnown := slices.ContainsFunc(arrivals, func(known iot.Arrival) bool { return known.RecordID == r.ID })
		if ok && !isKnown && a.Frame.Kind == decoders.Uplink {
			arrivals = append(arrivals, a)
		}
	}
	slices.SortStableFunc(arrivals, func(x, y iot.Arrival) int { return y.ReceivedAt.Compare(x.ReceivedAt) })
	return arrivals[:min(limit, len(arrivals))], nil
}

// search returns up to limit uplinks of a device from the last posts that a filter selects,
// newest first.
func (i *Inspector) search(ctx context.Context, f event.Filter, identifier string, limit int) ([]iot.Arrival, error) {
	var arrivals []iot.Arrival
	search := intake.Search{Filter: f, Until: time.Now().Add(maxScanTime), MaxExamined: maxScanned}
	_, err := i.intake.Search(ctx, search, func(_ event.Event, item *intake.Item) bool {
		frames := readPost(&item.Entry, "").frames
		for n, f := range slices.Backward(frames) {
			if id, _ := iot.NormalizeIdentifier(f.Identifier); id != identifier || f.Kind != decoders.Uplink {
				continue
			}
			a := arrival(item, f, n, len(frames))
			if !slices.ContainsFunc(arrivals, func(known iot.Arrival) bool { return a.Repeats(&known) }) {
				arrivals = append(arrivals, a)
			}
		}
		return len(arrivals) < limit
	})
	return arrivals[:min(limit, len(arrivals))], err
}
