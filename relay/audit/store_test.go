package audit

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db/dbtest"
)

func TestStore(t *testing.T) {
	dbtest.Each(t, NewStore, map[string]func(*testing.T, *Store){
		"an entry is finished":                entryIsFinished,
		"lists are filtered":                  listsAreFiltered,
		"pages continue a list, newest first": listsArePaged,
	})
}

func entry(n int) Entry {
	return Entry{
		ID: fmt.Sprintf("e%d", n), At: dbtest.TimeAt(float64(n)), Actor: []string{"anna", "admin token"}[n%2], Role: "admin", Address: "192.0.2.1",
		Operation: []string{"addUser", "replayEvents", "putInventory"}[n%3], Account: relay.AccountID(n % 2), Outcome: Started,
		Target: fmt.Sprint("t", n), Request: json.RawMessage(`{"a":1}`),
	}
}

func entryIsFinished(t *testing.T, s *Store) {
	e := entry(1)
	if err := s.Begin(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	e.Outcome, e.Status, e.Account, e.Target, e.Before, e.After = Done, 200, 1<<40, "anna", json.RawMessage(`{"x":1}`), json.RawMessage(`{"x":2}`)
	if err := s.Finish(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	list, cursor, err := s.List(t.Context(), Filter{Limit: 10, Account: 1 << 40})
	if diff := cmp.Diff([]Entry{e}, list); err != nil || cursor != "" || diff != "" {
		t.Errorf("entries differ (-want +got):\n%s\ncursor %q, error %v", diff, cursor, err)
	}
	e.ID = "none"
	if err := s.Finish(t.Context(), e); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("Finish of an unknown entry: error %v, want kind not found", err)
	}
}

// ids returns the ids of the entries of a page and the cursor of the next page.
func ids(t *testing.T, s *Store, f Filter) (ids []string, cursor string) {
	t.Helper()
	list, cursor, err := s.List(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		ids = append(ids, e.ID)
	}
	return ids, cursor
}

func listsAreFiltered(t *testing.T, s *Store) {
	for n := range 6 {
		if err := s.Begin(t.Context(), entry(n)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		name   string
		filter Filter
		want   []string
	}{
		{"all", Filter{}, []string{"e5", "e4", "e3", "e2", "e1", "e0"}},
		{"an actor", Filter{Actor: "anna"}, []string{"e4", "e2", "e0"}},
		{"an operation", Filter{Operation: "addUser"}, []string{"e3", "e0"}},
		{"an account", Filter{Account: 1}, []string{"e5", "e3", "e1"}},
		{"a target", Filter{Target: "t2"}, []string{"e2"}},
		{"an outcome", Filter{Outcome: Done}, nil},
		{"a period", Filter{From: dbtest.TimeAt(1), To: dbtest.TimeAt(2)}, []string{"e2", "e1"}},
		{"an actor and an operation", Filter{Actor: "admin token", Operation: "putInventory"}, []string{"e5"}},
	} {
		tc.filter.Limit = 10
		if got, _ := ids(t, s, tc.filter); !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}

func listsArePaged(t *testing.T, s *Store) {
	for n := range 5 {
		if err := s.Begin(t.Context(), entry(n)); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	f := Filter{Limit: 2}
	for pages := 1; ; pages++ {
		page, cursor := ids(t, s, f)
		got = append(got, page...)
		if f.Cursor = cursor; cursor == "" {
			if pages != 3 {
				t.Errorf("got %d pages, want 3", pages)
			}
			break
		}
	}
	if want := []string{"e4", "e3", "e2", "e1", "e0"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
