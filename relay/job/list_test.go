package job

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/relaytest"
)

// ids returns the ids of a page of the list "sims" and the total.
func (s *Store) ids(t *testing.T, acct relay.AccountID, f Filter, offset, limit int) ([]string, int) {
	t.Helper()
	f.List = "sims"
	jobs, total, err := s.List(t.Context(), acct, f, offset, limit)
	relaytest.NoError(t, err)
	list := []string{}
	for _, j := range jobs {
		list = append(list, j.ID)
	}
	return list, total
}

func testLists(t *testing.T, s *Store) {
	ctx, now := t.Context(), storeNow()
	create := func(acct relay.AccountID, id, list, kind, name string) Job {
		// All jobs have the same time; their order is that of the calls.
		j := Job{ID: id, Account: acct, Kind: Kind(kind), List: list, Name: name, CreatedAt: now, Retention: time.Hour}
		relaytest.NoError(t, s.Create(ctx, j))
		return j
	}
	c := create(1, "c", "sims", "sim.on", "")
	b := create(1, "b", "sims", "sim.off", "a|b")
	create(1, "a", "sims", "sim.on", "")
	create(1, "a", "sims", "sim.on", "") // a duplicate
	create(1, "elsewhere", "other", "sim.on", "")
	create(1, "nowhere", "", "sim.on", "")
	create(2, "foreign", "sims", "sim.on", "")
	for _, j := range []*Job{&b, &c} {
		job, leased, err := s.Lease(ctx, Ref{Account: 1, ID: j.ID}, now, now.Add(time.Minute))
		if err != nil || !leased {
			t.Fatalf("Lease of %s: leased %v, error %v", j.ID, leased, err)
		}
		*j = job
	}
	for range 2 { // the second call changes nothing
		relaytest.NoError(t, s.Finish(ctx, b, Outcome{Error: "no"}, now))
	}
	for range 2 { // the caller repeats a call after a lost response
		relaytest.NoError(t, s.Finish(ctx, c, Outcome{RetryAt: now.Add(time.Hour), Waits: true}, now))
	}
	if got, err := s.Get(ctx, 1, "c"); err != nil {
		t.Error(err)
	} else {
		relaytest.Equal(t, "the tries after a pause", got.Tries, 0)
		relaytest.Equal(t, "the state after a pause", got.State, Processing)
	}
	testFilters(t, s)
	testSearch(t, s)
}

// testSearch finds jobs of all accounts and lists, newest first.
func testSearch(t *testing.T, s *Store) {
	for name, tc := range map[string]struct {
		search Search
		want   string
	}{
		"all":        {Search{Limit: 10}, "[foreign nowhere elsewhere a b c]"},
		"an account": {Search{Account: 2, Limit: 10}, "[foreign]"},
		"state":      {Search{State: Failed, Limit: 10}, "[b]"},
		"kind":       {Search{Account: 1, Kind: "sim.on", Limit: 2}, "[nowhere elsewhere]"},
		"next page":  {Search{BeforePlace: 3, Limit: 10}, "[b c]"},
	} {
		jobs, err := s.Find(t.Context(), tc.search)
		relaytest.NoError(t, err)
		ids := []string{}
		for _, j := range jobs {
			ids = append(ids, j.ID)
		}
		if fmt.Sprint(ids) != tc.want {
			t.Errorf("%s: got %v, want %s", name, ids, tc.want)
		}
	}
}

func testFilters(t *testing.T, s *Store) {
	for name, tc := range map[string]struct {
		filter        Filter
		offset, limit int
		want          string
		total         int
	}{
		"all, in the order of creation": {Filter{}, 0, 10, "[c b a]", 3},
		"newest first":                  {Filter{NewestFirst: true}, 0, 2, "[a b]", 3},
		"last page, newest first":       {Filter{NewestFirst: true}, 2, 2, "[c]", 3},
		"second page":                   {Filter{}, 1, 1, "[b]", 3},
		"last page":                     {Filter{}, 2, 2, "[a]", 3},
		"beyond the end":                {Filter{}, 7, 10, "[]", 3},
		"by state":                      {Filter{State: Failed}, 0, 10, "[b]", 1},
		"by the queued state":           {Filter{State: Queued}, 0, 10, "[a]", 1},
		"by kind":                       {Filter{Kind: "sim.on"}, 0, 10, "[c a]", 2},
		"by kind and state":             {Filter{Kind: "sim.on", State: Processing}, 0, 10, "[c]", 1},
		"by name":                       {Filter{Name: "a|b"}, 0, 10, "[b]", 1},
		"by name, kind and state":       {Filter{Name: "a|b", Kind: "sim.off", State: Failed}, 0, 10, "[b]", 1},
		"by an unknown name":            {Filter{Name: "b"}, 0, 10, "[]", 0},
	} {
		if got, total := s.ids(t, 1, tc.filter, tc.offset, tc.limit); fmt.Sprint(got) != tc.want || total != tc.total {
			t.Errorf("%s: got %v of %d, want %s of %d", name, got, total, tc.want, tc.total)
		}
	}
	if jobs, total, err := s.List(t.Context(), 1, Filter{}, 0, 10); len(jobs) > 0 || total != 0 || err != nil {
		t.Errorf("list without a name: %v of %d, error %v; want none", jobs, total, err)
	}
}

func testExpiredJobs(t *testing.T, s *Store) {
	now := storeNow()
	for i := range 5 {
		j := Job{ID: fmt.Sprint("j", i), Account: 1, Kind: "k", List: "sims", Name: "n", CreatedAt: now, Retention: time.Minute}
		relaytest.NoError(t, s.Create(t.Context(), j))
		endedAt := now
		if i == 2 {
			continue
		} else if i < 2 {
			endedAt = now.Add(-time.Hour)
		}
		relaytest.NoError(t, s.Finish(t.Context(), j, Outcome{}, endedAt))
	}
	for range 2 { // before and after a sweep
		for _, f := range []Filter{{}, {Name: "n"}, {Kind: "k"}} {
			if got, total := s.ids(t, 1, f, 0, 10); !slices.Equal(got, []string{"j2", "j3", "j4"}) || total != 3 {
				t.Errorf("filter %+v: got %v of %d, want j2 to j4", f, got, total)
			}
		}
		if got, total := s.ids(t, 1, Filter{State: Completed, Kind: "k", Name: "n"}, 0, 10); len(got) != 2 || total != 2 {
			t.Errorf("completed jobs: %v of %d, want 2", got, total)
		}
		relaytest.NoError(t, s.Sweep(t.Context(), now))
	}
}
