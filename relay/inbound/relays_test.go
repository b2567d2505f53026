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
		ID: id, Account: acct, Kind: k, Number: number, UpdatedAt: dbtest.TimeAt(0),
		Action: Action{Name: HTTPGet, Parameters: []string{"http://h/?m=%m&é=\"<"}},
	}
}

func putAll(t *testing.T, s *rig, relays ...Relay) {
	t.Helper()
	for _, r := range relays {
		relaytest.NoError(t, s.Put(t.Context(), r))
	}
}

func relayCases() cases {
	return cases{
		"are read as they were saved":                    relaysAreRead,
		"are found by number and by every prefix":        relaysAreFound,
		"are refused for the number of another relay":    numbersAreUnique,
		"release a number that changes":                  relaysReleaseNumbers,
		"are deleted":                                    relaysAreDeleted,
		"have a new version after every change":          versionsGrow,
		"are scanned by account, kind and id":            relaysAreScanned,
		"are changed concurrently without a lost change": relaysAreChanged,
		"keep their account, id and number in a change":  keysStayInAChange,
		"that cannot be decrypted are listed":            undecryptableRelaysAreListed,
		"of two gateways compete for a number":           relaysCompete,
	}
}

func undecryptableRelaysAreListed(t *testing.T, s *rig) {
	s.db.SetSealer(dbtest.Sealer{})
	t.Cleanup(func() { s.db.SetSealer(nil) })
	undecryptable, readable := relayOf(1, Geographic, "g1", "4478"), relayOf(1, Geographic, "g2", "44")
	putAll(t, s, undecryptable, readable)
	restore := dbtest.Tamper(t, s.db, "relay", "doc", "id = 'g1'")
	want := Relay{Account: 1, Kind: Geographic, ID: "g1", Number: "4478", Undecryptable: true}
	list, err := s.List(t.Context(), 1, Geographic)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "relays of the account", list, []Relay{readable, want})
	scanned, err := s.Scan(t.Context(), 0, Ref{}, 9)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "relays of all accounts", scanned, []Relay{want, readable})
	candidates, err := s.Candidates(t.Context(), []string{"44781", "441"})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "relays of two numbers", candidates, [][]Relay{{readable, want}, {readable}})
	_, err = s.Change(t.Context(), 1, Geographic, "g1", func(r *Relay) error { r.ICCID = "1"; return nil })
	if !errors.Is(err, relay.ErrUndecryptable) {
		t.Errorf("error of Change = %v, want %v", err, relay.ErrUndecryptable)
	}
	restore()
	relaytest.Equal(t, "the relay once it can be decrypted", relaytest.Must(s.Get(t.Context(), 1, Geographic, "g1"))(t), undecryptable)
}

func relaysAreRead(t *testing.T, s *rig) {
	want := relayOf(1, Geographic, "g1", "4478")
	want.ICCID = "8944"
	putAll(t, s, want, relayOf(1, Geographic, "g0", "4479"), relayOf(1, VirtualNumber, "g1", "4478"), relayOf(2, Geographic, "g1", "33"))
	got, err := s.Get(t.Context(), 1, Geographic, "g1")
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the relay", fmt.Sprint(got), fmt.Sprint(want))
	relaytest.Equal(t, "UpdatedAt", got.UpdatedAt, want.UpdatedAt)
	relaytest.Equal(t, "ICCID", got.ICCID, "8944")
	list, err := s.List(t.Context(), 1, Geographic)
	relaytest.NoError(t, err)
	if len(list) != 2 {
		t.Fatalf("list: %d results, want %d", len(list), 2)
	}
	relaytest.Equal(t, "list[0].ID", list[0].ID, "g1")
	relaytest.Equal(t, "list[1].ID", list[1].ID, "g0")
	if _, err := s.Get(t.Context(), 2, Geographic, "g0"); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("error for another account's relay = %v, want not found", err)
	}
}

// candidateIDs returns "account/id " of each candidate, by number.
func candidateIDs(t *testing.T, s *rig, numbers ...string) (ids []string) {
	t.Helper()
	candidatesByNumber, err := s.Candidates(t.Context(), numbers)
	if err != nil || len(candidatesByNumber) != len(numbers) {
		t.Fatalf("candidates = %v, error = %v", candidatesByNumber, err)
	}
	for _, candidates := range candidatesByNumber {
		names := ""
		for _, r := range candidates {
			names += fmt.Sprintf("%d/%s ", r.Account, r.ID)
		}
		ids = append(ids, names)
	}
	return ids
}

func relaysAreFound(t *testing.T, s *rig) {
	if got := candidateIDs(t, s, "447860000001"); got[0] != "" {
		t.Errorf("candidates of an empty store = %q, want none", got)
	}
	putAll(t, s,
		relayOf(1, Geographic, "four", "4"), relayOf(2, Geographic, "fours", "44"),
		relayOf(1, Geographic, "whole", "447860000001"), relayOf(3, VirtualNumber, "exact", "447860000001"),
		relayOf(1, VirtualNumber, "begin", "4478"),
	)
	got := candidateIDs(t, s, "447860000001", "4478", "331", "4", "447860000001")
	want := []string{"3/exact 1/four 2/fours 1/whole ", "1/begin 1/four 2/fours ", "", "1/four ", "3/exact 1/four 2/fours 1/whole "}
	if !slices.Equal(got, want) {
		t.Errorf("candidates = %q, want %q", got, want)
	}
}

func numbersAreUnique(t *testing.T, s *rig) {
	existing := relayOf(1, VirtualNumber, "v1", "447860000001")
	putAll(t, s, existing, existing, relayOf(2, Geographic, "g1", "447860000001"))
	oldVersion, err := s.Version(t.Context())
	relaytest.NoError(t, err)
	for _, conflicting := range []Relay{
		relayOf(2, VirtualNumber, "v1", "447860000001"), relayOf(1, VirtualNumber, "v2", "447860000001"),
	} {
		if err := s.Put(t.Context(), conflicting); relay.KindOf(err) != relay.KindConflict {
			t.Errorf("error for %d/%s = %v, want conflict", conflicting.Account, conflicting.ID, err)
		}
	}
	if _, err := s.Get(t.Context(), 1, VirtualNumber, "v2"); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("error for the refused relay = %v, want not found", err)
	}
	if version, err := s.Version(t.Context()); err != nil || version != oldVersion {
		t.Errorf("version after refusals = %d, error = %v, want %d", version, err, oldVersion)
	}
}

func relaysReleaseNumbers(t *testing.T, s *rig) {
	putAll(t, s, relayOf(1, VirtualNumber, "v1", "441"), relayOf(1, VirtualNumber, "v1", "442"), relayOf(2, VirtualNumber, "v1", "441"))
	want := []string{"2/v1 ", "1/v1 "}
	if got := candidateIDs(t, s, "441", "442"); !slices.Equal(got, want) {
		t.Errorf("candidates = %q, want %q", got, want)
	}
}

func relaysAreScanned(t *testing.T, s *rig) {
	putAll(t, s,
		relayOf(2, Geographic, "a", "1"), relayOf(1, VirtualNumber, "a", "2"), relayOf(1, Geographic, "b", "3"),
		relayOf(1, Geographic, "a", "4"), relayOf(10, Geographic, "a", "5"),
	)
	for _, tc := range []struct {
		name   string
		acct   relay.AccountID
		cursor Ref
		limit  int
		want   string
	}{
		{"all relays", 0, Ref{}, 9, "[1/geo/a 1/geo/b 1/vmn/a 2/geo/a 10/geo/a]"},
		{"the first page", 0, Ref{}, 2, "[1/geo/a 1/geo/b]"},
		{"the second page", 0, Ref{Account: 1, Kind: Geographic, ID: "b"}, 9, "[1/vmn/a 2/geo/a 10/geo/a]"},
		{"after a relay that does not exist", 0, Ref{Account: 1, Kind: VirtualNumber, ID: "b"}, 1, "[2/geo/a]"},
		{"one account", 1, Ref{Account: 1, Kind: Geographic, ID: "a"}, 9, "[1/geo/b 1/vmn/a]"},
		{"an account without relays", 3, Ref{}, 9, "[]"},
	} {
		list, err := s.Scan(t.Context(), tc.acct, tc.cursor, tc.limit)
		got := []string{}
		for _, r := range list {
			got = append(got, fmt.Sprintf("%d/%s/%s", r.Account, r.Kind, r.ID))
		}
		if err != nil || fmt.Sprint(got) != tc.want {
			t.Errorf("%s: relays = %v, error = %v, want %s", tc.name, got, err, tc.want)
		}
	}
}

func relaysAreDeleted(t *testing.T, s *rig) {
	putAll(t, s, relayOf(1, VirtualNumber, "v1", "441"))
	relaytest.NoError(t, s.Delete(t.Context(), 1, VirtualNumber, "v1"))
	if got := candidateIDs(t, s, "441"); got[0] != "" {
		t.Errorf("candidates after Delete = %q, want none", got)
	}
	if err := s.Delete(t.Context(), 1, VirtualNumber, "v1"); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("error of the second Delete = %v, want not found", err)
	}
	putAll(t, s, relayOf(2, VirtualNumber, "v9", "441"))
}

func versionsGrow(t *testing.T, s *rig) {
	lastVersion, err := s.Version(t.Context())
	relaytest.NoError(t, err)
	for _, step := range []struct {
		name   string
		change func() error
	}{
		{"put", func() error { return s.Put(t.Context(), relayOf(1, VirtualNumber, "v1", "441")) }},
		{"repeated put", func() error { return s.Put(t.Context(), relayOf(1, VirtualNumber, "v1", "441")) }},
		{"delete", func() error { return s.Delete(t.Context(), 1, VirtualNumber, "v1") }},
	} {
		relaytest.NoError(t, step.change())
		version, err := s.Version(t.Context())
		if err != nil || version <= lastVersion {
			t.Errorf("version after %s = %d, error = %v, want above %d", step.name, version, err, lastVersion)
		}
		lastVersion = version
	}
}

func relaysAreChanged(t *testing.T, s *rig) {
	putAll(t, s, relayOf(1, VirtualNumber, "v1", "447"))
	oldVersion, err := s.Version(t.Context())
	relaytest.NoError(t, err)
	stores := []*Store{s.Store, s.secondStore(t)}
	dbtest.RunConcurrently(8, func(i int) {
		if _, err := stores[i%2].Change(t.Context(), 1, VirtualNumber, "v1", func(r *Relay) error {
			r.Action.Parameters = append(r.Action.Parameters, fmt.Sprint("http://", i, "/"))
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
	got, err := s.Candidates(t.Context(), []string{"447"})
	if err != nil || len(got[0]) != 1 || len(got[0][0].Action.Parameters) != 9 {
		t.Errorf("candidates = %+v, error = %v, want one relay with 9 parameters", got, err)
	}
	errRefused := errors.New("refused")
	if _, err := s.Change(t.Context(), 1, VirtualNumber, "v1", func(*Relay) error { return errRefused }); err != errRefused { //nolint:errorlint // must not be wrapped
		t.Errorf("error of Change = %v, want %v unchanged", err, errRefused)
	}
	if _, err := s.Change(t.Context(), 2, VirtualNumber, "v1", func(*Relay) error { return nil }); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("error for another account's relay = %v, want not found", err)
	}
	if _, err := s.Change(t.Context(), 1, VirtualNumber, "v1", func(*Relay) error { return nil }); err != nil {
		t.Errorf("error without a change = %v", err)
	}
	if version, err := s.Version(t.Context()); err != nil || version != oldVersion+8 {
		t.Errorf("version = %d, error = %v, want %d", version, err, oldVersion+8)
	}
}

func keysStayInAChange(t *testing.T, s *rig) {
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
	var running sync.WaitGroup
	stores := []*Store{s.Store, s.secondStore(t)}
	for acct := relay.AccountID(1); acct <= 8; acct++ {
		running.Go(func() {
			err := stores[acct%2].Put(t.Context(), relayOf(acct, VirtualNumber, "v1", "447"))
			if err == nil {
				wins.Add(1)
			} else if relay.KindOf(err) != relay.KindConflict {
				t.Error(err)
			}
		})
	}
	running.Wait()
	if wins.Load() != 1 {
		t.Errorf("%d accounts have the number, want 1", wins.Load())
	}
}
