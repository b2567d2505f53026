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

func listEvents(t *testing.T, r *rig, f event.Filter, limitSeq uint64) (events []event.Event) {
	t.Helper()
	err := r.Events(t.Context(), f, limitSeq, func(e event.Event, _ uint64) bool {
		events = append(events, e)
		return true
	})
	relaytest.NoError(t, err)
	return events
}

// newProcessedRig returns a rig with ten processed entries, of which entry 3 is quarantined and
// entry 5 unrouted, and two pending entries.
func newProcessedRig(t *testing.T) *rig {
	r := newRig(t, Options{})
	r.p.setHooks(nil, func(item Item) (*event.Status, error) {
		status := event.Status{ID: item.ID, Seq: item.Seq, Account: 7, Source: "tts-v3"}
		switch item.Seq {
		case 3:
			status.State, status.Reason = event.Quarantined, "no Decoder"
		case 5:
			status.State, status.Reason = event.Unrouted, "nobody"
		default:
			return nil, nil
		}
		return &status, nil
	})
	r.accept(10)
	stop := r.run()
	r.waitProcessed()
	stop()
	r.accept(2)
	return r
}

func TestFiltersSelectEvents(t *testing.T) {
	r := newProcessedRig(t)
	future := time.Now().Add(time.Hour)
	cases := []struct {
		name     string
		f        event.Filter
		limitSeq uint64
		want     string
	}{
		{"no filter", event.Filter{}, 0, "12 11 10 9 8 7 6 5 4 3 2 1"},
		{"below a sequence", event.Filter{}, 4, "3 2 1"},
		{"below the first sequence", event.Filter{}, 1, ""},
		{"pending events", event.Filter{State: event.Pending}, 0, "12 11"},
		{"quarantined events", event.Filter{State: event.Quarantined}, 0, "3"},
		{"quarantined events below a sequence", event.Filter{State: event.Quarantined}, 3, ""},
		{"unrouted events", event.Filter{State: event.Unrouted}, 0, "5"},
		{"processed events", event.Filter{State: event.Done}, 5, "4 2 1"},
		{"a repeated id", event.Filter{IDs: []string{"n1-u2", "n1-u9", "n1-u2"}}, 0, "9 2"},
		{"ids below a sequence", event.Filter{IDs: []string{"n1-u2", "n1-u9"}}, 9, "2"},
		{"unknown ids and ids of another kind or node", event.Filter{IDs: []string{"n1-s2", "n2-u2", "n1-u99", "n1-u0", "n1-u-1", "n1-u", "", "n1-u2x", "n1-u2.0"}}, 0, ""},
		{"an id of an event with another state", event.Filter{IDs: []string{"n1-u2"}, State: event.Quarantined}, 0, ""},
		{"a source in the status", event.Filter{Source: "tts-v3"}, 0, "5 3"},
		{"another account", event.Filter{Account: 8}, 0, ""},
		{"a device in the path", event.Filter{Device: "TANK 9"}, 0, "10"},
		{"a part of the body", event.Filter{Query: `"N":0}`}, 0, "11 1"},
		{"a part of the reason", event.Filter{Query: "decoder"}, 0, "3"},
		{"a part of the id", event.Filter{Query: "n1-u1"}, 0, "12 11 10 1"},
		{"from a future time", event.Filter{From: future}, 0, ""},
		{"quarantined events from a future time", event.Filter{From: future, State: event.Quarantined}, 0, ""},
		{"up to a future time", event.Filter{To: future}, 3, "2 1"},
		{"up to a past time", event.Filter{To: future.Add(-24 * time.Hour)}, 0, ""},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, e := range listEvents(t, r, tc.f, tc.limitSeq) {
				got = append(got, strings.TrimPrefix(e.ID, "n1-u"))
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("events = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestAnEventHasItsStatusAndRequest(t *testing.T) {
	r := newProcessedRig(t)
	e := listEvents(t, r, event.Filter{IDs: []string{"n1-u3"}}, 0)[0]
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
	if e := listEvents(t, r, event.Filter{IDs: []string{"n1-u13"}}, 0)[0]; string(e.Raw) != "from=1&to=2" {
		t.Errorf("raw data of a request without a body = %q, want its query", e.Raw)
	}
}

func TestAReplayClearsTheStatusesOfEntriesThatSucceed(t *testing.T) {
	r := newProcessedRig(t)
	n, _, err := r.Batches(t.Context(), event.Filter{State: event.Quarantined}, time.Time{}, 0, nil)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of events in a dry run", n, 1)
	relaytest.Equal(t, "the number of statuses after a dry run", len(r.statuses.reasons()), 2)
	r.p.setHooks(nil, func(item Item) (*event.Status, error) {
		switch item.Seq {
		case 5:
			return &event.Status{ID: item.ID, Seq: item.Seq, State: event.Quarantined, Reason: "no SIM"}, nil
		case 7:
			panic("poison")
		}
		return nil, nil
	})
	n, err = r.Replay(t.Context(), event.Filter{}, false)
	want := map[uint64]string{5: "quarantined: no SIM", 7: "quarantined: internal error: poison"}
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of replayed events", n, 12)
	relaytest.Equal(t, "the reasons", r.statuses.reasons(), want)
	relaytest.Equal(t, "the number of times entry 1 was processed", r.p.processedCount(1), 2)
	relaytest.Equal(t, "the number of times entry 3 was processed", r.p.processedCount(3), 2)
}

func TestAReplayKeepsTheOrderOfArrival(t *testing.T) {
	r := newProcessedRig(t)
	r.p.mu.Lock()
	r.p.order = nil
	r.p.mu.Unlock()
	n, err := r.Replay(t.Context(), event.Filter{}, false)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of replayed events", n, 12)
	if !slices.IsSorted(r.p.order) {
		t.Errorf("order of the replay = %v, want ascending", r.p.order)
	}
}

func TestAReplayEndsWhenABackEndIsDown(t *testing.T) {
	r := newProcessedRig(t)
	r.p.setHooks(func(context.Context, []Item) error { return errDown() }, nil)
	n, err := r.Replay(t.Context(), event.Filter{}, false)
	relaytest.Equal(t, "the kind of error", relay.KindOf(err), relay.KindUnavailable)
	relaytest.Equal(t, "the number of replayed events", n, 0)
	relaytest.Equal(t, "the number of statuses", len(r.statuses.reasons()), 2)
}

func TestStatusesAreDeletedWithTheirRecords(t *testing.T) {
	r := newProcessedRig(t)
	relaytest.NoError(t, r.statuses.Set(t.Context(), event.Uplink, []event.Status{{Seq: 0, State: event.Quarantined}}))
	relaytest.NoError(t, r.Trim(t.Context()))
	if got := r.statuses.reasons(); len(got) != 2 {
		t.Errorf("statuses = %v, want 2", got)
	}
}

func TestLongReasonsAreClipped(t *testing.T) {
	long := ClipReason(strings.Repeat("é", 5000))
	if len(long) > maxReason+10 {
		t.Errorf("length = %d bytes, want at most %d", len(long), maxReason+10)
	}
	if !strings.HasSuffix(long, "…") {
		t.Errorf("clipped reason = %q, want an ellipsis at the end", long)
	}
	if got := ClipReason("short"); got != "short" {
		t.Errorf("reason = %q, want short", got)
	}
	if got := ClipReason("\xff"); got != "\uFFFD" {
		t.Errorf("reason with invalid UTF-8 = %q, want U+FFFD", got)
	}
}

// A search after its time limit examines one record, so that repeated searches reach the end.
func TestAStoppedSearchContinuesBelowTheReachedSequence(t *testing.T) {
	r := newProcessedRig(t)
	for _, tc := range []struct {
		name string
		s    Search
		want string
	}{
		{"no filter", Search{}, "12 11 10 9 8 7 6 5 4 3 2 1"},
		{"processed events", Search{Filter: event.Filter{State: event.Done}}, "10 9 8 7 6 4 2 1"},
		{"quarantined events", Search{Filter: event.Filter{State: event.Quarantined}}, "3"},
		{"journal only", Search{JournalOnly: true}, "12 11 10 9 8 7 6 5 4 3 2 1"},
		{"no match", Search{Filter: event.Filter{Query: "absent"}}, ""},
	} {
		var found []string
		tc.s.Until = time.Now().Add(-time.Second)
		for calls := 0; ; calls++ {
			end, err := r.Search(t.Context(), tc.s, func(e event.Event, item *Item) bool {
				found = append(found, strconv.FormatUint(item.Seq, 10))
				return true
			})
			relaytest.NoError(t, err)
			if end.Seq == 0 {
				break
			}
			if calls > 12 || end.Time.IsZero() {
				t.Fatalf("%s: search end = %+v after %d calls", tc.name, end, calls)
			}
			tc.s.BeforeSeq = end.Seq
		}
		relaytest.Equal(t, tc.name, strings.Join(found, " "), tc.want)
	}
	if n, end, err := r.Count(t.Context(), event.Filter{}, time.Now().Add(-time.Second)); n != 1 || end.Seq != 12 || err != nil {
		t.Errorf("Count = %d, %v, %v, want 1 event and sequence 12", n, end, err)
	}
}
