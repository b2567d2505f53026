package event

import (
	"fmt"
	"math"
	"testing"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
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
			t.Run(name, func(t *testing.T) { test(t, NewStatuses(database, name), NewStatuses(database, name+", other node")) })
		}
	})
}

func statusOf(seq uint64, state State) Status {
	m := Status{
		ID: fmt.Sprint("n1-u", seq), Seq: seq, State: state, Reason: "é\n", Outcome: "o", Notes: decoders.Notes{"n <é>", "m"}, Account: 7, Source: "tts-v3", Device: "0004a30b001c0530",
	}
	if state == Done {
		m.Outcome, m.Notes = "", nil
	}
	return m
}

func statusesComeBack(t *testing.T, s, _ *Statuses) {
	want := []Status{statusOf(3, Quarantined), statusOf(5, Unrouted), statusOf(9, Quarantined)}
	for range 2 {
		relaytest.NoError(t, s.Set(t.Context(), Uplink, want))
	}
	got, err := s.Get(t.Context(), Uplink, 3, 8)
	relaytest.NoError(t, err)
	if len(got) != 2 {
		t.Fatalf("result of Get: %d results, want %d", len(got), 2)
	}
	relaytest.Equal(t, "result of Get, [3]", got[3], want[0])
	relaytest.Equal(t, "result of Get, [5]", got[5], want[1])
	counts, err := s.Counts(t.Context(), Uplink)
	if err != nil || counts[Quarantined] != 2 || counts[Unrouted] != 1 {
		t.Errorf("%v, %v", counts, err)
	}
}

func statusesAreReplaced(t *testing.T, s, _ *Statuses) {
	relaytest.NoError(t, s.Set(t.Context(), SMS, nil),
		s.Set(t.Context(), SMS, []Status{statusOf(3, Unrouted), statusOf(4, Unrouted), statusOf(6, Done), statusOf(6, Unrouted)}),
		s.Set(t.Context(), SMS, []Status{statusOf(6, Unrouted), statusOf(3, Quarantined), statusOf(4, Done), statusOf(5, Done), statusOf(6, Done)}))
	counts, err := s.Counts(t.Context(), SMS)
	if err != nil || counts[Quarantined] != 1 || counts[Unrouted] != 0 {
		t.Errorf("%v, %v", counts, err)
	}
	if got, err := s.Get(t.Context(), SMS, 0, math.MaxUint64); err != nil {
		t.Error(err)
	} else if len(got) != 1 {
		t.Errorf("result of Get: %d results, want %d", len(got), 1)
	} else {
		relaytest.Equal(t, "result of Get, [3].State", got[3].State, Quarantined)
	}
	repeated := statusOf(3, Done)
	repeated.Outcome = "repeats n1-u1"
	relaytest.NoError(t, s.Set(t.Context(), SMS, []Status{repeated}))
	if got, err := s.Get(t.Context(), SMS, 3, 3); err != nil {
		t.Error(err)
	} else {
		relaytest.Equal(t, "one that is done says more, [3]", got[3], repeated)
	}
	relaytest.NoError(t, s.Set(t.Context(), SMS, []Status{statusOf(3, Done)}))
	relaytest.Equal(t, "done: number of results", len(relaytest.Must(s.Get(t.Context(), SMS, 3, 3))(t)), 0)
}

func statusesPage(t *testing.T, s, _ *Statuses) {
	var all []Status
	for seq := uint64(1); seq <= 25; seq++ {
		all = append(all, statusOf(seq, Quarantined), statusOf(seq+100, Unrouted))
	}
	relaytest.NoError(t, s.Set(t.Context(), Uplink, all))
	want := uint64(25)
	for below := uint64(math.MaxInt64); ; {
		page, err := s.List(t.Context(), Uplink, Quarantined, below, 10)
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
	of := func(acct relay.AccountID, state State, seqs ...uint64) (out []Status) {
		for _, seq := range seqs {
			m := statusOf(seq, state)
			m.Account = acct
			out = append(out, m)
		}
		return out
	}
	relaytest.NoError(t, s.Set(t.Context(), Uplink, of(7, Pending, 9, 8, 4)), s.Set(t.Context(), Uplink, of(3, Pending, 6, 5)),
		s.Set(t.Context(), Uplink, of(3, Quarantined, 1)), s.Set(t.Context(), SMS, of(5, Pending, 2)),
		other.Set(t.Context(), Uplink, of(5, Pending, 3)))
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
		got, err := s.Deferred(t.Context(), Uplink, tc.after, tc.limit)
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
	relaytest.NoError(t, s.Set(t.Context(), Uplink, []Status{statusOf(1, Quarantined)}))
	for _, apart := range []struct {
		*Statuses
		kind Kind
	}{{other, Uplink}, {s, SMS}} {
		relaytest.NoError(t, apart.Set(t.Context(), apart.kind, []Status{statusOf(1, Done)}), apart.Trim(t.Context(), apart.kind, 10))
		relaytest.Equal(t, apart.node+": number of results of Get", len(relaytest.Must(apart.Get(t.Context(), apart.kind, 0, 10))(t)), 0)
	}
	relaytest.Equal(t, "the status itself: number of results", len(relaytest.Must(s.Get(t.Context(), Uplink, 1, 1))(t)), 1)
}

func statusesAreTrimmed(t *testing.T, s, _ *Statuses) {
	const n = 2*trimLimit + 500
	var all []Status
	for seq := uint64(1); seq <= n; seq++ {
		all = append(all, statusOf(seq, []State{Quarantined, Unrouted}[seq%20/19]))
	}
	relaytest.NoError(t, s.Set(t.Context(), Uplink, all), s.Trim(t.Context(), Uplink, n-1), s.Trim(t.Context(), Uplink, 0))
	left, err := s.Get(t.Context(), Uplink, 0, math.MaxInt64)
	relaytest.NoError(t, err)
	if len(left) != 2 || left[n-1].Seq != n-1 {
		t.Errorf("%d left", len(left))
	}
}

// statusesCompete sets and deletes statuses of the same events in several orders concurrently. No
// transaction fails, and the fields of each stored status belong together.
func statusesCompete(t *testing.T, s, _ *Statuses) {
	dbtest.Together(8, func(i int) {
		var statuses []Status
		for n := range 40 {
			m := statusOf(uint64((n*7+i*11)%40), Quarantined)
			if (n+i)%4 == 0 {
				m = statusOf(m.Seq, Done)
			}
			statuses = append(statuses, m)
		}
		if err := s.Set(t.Context(), Uplink, statuses); err != nil {
			t.Error(err)
		}
	})
	if got, err := s.Get(t.Context(), Uplink, 0, 40); len(got) != 30 || err != nil {
		t.Errorf("%d statuses, %v", len(got), err)
	}
}
