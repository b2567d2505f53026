package sim

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

const (
	firstSIM  ICCID = "8944000000000000001"
	secondSIM ICCID = "8944000000000000002"
	thirdSIM  ICCID = "8944000000000000003"
)

func newSIM(iccid ICCID) SIM {
	return SIM{
		ICCID: iccid, IMSI: "2341500000" + string(iccid[14:]), MSISDN: "4477009" + string(iccid[14:]), Service4G: true,
		Codes: Codes{PIN: "0000", PIN2: "1111", PUK: "12345678", PUK2: "87654321"}, State: Pending,
	}
}

func TestStores(t *testing.T) {
	dbtest.OnEvery(t, func(t *testing.T, open func(t *testing.T) *db.DB) {
		for name, test := range map[string]func(*testing.T, func(*testing.T) *db.DB){
			"records": recordsOfSIMs, "concurrent changes are not lost": concurrentChanges, "pools attach all SIMs or none": poolsAttachAllOrNone,
			"codes that cannot be decrypted":   undecryptableCodes,
			"a scan finds all SIMs of a scope": scanFindsAll, "a search over accounts": searchFindsSIMs, "subscribers": subscribersAreFound, "lists agree with a model": listsAgreeWithAModel,
			"lists count repeated subscribers once": subscribersArePutAgain,
			"one of many concurrent orders begins":  oneConcurrentOrderBegins, "a job settles once": aJobSettlesOnce,
			"Begin may be repeated after the job has run": beginIsRepeatable, "orders for unknown SIMs are refused": ordersForUnknownSIMsAreRefused,
		} {
			t.Run(name, func(t *testing.T) { test(t, open) })
		}
	})
}

func undecryptableCodes(t *testing.T, open func(t *testing.T) *db.DB) {
	db, ctx := open(t), t.Context()
	db.SetSealer(dbtest.Sealer{})
	s := NewSIMs(db)
	relaytest.NoError(t, s.Declare(ctx, 1, []SIM{newSIM(firstSIM), newSIM(secondSIM)}, false))
	restore := dbtest.Tamper(t, db, "sim", "puk", "iccid = '"+string(firstSIM)+"'")
	list, total, err := s.List(ctx, 1, Scope{}, Query{Page: relay.Page{Number: 1, PerPage: 9}})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the total and the length of the list", []int{total, len(list)}, []int{2, 2})
	codes := newSIM(firstSIM).Codes
	codes.PUK = ""
	relaytest.Equal(t, "the codes of the SIMs", []Codes{list[0].Codes, list[1].Codes}, []Codes{codes, newSIM(secondSIM).Codes})
	relaytest.Equal(t, "whether codes of the SIMs cannot be decrypted", []bool{list[0].Undecryptable, list[1].Undecryptable}, []bool{true, false})

	// A change keeps the stored code.
	_, err = s.Change(ctx, 1, firstSIM, func(s *SIM) error { s.State, s.MSISDN = Active, "447700900999"; return nil })
	relaytest.NoError(t, err)
	restore()
	got := relaytest.Must(s.Get(ctx, 1, firstSIM))(t)
	relaytest.Equal(t, "state, codes and Undecryptable after a change", []any{got.State, got.Codes, got.Undecryptable}, []any{Active, newSIM(firstSIM).Codes, false})
}

func recordsOfSIMs(t *testing.T, open func(t *testing.T) *db.DB) {
	s, ctx := NewSIMs(open(t)), t.Context()
	relaytest.NoError(t, s.Declare(ctx, 1, []SIM{newSIM(firstSIM), newSIM(secondSIM)}, false))
	want := newSIM(firstSIM)
	want.RequestedState, want.Limit.Action = Pending, NoAction
	relaytest.Equal(t, "the stored SIM", relaytest.Must(s.Get(ctx, 1, firstSIM))(t), want)
	counts, err := s.CountByState(ctx)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the numbers of SIMs by state", counts, []StateCount{{Account: 1, State: Pending, SIMs: 2}})
	if _, err := s.Get(ctx, 2, firstSIM); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("Get in another account: error %v, want kind not found", err)
	}
	want.State, want.RequestedState, want.Job, want.Subscriber = Active, Suspended, "j1", "s1"
	want.Limit = Limit{Monthly: 1 << 40, Warning: 5, Action: Block}
	want.Recipients = []Recipient{{ID: "r1", Email: "a@example.com", Number: "447700900001"}}
	want.Service4G, want.Service5G = false, true
	got, err := s.Change(ctx, 1, firstSIM, func(s *SIM) error { *s = want; s.Pool = "ignored"; return nil })
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the changed SIM", got, want)
	found, err := s.GetMany(ctx, 1, []ICCID{thirdSIM, firstSIM})
	relaytest.NoError(t, err)
	if len(found) != 1 {
		t.Fatalf("GetMany returned %d SIMs, want 1", len(found))
	}
	relaytest.Equal(t, "the first SIM", found[firstSIM], want)
	testRedeclared(t, s, want)
	testDelete(t, s)
}

// testRedeclared declares an existing SIM with another number.
func testRedeclared(t *testing.T, s *SIMs, want SIM) {
	t.Helper()
	ctx, declaration := t.Context(), newSIM(firstSIM)
	declaration.MSISDN, declaration.Codes = "447700999999", Codes{PIN: "4321"}
	relaytest.NoError(t, s.Declare(ctx, 1, []SIM{declaration}, false))
	want.MSISDN, want.Codes.PIN = declaration.MSISDN, "4321"
	relaytest.Equal(t, "the SIM after another declaration", relaytest.Must(s.Get(ctx, 1, firstSIM))(t), want)
	for _, scope := range []Scope{{}, {Subscriber: "s1"}} {
		q := Query{Page: relay.Page{Number: 1, PerPage: 10}, Filters: []Filter{{Column: "msisdn", Value: declaration.MSISDN}}}
		if got, total, err := s.List(ctx, 1, scope, q); err != nil || total != 1 || got[0].ICCID != firstSIM {
			t.Errorf("scope %+v: %v of %d, error %v; want the first SIM", scope, got, total, err)
		}
	}
	relaytest.NoError(t, s.Declare(ctx, 1, []SIM{declaration}, true))
	want.State, want.RequestedState, want.Job, want.Subscriber, want.Service4G, want.Service5G = Pending, Pending, "", "", true, false
	relaytest.Equal(t, "the SIM after a reset", relaytest.Must(s.Get(ctx, 1, firstSIM))(t), want)
	if got, total, err := s.List(ctx, 1, Scope{Subscriber: "s1"}, Query{Page: relay.Page{Number: 1, PerPage: 10}}); err != nil || total != 0 || len(got) != 0 {
		t.Errorf("SIMs of the subscriber after a reset: %v of %d, error %v; want none", got, total, err)
	}
}

// testDelete deletes all SIMs: no row remains.
func testDelete(t *testing.T, s *SIMs) {
	t.Helper()
	ctx := t.Context()
	for _, iccid := range []ICCID{firstSIM, secondSIM} {
		relaytest.NoError(t, s.Delete(ctx, 1, iccid))
	}
	if err := s.Delete(ctx, 1, firstSIM); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("second Delete: error %v, want kind not found", err)
	}
	checkCounts(t, s.db)
	rowCount, err := db.Value[int](ctx, s.db, "test", "SELECT (SELECT count(*) FROM sim) + (SELECT count(*) FROM sim_count WHERE n <> 0)")
	if err != nil || rowCount != 0 {
		t.Errorf("%d rows remain, error %v; want 0", rowCount, err)
	}
}

func concurrentChanges(t *testing.T, open func(t *testing.T) *db.DB) {
	s, ctx := NewSIMs(open(t)), t.Context()
	relaytest.NoError(t, s.Declare(ctx, 1, []SIM{newSIM(firstSIM)}, false))
	dbtest.RunConcurrently(8, func(_ int) {
		for range 5 {
			if _, err := s.Change(ctx, 1, firstSIM, func(s *SIM) error { s.Limit.Monthly++; return nil }); err != nil {
				t.Error(err)
			}
		}
	})
	relaytest.Equal(t, "the monthly limit", relaytest.Must(s.Get(ctx, 1, firstSIM))(t).Limit.Monthly, 40)
	errRefused := errors.New("refused")
	if _, err := s.Change(ctx, 1, firstSIM, func(s *SIM) error { s.Limit.Monthly = 0; return errRefused }); !errors.Is(err, errRefused) {
		t.Errorf("Change with a refusal: error %v, want %v", err, errRefused)
	}
	if _, err := s.Change(ctx, 1, thirdSIM, func(*SIM) error { return nil }); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("Change of an unknown SIM: error %v, want kind not found", err)
	}
}

func poolsAttachAllOrNone(t *testing.T, open func(t *testing.T) *db.DB) {
	db, ctx := open(t), t.Context()
	s := NewSIMs(db)
	relaytest.NoError(t, s.Declare(ctx, 1, []SIM{newSIM(firstSIM), newSIM(secondSIM)}, false))
	relaytest.NoError(t, s.Declare(ctx, 2, []SIM{newSIM(thirdSIM)}, false))
	relaytest.NoError(t, NewPools(db).Put(ctx, 1, Pool{ID: "p1"}))
	relaytest.NoError(t, NewPools(db).Put(ctx, 1, Pool{ID: "p2"}))
	for _, tc := range []struct {
		name string
		err  error
		want string
	}{
		{"attach a SIM of another account", s.Attach(ctx, 1, "p1", []ICCID{firstSIM, thirdSIM}), "Invalid ICCID: 8944000000000000003."},
		{"attach to an unknown pool", s.Attach(ctx, 2, "p1", []ICCID{thirdSIM}), "Invalid pool."},
		{"attach a SIM without a pool", s.Attach(ctx, 1, "p1", []ICCID{firstSIM}), ""},
		{"attach the same SIM and another", s.Attach(ctx, 1, "p1", []ICCID{firstSIM, secondSIM}), ""},
		{"attach a SIM of another pool", s.Attach(ctx, 1, "p2", []ICCID{firstSIM}), "ICCID 8944000000000000001 is in another pool: detach it first."},
		{"detach from the wrong pool", s.Detach(ctx, 1, "p2", []ICCID{firstSIM}), "Invalid ICCID: 8944000000000000001."},
		{"detach with a SIM of another account", s.Detach(ctx, 1, "p1", []ICCID{firstSIM, thirdSIM}), "Invalid ICCID: 8944000000000000003."},
		{"detach", s.Detach(ctx, 1, "p1", []ICCID{firstSIM}), ""},
		{"detach again", s.Detach(ctx, 1, "p1", []ICCID{firstSIM}), "Invalid ICCID: 8944000000000000001."},
	} {
		text := ""
		if tc.err != nil {
			text = tc.err.Error()
		}
		if text != tc.want {
			t.Errorf("%s: error %q, want %q", tc.name, text, tc.want)
		}
	}
	relaytest.NoError(t, s.Attach(ctx, 1, "p1", []ICCID{firstSIM}))
	detach := func() error { return s.changePool(ctx, 1, "p1", "a call", []ICCID{firstSIM}) }
	for range 2 { // the caller repeats a call after a lost response
		if err := detach(); err != nil {
			t.Errorf("repeated detachment: %v", err)
		}
	}
	relaytest.NoError(t, s.Attach(ctx, 1, "p1", []ICCID{firstSIM}))
	relaytest.NoError(t, detach())
	relaytest.Equal(t, "the pool after a detachment that is repeated after an attachment", relaytest.Must(s.Get(ctx, 1, firstSIM))(t).Pool, "p1")
	relaytest.NoError(t, s.Detach(ctx, 1, "p1", []ICCID{firstSIM, firstSIM}))
	checkCounts(t, db)
	q := Query{Page: relay.Page{Number: 1, PerPage: 10}}
	got, total, err := s.List(ctx, 1, Scope{Pool: "p1"}, q)
	if err != nil || total != 1 || !slices.Equal(iccidsOf(got), []ICCID{secondSIM}) || got[0].Pool != "p1" {
		t.Errorf("SIMs of the pool: %v of %d, error %v; want the second SIM", got, total, err)
	}
	relaytest.Equal(t, "the pool of the first SIM", relaytest.Must(s.Get(ctx, 1, firstSIM))(t).Pool, "")
}

func scanFindsAll(t *testing.T, open func(t *testing.T) *db.DB) {
	s, ctx := NewSIMs(open(t)), t.Context()
	var want []ICCID
	for i := range 25 {
		newest := newSIM(ICCID("89440000000000" + strconv.Itoa(10000+i)))
		relaytest.NoError(t, s.Declare(ctx, 1, []SIM{newest}, false))
		want = append(want, newest.ICCID)
	}
	var got []ICCID
	for after := ICCID(""); ; after = got[len(got)-1] {
		page, err := s.Scan(ctx, 1, Scope{}, after, 10)
		relaytest.NoError(t, err)
		if len(page) == 0 {
			break
		}
		got = append(got, page...)
	}
	if !slices.Equal(got, want) {
		t.Errorf("scanned SIMs = %v, want %v", got, want)
	}
}

func searchFindsSIMs(t *testing.T, open func(t *testing.T) *db.DB) {
	db := open(t)
	s, pools, ctx := NewSIMs(db), NewPools(db), t.Context()
	relaytest.NoError(t, s.Declare(ctx, 1, []SIM{newSIM(firstSIM), newSIM(secondSIM)}, false))
	relaytest.NoError(t, s.Declare(ctx, 2, []SIM{newSIM(firstSIM), newSIM(thirdSIM)}, false))
	relaytest.NoError(t, pools.Put(ctx, 1, Pool{ID: "p1", Name: "Meters"}))
	relaytest.NoError(t, s.Attach(ctx, 1, "p1", []ICCID{secondSIM}))
	_, err := s.Change(ctx, 2, thirdSIM, func(s *SIM) error { s.State, s.RequestedState = Active, Active; return nil })
	relaytest.NoError(t, err)
	for name, tc := range map[string]struct {
		search Search
		want   string
	}{
		"an empty search":           {Search{}, "1/1 1/2 2/1 2/3"},
		"an account":                {Search{Account: 2}, "2/1 2/3"},
		"a part of the ICCID":       {Search{Text: "0000001"}, "1/1 2/1"},
		"a part of the MSISDN":      {Search{Text: "447700900003"}, "2/3"},
		"a part of the IMSI":        {Search{Text: "150000000002"}, "1/2"},
		"the ID of the pool":        {Search{Text: "p1"}, "1/2"},
		"a pool":                    {Search{Pool: "p1"}, "1/2"},
		"a state":                   {Search{State: Active}, "2/3"},
		"a wildcard":                {Search{Text: "%"}, ""},
		"after a SIM":               {Search{After: Ref{Account: 1, ICCID: firstSIM}, Limit: 2}, "1/2 2/1"},
		"after a SIM of an account": {Search{Account: 2, After: Ref{Account: 2, ICCID: firstSIM}}, "2/3"},
	} {
		tc.search.Limit = cmp.Or(tc.search.Limit, 10)
		matches, err := s.Find(ctx, tc.search)
		relaytest.NoError(t, err)
		var got []string
		for _, match := range matches {
			got = append(got, match.Account.String()+"/"+string(match.ICCID[18:]))
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: got %v, want %s", name, got, tc.want)
		}
	}
}

func subscribersAreFound(t *testing.T, open func(t *testing.T) *db.DB) {
	s, ctx := NewSubscribers(open(t)), t.Context()
	for i, name := range []string{"Öhlund Ann", "smith Bo", "Smith Cy", "Smithers Di"} {
		surname, forename, _ := strings.Cut(name, " ")
		relaytest.NoError(t, s.Put(ctx, 1, Subscriber{ID: strconv.Itoa(i), Surname: surname, Forename: forename}))
	}
	for _, tc := range []struct {
		name  string
		query Query
		want  []string
	}{
		{"all, in the order of their creation", Query{}, []string{"0", "1", "2", "3"}},
		{"by surname, descending", Query{OrderBy: "surname", Descending: true}, []string{"0", "3", "2", "1"}},
		{"a surname, ignoring case", Query{Filters: []Filter{{Column: "surname", Value: "SMITH"}}}, []string{"1", "2"}},
		{"the beginning of a surname, by forename", Query{OrderBy: "forename", Descending: true, Filters: []Filter{{Column: "surname", Match: StartsWith, Value: "smith"}}}, []string{"3", "2", "1"}},
		{"all but one surname", Query{Filters: []Filter{{Column: "surname", Match: NotEquals, Value: "öhlund"}}}, []string{"1", "2", "3"}},
		{"two filters", Query{Filters: []Filter{{Column: "surname", Value: "smith"}, {Column: "forename", Match: NotEquals, Value: "bo"}}}, []string{"2"}},
	} {
		tc.query.Page = relay.Page{Number: 1, PerPage: 10}
		subscribers, total, err := s.List(ctx, 1, tc.query)
		var got []string
		for _, subscriber := range subscribers {
			got = append(got, subscriber.ID)
		}
		if err != nil || total != len(tc.want) || !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %v of %d, error %v; want %v", tc.name, got, total, err, tc.want)
		}
	}
	if _, err := s.Get(ctx, 2, "0"); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("Get in another account: error %v, want kind not found", err)
	}
}

func subscribersArePutAgain(t *testing.T, open func(t *testing.T) *db.DB) {
	s := NewSubscribers(open(t))
	for i := range 20 {
		for _, surname := range []string{"Smith", "Tab\ter", "Smythe"} { // a repeated job may put the same or another surname
			relaytest.NoError(t, s.Put(t.Context(), 1, Subscriber{ID: strconv.Itoa(10 + i), Forename: "A", Surname: surname}))
		}
	}
	checkCounts(t, s.db)
	q := Query{Page: relay.Page{Number: 4, PerPage: 6}, Filters: []Filter{{Column: "surname", Match: StartsWith, Value: "SMYTH"}}}
	found, total, err := s.List(t.Context(), 1, q)
	if err != nil || total != 20 || len(found) != 2 || found[1].ID != "29" || found[1].Surname != "Smythe" {
		t.Errorf("subscribers = %+v of %d, error %v; want the last 2 of 20", found, total, err)
	}
}
