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

func TestStatuses(t *testing.T) {
	dbtest.OnEvery(t, func(t *testing.T, open func(t *testing.T) *db.DB) {
		database := open(t)
		for name, test := range map[string]func(t *testing.T, s, otherNode *Statuses){
			"are read by range and counted by state":   statusesAreRead,
			"are replaced by later ones":               statusesAreReplaced,
			"are listed in pages, newest first":        statusesAreListed,
			"of deferred events are listed by account": deferredAreListed,
			"of nodes and kinds are separate":          statusesAreSeparate,
			"are trimmed below a sequence":             statusesAreTrimmed,
			"of the same events are set concurrently":  statusesAreSetConcurrently,
		} {
			t.Run(name, func(t *testing.T) { test(t, NewStatuses(database, name), NewStatuses(database, name+", other node")) })
		}
	})
}

func statusOf(seq uint64, state State) Status {
	status := Status{
		ID: fmt.Sprint("n1-u", seq), Seq: seq, State: state, Reason: "é\n", Outcome: "o", Notes: decoders.Notes{"n <é>", "m"}, Account: 7, Source: "tts-v3", Device: "0004a30b001c0530",
	}
	if state == Done {
		status.Outcome, status.Notes = "", nil
	}
	return status
}

func statusesAreRead(t *testing.T, s, _ *Statuses) {
	want := []Status{statusOf(3, Quarantined), statusOf(5, Unrouted), statusOf(9, Quarantined)}
	for range 2 {
		relaytest.NoError(t, s.Set(t.Context(), Uplink, want))
	}
	got, err := s.Get(t.Context(), Uplink, 3, 8)
	relaytest.NoError(t, err)
	if len(got) != 2 {
		t.Fatalf("%d statuses, want 2", len(got))
	}
	relaytest.Equal(t, "status 3", got[3], want[0])
	relaytest.Equal(t, "status 5", got[5], want[1])
	counts, err := s.Counts(t.Context(), Uplink)
	if err != nil || counts[Quarantined] != 2 || counts[Unrouted] != 1 {
		t.Errorf("counts %v, %v; want 2 quarantined and 1 unrouted", counts, err)
	}
}

func statusesAreReplaced(t *testing.T, s, _ *Statuses) {
	relaytest.NoError(t, s.Set(t.Context(), SMS, nil),
		s.Set(t.Context(), SMS, []Status{statusOf(3, Unrouted), statusOf(4, Unrouted), statusOf(6, Done), statusOf(6, Unrouted)}),
		s.Set(t.Context(), SMS, []Status{statusOf(6, Unrouted), statusOf(3, Quarantined), statusOf(4, Done), statusOf(5, Done), statusOf(6, Done)}))
	counts, err := s.Counts(t.Context(), SMS)
	if err != nil || counts[Quarantined] != 1 || counts[Unrouted] != 0 {
		t.Errorf("counts %v, %v; want 1 quarantined", counts, err)
	}
	if got, err := s.Get(t.Context(), SMS, 0, math.MaxUint64); err != nil {
		t.Error(err)
	} else if len(got) != 1 {
		t.Errorf("%d statuses, want 1", len(got))
	} else {
		relaytest.Equal(t, "the state of status 3", got[3].State, Quarantined)
	}
	repeated := statusOf(3, Done)
	repeated.Outcome = "repeats n1-u1"
	relaytest.NoError(t, s.Set(t.Context(), SMS, []Status{repeated}))
	if got, err := s.Get(t.Context(), SMS, 3, 3); err != nil {
		t.Error(err)
	} else {
		relaytest.Equal(t, "a status that is done with an outcome", got[3], repeated)
	}
	relaytest.NoError(t, s.Set(t.Context(), SMS, []Status{statusOf(3, Done)}))
	relaytest.Equal(t, "the number of statuses that are done without an outcome", len(relaytest.Must(s.Get(t.Context(), SMS, 3, 3))(t)), 0)
}

func statusesAreListed(t *testing.T, s, _ *Statuses) {
	var statuses []Status
	for seq := uint64(1); seq <= 25; seq++ {
		statuses = append(statuses, statusOf(seq, Quarantined), statusOf(seq+100, Unrouted))
	}
	relaytest.NoError(t, s.Set(t.Context(), Uplink, statuses))
	want := uint64(25)
	for limitSeq := uint64(math.MaxInt64); ; {
		page, err := s.List(t.Context(), Uplink, Quarantined, limitSeq, 10)
		relaytest.NoError(t, err)
		if len(page) == 0 {
			break
		}
		for _, status := range page {
			if status.Seq != want {
				t.Fatalf("sequence %d, want %d", status.Seq, want)
			}
			want--
		}
		limitSeq = page[len(page)-1].Seq
	}
	if want != 0 {
		t.Errorf("the last sequence is %d, want 1", want+1)
	}
}

func deferredAreListed(t *testing.T, s, otherNode *Statuses) {
	statusesOfAccount := func(acct relay.AccountID, state State, seqs ...uint64) (statuses []Status) {
		for _, seq := range seqs {
			status := statusOf(seq, state)
			status.Account = acct
			statuses = append(statuses, status)
		}
		return statuses
	}
	relaytest.NoError(t, s.Set(t.Context(), Uplink, statusesOfAccount(7, Pending, 9, 8, 4)), s.Set(t.Context(), Uplink, statusesOfAccount(3, Pending, 6, 5)),
		s.Set(t.Context(), Uplink, statusesOfAccount(3, Quarantined, 1)), s.Set(t.Context(), SMS, statusesOfAccount(5, Pending, 2)),
		otherNode.Set(t.Context(), Uplink, statusesOfAccount(5, Pending, 3)))
	for _, tc := range []struct {
		lastAccount relay.AccountID
		limit       int
		want        string
	}{
		{-1, 10, "5 6 4 8 9 "},
		{-1, 3, "5 6 4 "},
		{3, 2, "4 8 "},
		{7, 10, ""},
	} {
		got, err := s.Deferred(t.Context(), Uplink, tc.lastAccount, tc.limit)
		relaytest.NoError(t, err)
		seqs := ""
		for _, status := range got {
			seqs += fmt.Sprint(status.Seq, " ")
		}
		if seqs != tc.want {
			t.Errorf("after account %d with limit %d: sequences %s, want %s", tc.lastAccount, tc.limit, seqs, tc.want)
		}
	}
}

func statusesAreSeparate(t *testing.T, s, otherNode *Statuses) {
	relaytest.NoError(t, s.Set(t.Context(), Uplink, []Status{statusOf(1, Quarantined)}))
	for _, separate := range []struct {
		*Statuses
		kind Kind
	}{{otherNode, Uplink}, {s, SMS}} {
		relaytest.NoError(t, separate.Set(t.Context(), separate.kind, []Status{statusOf(1, Done)}), separate.Trim(t.Context(), separate.kind, 10))
		relaytest.Equal(t, separate.node+": the number of statuses", len(relaytest.Must(separate.Get(t.Context(), separate.kind, 0, 10))(t)), 0)
	}
	relaytest.Equal(t, "the number of statuses of the first node and kind", len(relaytest.Must(s.Get(t.Context(), Uplink, 1, 1))(t)), 1)
}

func statusesAreTrimmed(t *testing.T, s, _ *Statuses) {
	const n = 2*trimLimit + 500
	var statuses []Status
	for seq := uint64(1); seq <= n; seq++ {
		statuses = append(statuses, statusOf(seq, []State{Quarantined, Unrouted}[seq%20/19]))
	}
	relaytest.NoError(t, s.Set(t.Context(), Uplink, statuses), s.Trim(t.Context(), Uplink, n-1), s.Trim(t.Context(), Uplink, 0))
	remaining, err := s.Get(t.Context(), Uplink, 0, math.MaxInt64)
	relaytest.NoError(t, err)
	if len(remaining) != 2 || remaining[n-1].Seq != n-1 {
		t.Errorf("%d statuses remain, want the last two", len(remaining))
	}
}

// statusesAreSetConcurrently sets and deletes statuses of the same events in several orders. No
// transaction fails, and the fields of each stored status belong together.
func statusesAreSetConcurrently(t *testing.T, s, _ *Statuses) {
	dbtest.RunConcurrently(8, func(i int) {
		var statuses []Status
		for n := range 40 {
			status := statusOf(uint64((n*7+i*11)%40), Quarantined)
			if (n+i)%4 == 0 {
				status = statusOf(status.Seq, Done)
			}
			statuses = append(statuses, status)
		}
		if err := s.Set(t.Context(), Uplink, statuses); err != nil {
			t.Error(err)
		}
	})
	if got, err := s.Get(t.Context(), Uplink, 0, 40); len(got) != 30 || err != nil {
		t.Errorf("%d statuses, want 30; %v", len(got), err)
	}
}
