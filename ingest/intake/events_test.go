package intake

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/relaytest"
)

func list(t *testing.T, r *rig, f event.Filter, below uint64) (events []event.Event) {
	t.Helper()
	err := r.Events(t.Context(), f, below, func(e event.Event, _ uint64) bool {
		events = append(events, e)
		return true
	})
	relaytest.NoError(t, err)
	return events
}

// processed returns a rig with ten processed entries, of which number 3 is quarantined and
// number 5 unrouted, and two pending ones.
func processed(t *testing.T) *rig {
	r := newRig(t, Options{})
	r.p.set(nil, func(it Item) (*event.Status, error) {
		m := event.Status{ID: it.ID, Seq: it.Seq, Account: 7, Source: "tts-v3"}
		switch it.Seq {
		case 3:
			m.State, m.Reason = event.Quarantined, "no Decoder"
		case 5:
			m.State, m.Reason = event.Unrouted, "nobody"
		default:
			return nil, nil
		}
		return &m, nil
	})
	r.accept(10)
	stop := r.run()
	r.settled()
	stop()
	r.accept(2)
	return r
}

func TestEventsAreFound(t *testing.T) {
	r := processed(t)
	future := time.Now().Add(time.Hour)
	cases := []struct {
		name  string
		f     event.Filter
		below uint64
		want  string
	}{
		{"all of them, newest first", event.Filter{}, 0, "12 11 10 9 8 7 6 5 4 3 2 1"},
		{"below a place", event.Filter{}, 4, "3 2 1"},
		{"below the first", event.Filter{}, 1, ""},
		{"those that wait", event.Filter{State: event.Pending}, 0, "12 11"},
		{"the quarantined", event.Filter{State: event.Quarantined}, 0, "3"},
		{"the quarantined below their place", event.Filter{State: event.Quarantined}, 3, ""},
		{"the unrouted", event.Filter{State: event.Unrouted}, 0, "5"},
		{"the done", event.Filter{State: event.Done}, 5, "4 2 1"},
		{"by id, newest first and once each", event.Filter{IDs: []string{"n1-u2", "n1-u9", "n1-u2"}}, 0, "9 2"},
		{"by id below a place", event.Filter{IDs: []string{"n1-u2", "n1-u9"}}, 9, "2"},
		{"ids of another kind, another node and nobody", event.Filter{IDs: []string{"n1-s2", "n2-u2", "n1-u99", "n1-u0", "n1-u-1", "n1-u", "", "n1-u2x", "n1-u2.0"}}, 0, ""},
		{"an id whose state is another", event.Filter{IDs: []string{"n1-u2"}, State: event.Quarantined}, 0, ""},
		{"by the source in the status", event.Filter{Source: "tts-v3"}, 0, "5 3"},
		{"another account's", event.Filter{Account: 8}, 0, ""},
		{"by the device in the path", event.Filter{Device: "TANK 9"}, 0, "10"},
		{"by a part of the body", event.Filter{Query: `"N":0}`}, 0, "11 1"},
		{"by a part of the reason", event.Filter{Query: "decoder"}, 0, "3"},
		{"by a part of the id", event.Filter{Query: "n1-u1"}, 0, "12 11 10 1"},
		{"from a time to come", event.Filter{From: future}, 0, ""},
		{"from a time to come, marked", event.Filter{From: future, State: event.Quarantined}, 0, ""},
		{"up to a time to come", event.Filter{To: future}, 3, "2 1"},
		{"up to a time long gone", event.Filter{To: future.Add(-24 * time.Hour)}, 0, ""},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, e := range list(t, r, tc.f, tc.below) {
				got = append(got, strings.TrimPrefix(e.ID, "n1-u"))
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestAnEventShowsItsOutcome(t *testing.T) {
	r := processed(t)
	e := list(t, r, event.Filter{IDs: []string{"n1-u3"}}, 0)[0]
	if e.ReceivedAt.IsZero() {
		t.Error("the event has no time of receipt")
	}
	e.ReceivedAt = time.Time{}
	relaytest.Equal(t, "the event", e, event.Event{
		ID: "n1-u3", Kind: event.Uplink, Account: 7, Source: "tts-v3",
		State: event.Quarantined, Reason: "no Decoder", Raw: []byte(`{"n":2}`),
	})
	get := Entry{Account: 1, Source: "kannel", Query: "from=1&to=2"}
	if _, err := r.Accept(t.Context(), &get); err != nil {
		t.Fatal(err)
	}
	if e := list(t, r, event.Filter{IDs: []string{"n1-u13"}}, 0)[0]; string(e.Raw) != "from=1&to=2" {
		t.Errorf("a request without a body shows %q", e.Raw)
	}
}

func TestAReplayClearsTheStatusesOfEntriesThatSucceed(t *testing.T) {
	r := processed(t)
	n, _, err := r.Batches(t.Context(), event.Filter{State: event.Quarantined}, time.Time{}, 0, nil)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of events that a dry run counts", n, 1)
	relaytest.Equal(t, "the number of statuses after a dry run", len(r.statuses.reasons()), 2)
	r.p.set(nil, func(it Item) (*event.Status, error) {
		switch it.Seq {
		case 5:
			return &event.Status{ID: it.ID, Seq: it.Seq, State: event.Quarantined, Reason: "still not"}, nil
		case 7:
			panic("now")
		}
		return nil, nil
	})
	n, err = r.Replay(t.Context(), event.Filter{}, false)
	want := map[uint64]string{5: "quarantined: still not", 7: "quarantined: internal error: now"}
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of events replayed", n, 12)
	relaytest.Equal(t, "the reasons", r.statuses.reasons(), want)
	relaytest.Equal(t, "how often the first was processed", r.p.ended(1), 2)
	relaytest.Equal(t, "how often the third was processed", r.p.ended(3), 2)
}

func TestAReplayKeepsTheOrderOfArrival(t *testing.T) {
	r := processed(t)
	r.p.mu.Lock()
	r.p.order = nil
	r.p.mu.Unlock()
	n, err := r.Replay(t.Context(), event.Filter{}, false)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of events replayed", n, 12)
	if !slices.IsSorted(r.p.order) {
		t.Errorf("replayed in the order %v", r.p.order)
	}
}

func TestAReplayEndsWhenABackEndIsDown(t *testing.T) {
	r := processed(t)
	r.p.set(func(context.Context, []Item) error { return down() }, nil)
	n, err := r.Replay(t.Context(), event.Filter{}, false)
	relaytest.Equal(t, "the kind of error", relay.KindOf(err), relay.KindUnavailable)
	relaytest.Equal(t, "the number of events replayed", n, 0)
	relaytest.Equal(t, "the number of statuses", len(r.statuses.reasons()), 2)
}

func TestStatusesAreDeletedWithTheirRecords(t *testing.T) {
	r := processed(t)
	relaytest.NoError(t, r.statuses.Set(t.Context(), event.Uplink, []event.Status{{Seq: 0, State: event.Quarantined}}))
	relaytest.NoError(t, r.Trim(t.Context()))
	if got := r.statuses.reasons(); len(got) != 2 {
		t.Errorf("%v", got)
	}
}

func TestReasonsAreBounded(t *testing.T) {
	long := ClipReason(strings.Repeat("é", 5000))
	if len(long) > maxReason+10 {
		t.Errorf("%d bytes, want %d at most", len(long), maxReason+10)
	}
	if !strings.HasSuffix(long, "…") {
		t.Error("the shortened reason does not end in an ellipsis")
	}
	if got := ClipReason("short"); got != "short" {
		t.Error(got)
	}
	if !slices.Equal([]byte(ClipReason("\xff")), []byte("\uFFFD")) {
		t.Error("no text")
	}
}

// A search whose time is over examines one record, so that repeated searches reach the end.
func TestASearchThatStopsGoesOn(t *testing.T) {
	r := processed(t)
	for _, tc := range []struct {
		name string
		s    Search
		want string
	}{
		{"all", Search{}, "12 11 10 9 8 7 6 5 4 3 2 1"},
		{"those done", Search{Filter: event.Filter{State: event.Done}}, "10 9 8 7 6 4 2 1"},
		{"the quarantined", Search{Filter: event.Filter{State: event.Quarantined}}, "3"},
		{"without states", Search{JournalOnly: true}, "12 11 10 9 8 7 6 5 4 3 2 1"},
		{"nothing", Search{Filter: event.Filter{Query: "absent"}}, ""},
	} {
		var found []string
		tc.s.Until = time.Now().Add(-time.Second)
		for calls := 0; ; calls++ {
			reached, err := r.Search(t.Context(), tc.s, func(e event.Event, it *Item) bool {
				found = append(found, strconv.FormatUint(it.Seq, 10))
				return true
			})
			relaytest.NoError(t, err)
			if reached.Seq == 0 {
				break
			}
			if calls > 12 || reached.Time.IsZero() {
				t.Fatalf("%s: reached %v", tc.name, reached)
			}
			tc.s.Below = reached.Seq
		}
		relaytest.Equal(t, tc.name, strings.Join(found, " "), tc.want)
	}
	if n, reached, err := r.Count(t.Context(), event.Filter{}, time.Now().Add(-time.Second)); n != 1 || reached.Seq != 12 || err != nil {
		t.Errorf("counted %d back to %v, %v", n, reached, err)
	}
}
