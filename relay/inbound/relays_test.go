package inbound

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

func relayOf(acct relay.AccountID, k Kind, id, number string) Relay {
	return Relay{
		ID: id, Account: acct, Kind: k, Number: number, UpdatedAt: dbtest.At(0),
		Action: Action{Name: HTTPGet, Parameters: []string{"http://h/?m=%m&é=\"<"}},
	}
}

func putAll(t *testing.T, s *rig, all ...Relay) {
	t.Helper()
	for _, r := range all {
		relaytest.NoError(t, s.Put(t.Context(), r))
	}
}

func relayCases() cases {
	return cases{
		"come back as they were saved":                      relaysComeBack,
		"are found by number and by every prefix":           relaysAreFound,
		"have a number for themselves":                      relaysHaveNumbers,
		"release a number that changes":                     relaysReleaseNumbers,
		"are deleted":                                       relaysAreDeleted,
		"count every change":                                relaysCount,
		"are scanned by account, kind and id":               relaysAreScanned,
		"are changed by many and no change is lost":         relaysAreChanged,
		"keep who they are and their number in a change":    relaysStayThemselves,
		"that do not open end no list":                      relaysThatDoNotOpen,
		"of two gateways compete for a number and one wins": relaysCompete,
	}
}

func relaysThatDoNotOpen(t *testing.T, s *rig) {
	s.db.SetSealer(dbtest.Sealer{})
	t.Cleanup(func() { s.db.SetSealer(nil) })
	closed, open := relayOf(1, Geographic, "g1", "4478"), relayOf(1, Geographic, "g2", "44")
	putAll(t, s, closed, open)
	restore := dbtest.Tamper(t, s.db, "relay", "doc", "id = 'g1'")
	want := Relay{Account: 1, Kind: Geographic, ID: "g1", Number: "4478", Unopened: true}
	list, err := s.List(t.Context(), 1, Geographic)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "relays of the account", list, []Relay{open, want})
	scanned, err := s.Scan(t.Context(), 0, Ref{}, 9)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "relays of all accounts", scanned, []Relay{want, open})
	found, err := s.Candidates(t.Context(), []string{"44781", "441"})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "relays of two numbers", found, [][]Relay{{open, want}, {open}})
	_, err = s.Change(t.Context(), 1, Geographic, "g1", func(r *Relay) error { r.ICCID = "1"; return nil })
	if !errors.Is(err, relay.ErrUnopened) {
		t.Errorf("a change of the relay that does not open: error %v", err)
	}
	restore()
	relaytest.Equal(t, "the relay once it opens", relaytest.Must(s.Get(t.Context(), 1, Geographic, "g1"))(t), closed)
}

func relaysComeBack(t *testing.T, s *rig) {
	want := relayOf(1, Geographic, "g1", "4478")
	want.ICCID = "8944"
	putAll(t, s, want, relayOf(1, Geographic, "g0", "4479"), relayOf(1, VirtualNumber, "g1", "4478"), relayOf(2, Geographic, "g1", "33"))
	got, err := s.Get(t.Context(), 1, Geographic, "g1")
	relaytest.NoError(t, err)
	relaytest.Equal(t, "result of Get", fmt.Sprint(got), fmt.Sprint(want))
	relaytest.Equal(t, "result of Get, UpdatedAt", got.UpdatedAt, want.UpdatedAt)
	relaytest.Equal(t, "result of Get, ICCID", got.ICCID, "8944")
	list, err := s.List(t.Context(), 1, Geographic)
	relaytest.NoError(t, err)
	if len(list) != 2 {
		t.Fatalf("list: %d results, want %d", len(list), 2)
	}
	relaytest.Equal(t, "list, [0].ID", list[0].ID, "g1")
	relaytest.Equal(t, "list, [1].ID", list[1].ID, "g0")
	if _, err := s.Get(t.Context(), 2, Geographic, "g0"); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("another account's relay: %v", err)
	}
}

func found(t *testing.T, s *rig, numbers ...string) (out []string) {
	t.Helper()
	all, err := s.Candidates(t.Context(), numbers)
	if err != nil || len(all) != len(numbers) {
		t.Fatalf("%v, %v", all, err)
	}
	for _, candidates := range all {
		names := ""
		for _, r := range candidates {
			names += fmt.Sprintf("%d/%s ", r.Account, r.ID)
		}
		out = append(out, names)
	}
	return out
}

func relaysAreFound(t *testing.T, s *rig) {
	if got := found(t, s, "447860000001"); got[0] != "" {
		t.Errorf("in an empty store: %q", got)
	}
	putAll(t, s,
		relayOf(1, Geographic, "four", "4"), relayOf(2, Geographic, "fours", "44"),
		relayOf(1, Geographic, "whole", "447860000001"), relayOf(3, VirtualNumber, "exact", "447860000001"),
		relayOf(1, VirtualNumber, "begin", "4478"),
	)
	got := found(t, s, "447860000001", "4478", "331", "4", "447860000001")
	want := []string{"3/exact 1/four 2/fours 1/whole ", "1/begin 1/four 2/fours ", "", "1/four ", "3/exact 1/four 2/fours 1/whole "}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func relaysHaveNumbers(t *testing.T, s *rig) {
	first := relayOf(1, VirtualNumber, "v1", "447860000001")
	putAll(t, s, first, first, relayOf(2, Geographic, "g1", "447860000001"))
	before, err := s.Version(t.Context())
	relaytest.NoError(t, err)
	for _, other := range []Relay{
		relayOf(2, VirtualNumber, "v1", "447860000001"), relayOf(1, VirtualNumber, "v2", "447860000001"),
	} {
		if err := s.Put(t.Context(), other); relay.KindOf(err) != relay.KindConflict {
			t.Errorf("%d/%s: %v", other.Account, other.ID, err)
		}
	}
	if _, err := s.Get(t.Context(), 1, VirtualNumber, "v2"); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("a refused relay was saved: %v", err)
	}
	if after, err := s.Version(t.Context()); err != nil || after != before {
		t.Errorf("refusals were counted: %d after %d, %v", after, before, err)
	}
}

func relaysReleaseNumbers(t *testing.T, s *rig) {
	putAll(t, s, relayOf(1, VirtualNumber, "v1", "441"), relayOf(1, VirtualNumber, "v1", "442"), relayOf(2, VirtualNumber, "v1", "441"))
	if got := found(t, s, "441", "442"); !slices.Equal(got, []string{"2/v1 ", "1/v1 "}) {
		t.Errorf("got %q", got)
	}
}

func relaysAreScanned(t *testing.T, s *rig) {
	putAll(t, s,
		relayOf(2, Geographic, "a", "1"), relayOf(1, VirtualNumber, "a", "2"), relayOf(1, Geographic, "b", "3"),
		relayOf(1, Geographic, "a", "4"), relayOf(10, Geographic, "a", "5"),
	)
	for _, tc := range []struct {
		name  string
		acct  relay.AccountID
		after Ref
		limit int
		want  string
	}{
		{"all", 0, Ref{}, 9, "[1/geo/a 1/geo/b 1/vmn/a 2/geo/a 10/geo/a]"},
		{"a page", 0, Ref{}, 2, "[1/geo/a 1/geo/b]"},
		{"the rest", 0, Ref{Account: 1, Kind: Geographic, ID: "b"}, 9, "[1/vmn/a 2/geo/a 10/geo/a]"},
		{"after one that is gone", 0, Ref{Account: 1, Kind: VirtualNumber, ID: "b"}, 1, "[2/geo/a]"},
		{"of an account", 1, Ref{Account: 1, Kind: Geographic, ID: "a"}, 9, "[1/geo/b 1/vmn/a]"},
		{"of an account without any", 3, Ref{}, 9, "[]"},
	} {
		list, err := s.Scan(t.Context(), tc.acct, tc.after, tc.limit)
		got := []string{}
		for _, r := range list {
			got = append(got, fmt.Sprintf("%d/%s/%s", r.Account, r.Kind, r.ID))
		}
		if err != nil || fmt.Sprint(got) != tc.want {
			t.Errorf("%s: %v, %v, want %s", tc.name, got, err, tc.want)
		}
	}
}

func relaysAreDeleted(t *testing.T, s *rig) {
	putAll(t, s, relayOf(1, VirtualNumber, "v1", "441"))
	relaytest.NoError(t, s.Delete(t.Context(), 1, VirtualNumber, "v1"))
	if got := found(t, s, "441"); got[0] != "" {
		t.Errorf("still found: %q", got)
	}
	if err := s.Delete(t.Context(), 1, VirtualNumber, "v1"); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("a second time: %v", err)
	}
	putAll(t, s, relayOf(2, VirtualNumber, "v9", "441"))
}

func relaysCount(t *testing.T, s *rig) {
	last, err := s.Version(t.Context())
	relaytest.NoError(t, err)
	for _, step := range []struct {
		name   string
		change func() error
	}{
		{"put", func() error { return s.Put(t.Context(), relayOf(1, VirtualNumber, "v1", "441")) }},
		{"again", func() error { return s.Put(t.Context(), relayOf(1, VirtualNumber, "v1", "441")) }},
		{"delete", func() error { return s.Delete(t.Context(), 1, VirtualNumber, "v1") }},
	} {
		relaytest.NoError(t, step.change())
		now, err := s.Version(t.Context())
		if err != nil || now <= last {
			t.Errorf("%s: %d after %d, %v", step.name, now, last, err)
		}
		last = now
	}
}

func relaysAreChanged(t *testing.T, s *rig) {
	putAll(t, s, relayOf(1, VirtualNumber, "v1", "447"))
	before, err := s.Version(t.Context())
	relaytest.NoError(t, err)
	stores := []*Store{s.Store, s.second(t)}
	dbtest.Together(8, func(i int) {
		if _, err := stores[i%2].Change(t.Context(), 1, VirtualNumber, "v1", func(r *Relay) error {
			r.Action.Parameters = append(r.Action.Parameters, fmt.Sprint("http://", i, "/"))
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
	got, err := s.Candidates(t.Context(), []string{"447"})
	if err != nil || len(got[0]) != 1 || len(got[0][0].Action.Parameters) != 9 {
		t.Errorf("got %+v, %v", got, err)
	}
	refuse := errors.New("no")
	if _, err := s.Change(t.Context(), 1, VirtualNumber, "v1", func(*Relay) error { return refuse }); err != refuse { //nolint:errorlint // as it is
		t.Errorf("refused: %v", err)
	}
	if _, err := s.Change(t.Context(), 2, VirtualNumber, "v1", func(*Relay) error { return nil }); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("another account's: %v", err)
	}
	if _, err := s.Change(t.Context(), 1, VirtualNumber, "v1", func(*Relay) error { return nil }); err != nil {
		t.Errorf("no change: %v", err)
	}
	if after, err := s.Version(t.Context()); err != nil || after != before+8 {
		t.Errorf("version %d after %d, %v", after, before, err)
	}
}

func relaysStayThemselves(t *testing.T, s *rig) {
	putAll(t, s, relayOf(1, VirtualNumber, "v1", "447"))
	got, err := s.Change(t.Context(), 1, VirtualNumber, "v1", func(r *Relay) error {
		*r = Relay{Account: 2, ID: "other", Number: "33", Filter: "x"}
		return nil
	})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "got.Account", got.Account, 1)
	relaytest.Equal(t, "got.ID", got.ID, "v1")
	relaytest.Equal(t, "got.Number", got.Number, "447")
	relaytest.Equal(t, "got.Filter", got.Filter, "x")
}

func relaysCompete(t *testing.T, s *rig) {
	var wins atomic.Int64
	var all sync.WaitGroup
	stores := []*Store{s.Store, s.second(t)}
	for acct := relay.AccountID(1); acct <= 8; acct++ {
		all.Go(func() {
			err := stores[acct%2].Put(t.Context(), relayOf(acct, VirtualNumber, "v1", "447"))
			if err == nil {
				wins.Add(1)
			} else if relay.KindOf(err) != relay.KindConflict {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if wins.Load() != 1 {
		t.Errorf("%d relays have the number", wins.Load())
	}
}
