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
		"an entry is completed":                 completed,
		"a list is filtered":                    filtered,
		"pages follow each other, newest first": paged,
	})
}

func entry(n int) Entry {
	return Entry{
		ID: fmt.Sprintf("e%d", n), At: dbtest.At(float64(n)), Actor: []string{"anna", "admin token"}[n%2], Role: "admin", Address: "192.0.2.1",
		Operation: []string{"addUser", "replayEvents", "putInventory"}[n%3], Account: relay.AccountID(n % 2), Outcome: Started,
		Target: fmt.Sprint("t", n), Request: json.RawMessage(`{"a":1}`),
	}
}

func completed(t *testing.T, s *Store) {
	e := entry(1)
	if err := s.Begin(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	e.Outcome, e.Status, e.Account, e.Target, e.Before, e.After = Done, 200, 1<<40, "anna", json.RawMessage(`{"x":1}`), json.RawMessage(`{"x":2}`)
	if err := s.Finish(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	list, next, err := s.List(t.Context(), Filter{Limit: 10, Account: 1 << 40})
	if diff := cmp.Diff([]Entry{e}, list); err != nil || next != "" || diff != "" {
		t.Errorf("%s, %q, %v", diff, next, err)
	}
	e.ID = "none"
	if err := s.Finish(t.Context(), e); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("one that was not begun: %v", err)
	}
}

func ids(t *testing.T, s *Store, f Filter) (ids []string, next string) {
	t.Helper()
	list, next, err := s.List(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		ids = append(ids, e.ID)
	}
	return ids, next
}

func filtered(t *testing.T, s *Store) {
	for n := range 6 {
		if err := s.Begin(t.Context(), entry(n)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		name string
		f    Filter
		want []string
	}{
		{"all", Filter{}, []string{"e5", "e4", "e3", "e2", "e1", "e0"}},
		{"of an actor", Filter{Actor: "anna"}, []string{"e4", "e2", "e0"}},
		{"of an operation", Filter{Operation: "addUser"}, []string{"e3", "e0"}},
		{"of an account", Filter{Account: 1}, []string{"e5", "e3", "e1"}},
		{"of a target", Filter{Target: "t2"}, []string{"e2"}},
		{"of an outcome", Filter{Outcome: Done}, nil},
		{"of a time", Filter{From: dbtest.At(1), To: dbtest.At(2)}, []string{"e2", "e1"}},
		{"of several", Filter{Actor: "admin token", Operation: "putInventory"}, []string{"e5"}},
	} {
		tc.f.Limit = 10
		if got, _ := ids(t, s, tc.f); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

func paged(t *testing.T, s *Store) {
	for n := range 5 {
		if err := s.Begin(t.Context(), entry(n)); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	f := Filter{Limit: 2}
	for pages := 1; ; pages++ {
		page, next := ids(t, s, f)
		got = append(got, page...)
		if f.Cursor = next; next == "" {
			if pages != 3 {
				t.Errorf("%d pages", pages)
			}
			break
		}
	}
	if want := []string{"e4", "e3", "e2", "e1", "e0"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
