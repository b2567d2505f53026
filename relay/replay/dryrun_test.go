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

// fakePosts gives posts in batches of one, each of which takes some time.
type fakePosts struct {
	posts []PreviewedEvent
	takes time.Duration
	now   time.Time
}

func (p *fakePosts) Preview(_ context.Context, _ event.Filter, _ time.Time, most int, stop func() bool, fn func(*event.Event, *PreviewedPost)) (int, time.Time, error) {
	for i := range p.posts[max(0, len(p.posts)-most):] {
		if !stop() {
			fn(&p.posts[i].Event, &p.posts[i].Preview)
			p.now = p.now.Add(p.takes)
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

// post is an event that is done and would be in a state, with readings.
func post(id string, state event.State, effects ...iot.Effect) PreviewedEvent {
	one := PreviewedEvent{Event: event.Event{ID: id, State: event.Done}, Preview: PreviewedPost{State: state}}
	for _, e := range effects {
		one.Preview.Frames = append(one.Preview.Frames, iot.PreviewedFrame{Readings: []iot.Difference{{Effect: e}}})
	}
	return one
}

func TestADryRunCountsAndListsWhatDiffers(t *testing.T) {
	p := &fakePosts{posts: []PreviewedEvent{
		post("same", event.Done, iot.Unchanged, iot.Unchanged), post("more", event.Done, iot.Unchanged, iot.Added), post("less", event.Done, iot.Stays),
		post("lost", event.Quarantined), post("new", event.Done, iot.Changed),
	}}
	r := p.run(t, 3)
	relaytest.Equal(t, "the counted and examined events", []int{r.Count, r.Examined}, []int{5, 5})
	relaytest.Equal(t, "the tally of events", r.Events, EventTally{Done: 4, Quarantined: 1, Differ: 4})
	relaytest.Equal(t, "the tally of readings", r.Readings, ReadingTally{Added: 1, Changed: 1, Unchanged: 3, Stays: 1})
	var ids []string
	for _, e := range r.Differ {
		ids = append(ids, e.Event.ID)
	}
	if !slices.Equal(ids, []string{"more", "less", "lost"}) || !r.More {
		t.Errorf("%q, more: %t", ids, r.More)
	}
	if r = p.run(t, 4); len(r.Differ) != 4 || r.More {
		t.Errorf("%d of 4, more: %t", len(r.Differ), r.More)
	}
}

func TestAReasonThatDiffersIsADifference(t *testing.T) {
	was := post("u1", event.Quarantined)
	was.Event.State, was.Event.Reason, was.Preview.Reason = event.Quarantined, "no decoder", "no codec"
	r := (&fakePosts{posts: []PreviewedEvent{was}}).run(t, 1)
	relaytest.Equal(t, "the number of events that differ", r.Events.Differ, 1)
}

func TestADryRunEndsInTime(t *testing.T) {
	p := &fakePosts{takes: 8 * time.Second}
	for i := range 10 {
		p.posts = append(p.posts, post(fmt.Sprint("u", i), event.Done))
	}
	r := p.run(t, 1)
	relaytest.Equal(t, "the counted and examined events", []int{r.Count, r.Examined}, []int{10, 3})
}
