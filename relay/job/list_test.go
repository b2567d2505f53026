package job

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/relaytest"
)

// ids returns the ids of a list, and its total.
func (s *Store) ids(t *testing.T, acct relay.AccountID, f Filter, offset, limit int) ([]string, int) {
	t.Helper()
	f.List = "sims"
	found, total, err := s.List(t.Context(), acct, f, offset, limit)
	relaytest.NoError(t, err)
	out := []string{}
	for _, j := range found {
		out = append(out, j.ID)
	}
	return out, total
}

func lists(t *testing.T, s *Store) {
	ctx, now := t.Context(), still()
	create := func(acct relay.AccountID, id, list, kind, name string) Job {
		// All at one time: the order is that of the calls.
		j := Job{ID: id, Account: acct, Kind: Kind(kind), List: list, Name: name, CreatedAt: now, Keep: time.Hour}
		relaytest.NoError(t, s.Create(ctx, j))
		return j
	}
	c := create(1, "c", "sims", "sim.on", "")
	b := create(1, "b", "sims", "sim.off", "a|b")
	create(1, "a", "sims", "sim.on", "")
	create(1, "a", "sims", "sim.on", "") // the same again
	create(1, "elsewhere", "other", "sim.on", "")
	create(1, "nowhere", "", "sim.on", "")
	create(2, "foreign", "sims", "sim.on", "")
	for _, j := range []*Job{&b, &c} {
		leased, taken, err := s.Lease(ctx, Ref{Account: 1, ID: j.ID}, now, now.Add(time.Minute))
		if err != nil || !taken {
			t.Fatal(taken, err)
		}
		*j = leased
	}
	for range 2 { // a job ends once
		relaytest.NoError(t, s.Finish(ctx, b, Outcome{Error: "no"}, now))
	}
	for range 2 { // the caller repeats a call whose answer was lost
		relaytest.NoError(t, s.Finish(ctx, c, Outcome{RetryAt: now.Add(time.Hour), Waits: true}, now))
	}
	if got, err := s.Get(ctx, 1, "c"); err != nil {
		t.Error(err)
	} else {
		relaytest.Equal(t, "a run that waited, Tries", got.Tries, 0)
		relaytest.Equal(t, "a run that waited, State", got.State, Processing)
	}
	testFilters(t, s)
	testSearch(t, s)
}

// testSearch finds the jobs of lists over accounts and lists, newest first.
func testSearch(t *testing.T, s *Store) {
	for name, tc := range map[string]struct {
		f    Search
		want string
	}{
		"all":                 {Search{Limit: 10}, "[foreign nowhere elsewhere a b c]"},
		"of an account":       {Search{Account: 2, Limit: 10}, "[foreign]"},
		"a state":             {Search{State: Failed, Limit: 10}, "[b]"},
		"a kind":              {Search{Account: 1, Kind: "sim.on", Limit: 2}, "[nowhere elsewhere]"},
		"behind another page": {Search{Before: 3, Limit: 10}, "[b c]"},
	} {
		found, err := s.Find(t.Context(), tc.f)
		relaytest.NoError(t, err)
		ids := []string{}
		for _, j := range found {
			ids = append(ids, j.ID)
		}
		if fmt.Sprint(ids) != tc.want {
			t.Errorf("%s: %v, want %s", name, ids, tc.want)
		}
	}
}

func testFilters(t *testing.T, s *Store) {
	for name, tc := range map[string]struct {
		f             Filter
		offset, limit int
		want          string
		total         int
	}{
		"all, in the order of creation": {Filter{}, 0, 10, "[c b a]", 3},
		"the newest first":              {Filter{Newest: true}, 0, 2, "[a b]", 3},
		"the oldest, newest first":      {Filter{Newest: true}, 2, 2, "[c]", 3},
		"a later page":                  {Filter{}, 1, 1, "[b]", 3},
		"the last page":                 {Filter{}, 2, 2, "[a]", 3},
		"beyond the end":                {Filter{}, 7, 10, "[]", 3},
		"by state":                      {Filter{State: Failed}, 0, 10, "[b]", 1},
		"by a state that it left":       {Filter{State: Queued}, 0, 10, "[a]", 1},
		"by kind":                       {Filter{Kind: "sim.on"}, 0, 10, "[c a]", 2},
		"by kind and state":             {Filter{Kind: "sim.on", State: Processing}, 0, 10, "[c]", 1},
		"by name":                       {Filter{Name: "a|b"}, 0, 10, "[b]", 1},
		"by everything":                 {Filter{Name: "a|b", Kind: "sim.off", State: Failed}, 0, 10, "[b]", 1},
		"by what there is not":          {Filter{Name: "b"}, 0, 10, "[]", 0},
	} {
		if got, total := s.ids(t, 1, tc.f, tc.offset, tc.limit); fmt.Sprint(got) != tc.want || total != tc.total {
			t.Errorf("%s: %v of %d", name, got, total)
		}
	}
	if found, total, err := s.List(t.Context(), 1, Filter{}, 0, 10); len(found) > 0 || total != 0 || err != nil {
		t.Errorf("the list without a name: %v of %d, %v", found, total, err)
	}
}

func expiredLeave(t *testing.T, s *Store) {
	now := still()
	for i := range 5 {
		j := Job{ID: fmt.Sprint("j", i), Account: 1, Kind: "k", List: "sims", Name: "n", CreatedAt: now, Keep: time.Minute}
		relaytest.NoError(t, s.Create(t.Context(), j))
		ended := now
		if i == 2 {
			continue
		} else if i < 2 {
			ended = now.Add(-time.Hour)
		}
		relaytest.NoError(t, s.Finish(t.Context(), j, Outcome{}, ended))
	}
	for range 2 { // before a sweep and after it
		for _, f := range []Filter{{}, {Name: "n"}, {Kind: "k"}} {
			if got, total := s.ids(t, 1, f, 0, 10); !slices.Equal(got, []string{"j2", "j3", "j4"}) || total != 3 {
				t.Errorf("%+v: %v of %d", f, got, total)
			}
		}
		if got, total := s.ids(t, 1, Filter{State: Completed, Kind: "k", Name: "n"}, 0, 10); len(got) != 2 || total != 2 {
			t.Errorf("completed: %v of %d", got, total)
		}
		relaytest.NoError(t, s.Sweep(t.Context(), now))
	}
}
