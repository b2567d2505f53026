package events

import (
	"fmt"
	"math"
	"testing"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestMarks(t *testing.T) {
	dbtest.OnEvery(t, func(t *testing.T, open func(t *testing.T) *db.DB) {
		database := open(t)
		for name, test := range map[string]func(t *testing.T, s, other *Statuses){
			"come back by range and by state":      statusesComeBack,
			"are replaced by later ones":           statusesAreReplaced,
			"are listed newest first, page wise":   statusesPage,
			"of events deferred come by account":   statusesComeByAccount,
			"of nodes and kinds do not mix":        statusesAreApart,
			"are trimmed below a sequence":         statusesAreTrimmed,
			"of one event are set by many at once": statusesCompete,
		} {
			t.Run(name, func(t *testing.T) { test(t, New(database, name), New(database, name+", other node")) })
		}
	})
}

func statusOf(seq uint64, state event.State) event.Status {
	m := event.Status{
		ID: fmt.Sprint("n1-u", seq), Seq: seq, State: state, Reason: "é\n", Outcome: "o", Notes: decoders.Notes{"n <é>", "m"}, Account: 7, Source: "tts-v3", Device: "0004a30b001c0530",
	}
	if state == event.Done {
		m.Outcome, m.Notes = "", nil
	}
	return m
}

func statusesComeBack(t *testing.T, s, _ *Statuses) {
	want := []event.Status{statusOf(3, event.Quarantined), statusOf(5, event.Unrouted), statusOf(9, event.Quarantined)}
	for range 2 {
		relaytest.NoError(t, s.Set(t.Context(), event.Uplink, want))
	}
	got, err := s.Get(t.Context(), event.Uplink, 3, 8)
	relaytest.NoError(t, err)
	if len(got) != 2 {
		t.Fatalf("result of Get: %d results, want %d", len(got), 2)
	}
	relaytest.Equal(t, "result of Get, [3]", got[3], want[0])
	relaytest.Equal(t, "result of Get, [5]", got[5], want[1])
	counts, err := s.Counts(t.Context(), event.Uplink)
	if err != nil || counts[event.Quarantined] != 2 || counts[event.Unrouted] != 1 {
		t.Errorf("%v, %v", counts, err)
	}
}

func statusesAreReplaced(t *testing.T, s, _ *Statuses) {
	relaytest.NoError(t, s.Set(t.Context(), event.SMS, nil),
		s.Set(t.Context(), event.SMS, []event.Status{statusOf(3, event.Unrouted), statusOf(4, event.Unrouted), statusOf(6, event.Done), statusOf(6, event.Unrouted)}),
		s.Set(t.Context(), event.SMS, []event.Status{statusOf(6, event.Unrouted), statusOf(3, event.Quarantined), statusOf(4, event.Done), statusOf(5, event.Done), statusOf(6, event.Done)}))
	counts, err := s.Counts(t.Context(), event.SMS)
	if err != nil || counts[event.Quarantined] != 1 || counts[event.Unrouted] != 0 {
		t.Errorf("%v, %v", counts, err)
	}
	if got, err := s.Get(t.Context(), event.SMS, 0, math.MaxUint64); err != nil {
		t.Error(err)
	} else if len(got) != 1 {
		t.Errorf("result of Get: %d results, want %d", len(got), 1)
	} else {
		relaytest.Equal(t, "result of Get, [3].State", got[3].State, event.Quarantined)
	}
	repeated := statusOf(3, event.Done)
	repeated.Outcome = "repeats n1-u1"
	relaytest.NoError(t, s.Set(t.Context(), event.SMS, []event.Status{repeated}))
	if got, err := s.Get(t.Context(), event.SMS, 3, 3); err != nil {
		t.Error(err)
	} else {
		relaytest.Equal(t, "one that is done says more, [3]", got[3], repeated)
	}
	relaytest.NoError(t, s.Set(t.Context(), event.SMS, []event.Status{statusOf(3, event.Done)}))
	relaytest.Equal(t, "done: number of results", len(relaytest.Must(s.Get(t.Context(), event.SMS, 3, 3))(t)), 0)
}

func statusesPage(t *testing.T, s, _ *Statuses) {
	var all []event.Status
	for seq := uint64(1); seq <= 25; seq++ {
		all = append(all, statusOf(seq, event.Quarantined), statusOf(seq+100, event.Unrouted))
	}
	relaytest.NoError(t, s.Set(t.Context(), event.Uplink, all))
	want := uint64(25)
	for below := uint64(math.MaxInt64); ; {
		page, err := s.List(t.Context(), event.Uplink, event.Quarantined, below, 10)
		relaytest.NoError(t, err)
		if len(page) == 0 {
			break
		}
		for _, m := range page {
			if m.Seq != want {
				t.Fatalf("%d, want %d", m.Seq, want)
			}
			want--
		}
		below = page[len(page)-1].Seq
	}
	if want != 0 {
		t.Errorf("ends at %d", want+1)
	}
}

func statusesComeByAccount(t *testing.T, s, other *Statuses) {
	of := func(acct relay.AccountID, state event.State, seqs ...uint64) (out []event.Status) {
		for _, seq := range seqs {
			m := statusOf(seq, state)
			m.Account = acct
			out = append(out, m)
		}
		return out
	}
	relaytest.NoError(t, s.Set(t.Context(), event.Uplink, of(7, event.Pending, 9, 8, 4)), s.Set(t.Context(), event.Uplink, of(3, event.Pending, 6, 5)),
		s.Set(t.Context(), event.Uplink, of(3, event.Quarantined, 1)), s.Set(t.Context(), event.SMS, of(5, event.Pending, 2)),
		other.Set(t.Context(), event.Uplink, of(5, event.Pending, 3)))
	for _, tc := range []struct {
		after relay.AccountID
		limit int
		want  string
	}{
		{-1, 10, "5 6 4 8 9 "},
		{-1, 3, "5 6 4 "},
		{3, 2, "4 8 "},
		{7, 10, ""},
	} {
		got, err := s.Deferred(t.Context(), event.Uplink, tc.after, tc.limit)
		relaytest.NoError(t, err)
		seqs := ""
		for _, m := range got {
			seqs += fmt.Sprint(m.Seq, " ")
		}
		if seqs != tc.want {
			t.Errorf("after %d, at most %d: %s, want %s", tc.after, tc.limit, seqs, tc.want)
		}
	}
}

func statusesAreApart(t *testing.T, s, other *Statuses) {
	relaytest.NoError(t, s.Set(t.Context(), event.Uplink, []event.Status{statusOf(1, event.Quarantined)}))
	for _, apart := range []struct {
		*Statuses
		kind event.Kind
	}{{other, event.Uplink}, {s, event.SMS}} {
		relaytest.NoError(t, apart.Set(t.Context(), apart.kind, []event.Status{statusOf(1, event.Done)}), apart.Trim(t.Context(), apart.kind, 10))
		relaytest.Equal(t, apart.node+": number of results of Get", len(relaytest.Must(apart.Get(t.Context(), apart.kind, 0, 10))(t)), 0)
	}
	relaytest.Equal(t, "the status itself: number of results", len(relaytest.Must(s.Get(t.Context(), event.Uplink, 1, 1))(t)), 1)
}

func statusesAreTrimmed(t *testing.T, s, _ *Statuses) {
	const n = 2*trimLimit + 500
	var all []event.Status
	for seq := uint64(1); seq <= n; seq++ {
		all = append(all, statusOf(seq, []event.State{event.Quarantined, event.Unrouted}[seq%20/19]))
	}
	relaytest.NoError(t, s.Set(t.Context(), event.Uplink, all), s.Trim(t.Context(), event.Uplink, n-1), s.Trim(t.Context(), event.Uplink, 0))
	left, err := s.Get(t.Context(), event.Uplink, 0, math.MaxInt64)
	relaytest.NoError(t, err)
	if len(left) != 2 || left[n-1].Seq != n-1 {
		t.Errorf("%d left", len(left))
	}
}

// statusesCompete has transactions set and forget statuses of the same events in other
// orders: none fails, and the last word of each is kept whole.
func statusesCompete(t *testing.T, s, _ *Statuses) {
	dbtest.Together(8, func(i int) {
		var statuses []event.Status
		for n := range 40 {
			m := statusOf(uint64((n*7+i*11)%40), event.Quarantined)
			if (n+i)%4 == 0 {
				m = statusOf(m.Seq, event.Done)
			}
			statuses = append(statuses, m)
		}
		if err := s.Set(t.Context(), event.Uplink, statuses); err != nil {
			t.Error(err)
		}
	})
	if got, err := s.Get(t.Context(), event.Uplink, 0, 40); len(got) != 30 || err != nil {
		t.Errorf("%d statuses, %v", len(got), err)
	}
}
