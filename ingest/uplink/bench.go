package uplink

import (
	"context"
	"slices"
	"strings"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/iot"
)

// Bench looks at journalled posts and stores nothing: what a replay would
// change, and what a device has sent.
type Bench struct {
	intake *intake.Intake
	iot    *iot.Service
}

// NewBench returns a bench over the intake of uplinks.
func NewBench(in *intake.Intake, s *iot.Service) *Bench { return &Bench{intake: in, iot: s} }

// Foretold is what processing a post again would make of it.
type Foretold struct {
	State  event.State // done or quarantined
	Reason string      // why it would be set aside
	Frames []iot.Foretold
}

// Rehearsal goes through posts in the order of their arrival. It is for one
// goroutine.
type Rehearsal struct{ frames *iot.Rehearsal }

// Rehearse begins a rehearsal.
func (b *Bench) Rehearse() *Rehearsal { return &Rehearsal{b.iot.Rehearse()} }

// Posts tells what Process would do with posts.
func (r *Rehearsal) Posts(ctx context.Context, items []intake.Item) ([]Foretold, error) {
	arrivals, origins, troubles := gather(items)
	foretold, err := r.frames.Frames(ctx, arrivals)
	if err != nil {
		return nil, err
	}
	out := make([]Foretold, len(items))
	for n, f := range foretold {
		at := origins[n]
		out[at].Frames = append(out[at].Frames, f)
		troubles[at].outcome(f.Identifier, f.Outcome)
	}
	for i := range out {
		out[i].State = event.Done
		if reasons := troubles[i].reasons; len(reasons) > 0 {
			out[i].State, out[i].Reason = event.Quarantined, intake.Reason(strings.Join(reasons, "; "))
		}
	}
	return out, nil
}

// maxSearched is how many posts are looked through for those of a device.
const maxSearched = 20_000

// Recent returns the last frames of a device that carry data, newest first:
// from the journal of this gateway, and where that has fewer, from the raw
// frames that were kept of the device.
func (b *Bench) Recent(ctx context.Context, acct account.ID, d iot.Device, most int) ([]iot.Arrival, error) {
	var out []iot.Arrival
	seen := make(map[string]bool)
	left := maxSearched
	err := b.intake.Items(ctx, intake.Filter{Account: acct}, 0, func(_ event.Event, it *intake.Item) bool {
		for _, a := range arrivalsOf(it, d.Identifier) {
			if id := a.Frame.DedupID; id == "" || !seen[id] {
				seen[id] = true
				out = append(out, a)
			}
		}
		left--
		return len(out) < most && left > 0
	})
	if err != nil {
		return nil, err
	}
	if len(out) < most {
		if out, err = b.kept(ctx, acct, d, out); err != nil {
			return nil, err
		}
	}
	return out[:min(most, len(out))], nil
}

// arrivalsOf are the uplinks of a device in a post.
func arrivalsOf(it *intake.Item, identifier string) []iot.Arrival {
	in := read(&it.Entry)
	var out []iot.Arrival
	for n, f := range in.frames {
		if id, _ := iot.NormalizeIdentifier(f.Identifier); id == identifier && f.Kind == decoders.Uplink {
			out = append(out, arrival(it, f, n, len(in.frames)))
		}
	}
	slices.Reverse(out)
	return out
}

// kept adds the raw frames kept of a device that are older than those at hand.
func (b *Bench) kept(ctx context.Context, acct account.ID, d iot.Device, have []iot.Arrival) ([]iot.Arrival, error) {
	frames, err := b.iot.Frames(ctx, acct, d.ID)
	if err != nil {
		return nil, err
	}
	for _, r := range frames {
		a, ok := r.Arrival(acct)
		known := slices.ContainsFunc(have, func(h iot.Arrival) bool { return h.Record == r.ID })
		if ok && !known && a.Frame.Kind == decoders.Uplink {
			have = append(have, a)
		}
	}
	slices.SortStableFunc(have, func(x, y iot.Arrival) int { return y.ReceivedAt.Compare(x.ReceivedAt) })
	return have, nil
}
