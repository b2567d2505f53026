// Package replay previews the effect of processing stored events again.
package replay

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/iot"
)

const (
	// maxExamined is the largest number of events that a dry run examines: the newest of the
	// selected ones.
	maxExamined = 10_000
	// maxSelecting limits the time for selecting events, maxDryRun the time for the whole dry
	// run: the request times out after half a minute.
	maxSelecting = 10 * time.Second
	maxDryRun    = 20 * time.Second
)

// PreviewedPost is the expected result of processing a post again.
type PreviewedPost struct {
	State  event.State // done or quarantined
	Reason string      // why it would be quarantined
	Frames []iot.PreviewedFrame
}

// Posts previews the effect of processing posts again.
type Posts interface {
	// Preview calls fn with the posts that a filter selects, in the order of arrival, and
	// returns their number. It searches backwards until the time until; backTo is the oldest
	// time that it reached, zero for the beginning. It calls fn with the newest posts only if
	// there are more than limit, and stops when stop returns true.
	Preview(ctx context.Context, f event.Filter, until time.Time, limit int, stop func() bool, fn func(*event.Event, *PreviewedPost)) (count int, backTo time.Time, err error)
}

// DryRun summarizes the changes that a replay would make.
type DryRun struct {
	Count int // the number of selected events
	// BackTo is the time of the oldest event that was searched; zero for the beginning.
	BackTo time.Time
	// Examined is the number of examined events: at most 10,000 in at most 20 seconds.
	Examined int
	Events   EventTally
	Readings ReadingTally
	Differ   []PreviewedEvent // the first events that differ, in the order of arrival
	More     bool             // more events differ
}

// EventTally counts the examined events by their expected state.
type EventTally struct {
	Done, Quarantined int
	Differ            int // in state, reason or a reading
}

// ReadingTally counts readings by iot.Effect.
type ReadingTally struct{ Added, Changed, Unchanged, Stays int }

// PreviewedEvent is an event and its expected result.
type PreviewedEvent struct {
	Event   event.Event
	Preview PreviewedPost
}

// Preview returns the changes that replaying the posts selected by a filter
// would make. It lists at most limit of the events that differ.
func Preview(ctx context.Context, posts Posts, f event.Filter, limit int, now func() time.Time) (r DryRun, err error) {
	deadline := now().Add(maxDryRun)
	stop := func() bool { return now().After(deadline) } // Examined shows that it stopped early
	r.Count, r.BackTo, err = posts.Preview(ctx, f, time.Now().Add(maxSelecting), maxExamined, stop, func(e *event.Event, post *PreviewedPost) {
		r.add(e, post, limit)
	})
	return r, err
}

// add counts an event and, up to the limit, lists it if it differs.
func (r *DryRun) add(e *event.Event, post *PreviewedPost, limit int) {
	r.Examined++
	if post.State == event.Done {
		r.Events.Done++
	} else {
		r.Events.Quarantined++
	}
	differs := e.State != post.State || e.Reason != post.Reason
	for i := range post.Frames {
		for _, d := range post.Frames[i].Readings {
			r.Readings.count(d.Effect)
		}
		differs = differs || iot.Changes(post.Frames[i].Readings)
	}
	if !differs {
		return
	}
	r.Events.Differ++
	if len(r.Differ) == limit {
		r.More = true
		return
	}
	r.Differ = append(r.Differ, PreviewedEvent{*e, *post})
}

func (t *ReadingTally) count(e iot.Effect) {
	switch e {
	case iot.Added:
		t.Added++
	case iot.Changed:
		t.Changed++
	case iot.Unchanged:
		t.Unchanged++
	case iot.Stays:
		t.Stays++
	}
}
