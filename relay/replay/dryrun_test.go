package replay

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

type fakePost struct {
	event   event.Event
	preview PreviewedPost
}

// fakePosts is a Posts whose clock advances by duration with each post.
type fakePosts struct {
	posts    []fakePost
	duration time.Duration
	now      time.Time
}

func (p *fakePosts) Preview(_ context.Context, _ event.Filter, _ time.Time, limit int, stop func() bool, fn func(*event.Event, *PreviewedPost)) (int, time.Time, error) {
	for i := range p.posts[max(0, len(p.posts)-limit):] {
		if !stop() {
			fn(&p.posts[i].event, &p.posts[i].preview)
			p.now = p.now.Add(p.duration)
		}
	}
	return len(p.posts), time.Time{}, nil
}

func (p *fakePosts) run(t *testing.T, limit int) DryRun {
	t.Helper()
	r, err := Preview(t.Context(), p, event.Filter{}, limit, func() time.Time { return p.now })
	relaytest.NoError(t, err)
	return r
}

// post returns a post that is done, with its previewed state and readings.
func post(id string, state event.State, effects ...iot.Effect) fakePost {
	p := fakePost{event.Event{ID: id, State: event.Done}, PreviewedPost{State: state}}
	for _, e := range effects {
		p.preview.Frames = append(p.preview.Frames, iot.PreviewedFrame{Readings: []iot.Difference{{Effect: e}}})
	}
	return p
}

func TestADryRunCountsAndListsDifferences(t *testing.T) {
	p := &fakePosts{posts: []fakePost{
		post("same", event.Done, iot.Unchanged, iot.Unchanged), post("more", event.Done, iot.Unchanged, iot.Added), post("less", event.Done, iot.Retained),
		post("lost", event.Quarantined), post("new", event.Done, iot.Changed),
	}}
	r := p.run(t, 3)
	relaytest.Equal(t, "the counted and examined events", []int{r.Count, r.Examined}, []int{5, 5})
	relaytest.Equal(t, "the tally of events", r.Events, EventTally{Done: 4, Quarantined: 1, Changed: 4})
	relaytest.Equal(t, "the tally of readings", r.Readings, ReadingTally{Added: 1, Changed: 1, Unchanged: 3, Retained: 1})
	var ids []string
	for _, e := range r.ChangedEvents {
		ids = append(ids, e.ID)
	}
	if !slices.Equal(ids, []string{"more", "less", "lost"}) || !r.More {
		t.Errorf("events %q, more %t; want the first three, and more", ids, r.More)
	}
	if r = p.run(t, 4); len(r.ChangedEvents) != 4 || r.More {
		t.Errorf("%d events, more %t; want 4, and no more", len(r.ChangedEvents), r.More)
	}
}

func TestAnotherReasonIsADifference(t *testing.T) {
	changed := post("u1", event.Quarantined)
	changed.event.State, changed.event.Reason, changed.preview.Reason = event.Quarantined, "no decoder", "no codec"
	r := (&fakePosts{posts: []fakePost{changed}}).run(t, 1)
	relaytest.Equal(t, "the number of events that differ", r.Events.Changed, 1)
}

func TestADryRunEndsAfterItsTimeLimit(t *testing.T) {
	p := &fakePosts{duration: 8 * time.Second}
	for i := range 10 {
		p.posts = append(p.posts, post(fmt.Sprint("u", i), event.Done))
	}
	r := p.run(t, 1)
	relaytest.Equal(t, "the counted and examined events", []int{r.Count, r.Examined}, []int{10, 3})
}
