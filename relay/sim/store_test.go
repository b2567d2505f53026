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

func declared(iccid ICCID) SIM {
	return SIM{
		ICCID: iccid, IMSI: "2341500000" + string(iccid[14:]), MSISDN: "4477009" + string(iccid[14:]), Service4G: true,
		Codes: Codes{PIN: "0000", PIN2: "1111", PUK: "12345678", PUK2: "87654321"}, State: Pending,
	}
}

func TestStores(t *testing.T) {
	dbtest.OnEvery(t, func(t *testing.T, open func(t *testing.T) *db.DB) {
		for name, test := range map[string]func(*testing.T, func(*testing.T) *db.DB){
			"records": recordsOfSIMs, "changes of one are not lost": changesOfOneSIM, "pools take all or none": poolsTakeAllOrNone,
			"codes that do not open":      unopenedCodes,
			"a walk finds all of a scope": scanFindsAll, "a search over accounts": searchFinds, "subscribers": subscribersAreFound, "lists agree with a model": listsAgreeWithAModel,
			"lists of subscribers count what is put again": subscribersArePutAgain,
			"one of many orders gets the SIM":              oneOfManyOrdersGetsTheSIM, "a job settles once": aJobSettlesOnce,
			"a job that has run since it began has begun": aJobThatHasRunHasBegun, "an order for a SIM that is not there": anOrderForNoSIM,
		} {
			t.Run(name, func(t *testing.T) { test(t, open) })
		}
	})
}

func unopenedCodes(t *testing.T, open func(t *testing.T) *db.DB) {
	db, ctx := open(t), t.Context()
	db.SetSealer(dbtest.Sealer{})
	s := NewSIMs(db)
	relaytest.NoError(t, s.Declare(ctx, 1, []SIM{declared(firstSIM), declared(secondSIM)}, false))
	restore := dbtest.Tamper(t, db, "sim", "puk", "iccid = '"+string(firstSIM)+"'")
	list, total, err := s.List(ctx, 1, Scope{}, Query{Page: relay.Page{Number: 1, PerPage: 9}})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "number of SIMs", []int{total, len(list)}, []int{2, 2})
	codes := declared(firstSIM).Codes
	codes.PUK = ""
	relaytest.Equal(t, "codes of the SIMs", []Codes{list[0].Codes, list[1].Codes}, []Codes{codes, declared(secondSIM).Codes})
	relaytest.Equal(t, "SIMs with codes that do not open", []bool{list[0].Unopened, list[1].Unopened}, []bool{true, false})

	// A change leaves the code as it is.
	_, err = s.Change(ctx, 1, firstSIM, func(one *SIM) error { one.State, one.MSISDN = Active, "447700900999"; return nil })
	relaytest.NoError(t, err)
	restore()
	got := relaytest.Must(s.Get(ctx, 1, firstSIM))(t)
	relaytest.Equal(t, "SIM after a change", []any{got.State, got.Codes, got.Unopened}, []any{Active, declared(firstSIM).Codes, false})
}

func recordsOfSIMs(t *testing.T, open func(t *testing.T) *db.DB) {
	s, ctx := NewSIMs(open(t)), t.Context()
	relaytest.NoError(t, s.Declare(ctx, 1, []SIM{declared(firstSIM), declared(secondSIM)}, false))
	want := declared(firstSIM)
	want.Requested, want.Limit.Cap = Pending, NoCap
	relaytest.Equal(t, "result of Get", relaytest.Must(s.Get(ctx, 1, firstSIM))(t), want)
	counts, err := s.CountByState(ctx)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "SIMs by state", counts, []StateCount{{Account: 1, State: Pending, SIMs: 2}})
	if _, err := s.Get(ctx, 2, firstSIM); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("another account's: %v", err)
	}
	want.State, want.Requested, want.Job, want.Subscriber = Active, Suspended, "j1", "s1"
	want.Limit = Limit{Monthly: 1 << 40, Warning: 5, Cap: Block}
	want.Recipients = []Recipient{{ID: "r1", Email: "a@example.com", Number: "447700900001"}}
	want.Service4G, want.Service5G = false, true
	got, err := s.Change(ctx, 1, firstSIM, func(x *SIM) error { *x = want; x.Pool = "not here"; return nil })
	relaytest.NoError(t, err)
	relaytest.Equal(t, "result of Change", got, want)
	all, err := s.GetMany(ctx, 1, []ICCID{thirdSIM, firstSIM})
	relaytest.NoError(t, err)
	if len(all) != 1 {
		t.Fatalf("result of GetMany: %d results, want %d", len(all), 1)
	}
	relaytest.Equal(t, "result of GetMany, [firstSIM]", all[firstSIM], want)
	testRedeclared(t, s, want)
	testForgotten(t, s)
}

// testRedeclared says again what lives on, with another number.
func testRedeclared(t *testing.T, s *SIMs, want SIM) {
	t.Helper()
	ctx, again := t.Context(), declared(firstSIM)
	again.MSISDN, again.Codes = "447700999999", Codes{PIN: "4321"}
	relaytest.NoError(t, s.Declare(ctx, 1, []SIM{again}, false))
	want.MSISDN, want.Codes.PIN = again.MSISDN, "4321"
	relaytest.Equal(t, "declared again", relaytest.Must(s.Get(ctx, 1, firstSIM))(t), want)
	for _, in := range []Scope{{}, {Subscriber: "s1"}} {
		q := Query{Page: relay.Page{Number: 1, PerPage: 10}, Filters: []Filter{{Column: "msisdn", Value: again.MSISDN}}}
		if got, total, err := s.List(ctx, 1, in, q); err != nil || total != 1 || got[0].ICCID != firstSIM {
			t.Errorf("%+v: %v of %d, %v", in, got, total, err)
		}
	}
	relaytest.NoError(t, s.Declare(ctx, 1, []SIM{again}, true))
	want.State, want.Requested, want.Job, want.Subscriber, want.Service4G, want.Service5G = Pending, Pending, "", "", true, false
	relaytest.Equal(t, "reset", relaytest.Must(s.Get(ctx, 1, firstSIM))(t), want)
	if got, total, err := s.List(ctx, 1, Scope{Subscriber: "s1"}, Query{Page: relay.Page{Number: 1, PerPage: 10}}); err != nil || total != 0 || len(got) != 0 {
		t.Errorf("the subscriber still has %v of %d, %v", got, total, err)
	}
}

// testForgotten deletes what there is: nothing stays behind.
func testForgotten(t *testing.T, s *SIMs) {
	t.Helper()
	ctx := t.Context()
	for _, iccid := range []ICCID{firstSIM, secondSIM} {
		relaytest.NoError(t, s.Delete(ctx, 1, iccid))
	}
	if err := s.Delete(ctx, 1, firstSIM); relay.KindOf(err) != relay.KindNotFound {
		t.Error(err)
	}
	countsAgree(t, s.db)
	left, err := db.Value[int](ctx, s.db, "test", "SELECT (SELECT count(*) FROM sim) + (SELECT count(*) FROM sim_count WHERE n <> 0)")
	if err != nil || left != 0 {
		t.Errorf("%d rows stayed, %v", left, err)
	}
}

func changesOfOneSIM(t *testing.T, open func(t *testing.T) *db.DB) {
	s, ctx := NewSIMs(open(t)), t.Context()
	relaytest.NoError(t, s.Declare(ctx, 1, []SIM{declared(firstSIM)}, false))
	dbtest.Together(8, func(_ int) {
		for range 5 {
			if _, err := s.Change(ctx, 1, firstSIM, func(x *SIM) error { x.Limit.Monthly++; return nil }); err != nil {
				t.Error(err)
			}
		}
	})
	relaytest.Equal(t, "result of Get, Limit.Monthly", relaytest.Must(s.Get(ctx, 1, firstSIM))(t).Limit.Monthly, 40)
	refusal := errors.New("no")
	if _, err := s.Change(ctx, 1, firstSIM, func(x *SIM) error { x.Limit.Monthly = 0; return refusal }); !errors.Is(err, refusal) {
		t.Error(err)
	}
	if _, err := s.Change(ctx, 1, thirdSIM, func(*SIM) error { return nil }); relay.KindOf(err) != relay.KindNotFound {
		t.Error(err)
	}
}

func poolsTakeAllOrNone(t *testing.T, open func(t *testing.T) *db.DB) {
	db, ctx := open(t), t.Context()
	s := NewSIMs(db)
	relaytest.NoError(t, s.Declare(ctx, 1, []SIM{declared(firstSIM), declared(secondSIM)}, false))
	relaytest.NoError(t, s.Declare(ctx, 2, []SIM{declared(thirdSIM)}, false))
	relaytest.NoError(t, NewPools(db).Put(ctx, 1, Pool{ID: "p1"}))
	relaytest.NoError(t, NewPools(db).Put(ctx, 1, Pool{ID: "p2"}))
	for _, tc := range []struct {
		name string
		do   error
		want string
	}{
		{"another account's", s.Attach(ctx, 1, "p1", []ICCID{firstSIM, thirdSIM}), "Invalid ICCID: 8944000000000000003."},
		{"no such pool", s.Attach(ctx, 2, "p1", []ICCID{thirdSIM}), "Invalid pool."},
		{"a free one", s.Attach(ctx, 1, "p1", []ICCID{firstSIM}), ""},
		{"the same and another", s.Attach(ctx, 1, "p1", []ICCID{firstSIM, secondSIM}), ""},
		{"one of another pool", s.Attach(ctx, 1, "p2", []ICCID{firstSIM}), "ICCID 8944000000000000001 is in another pool: detach it first."},
		{"out of the wrong pool", s.Detach(ctx, 1, "p2", []ICCID{firstSIM}), "Invalid ICCID: 8944000000000000001."},
		{"out, with another account's", s.Detach(ctx, 1, "p1", []ICCID{firstSIM, thirdSIM}), "Invalid ICCID: 8944000000000000003."},
		{"out", s.Detach(ctx, 1, "p1", []ICCID{firstSIM}), ""},
		{"out again", s.Detach(ctx, 1, "p1", []ICCID{firstSIM}), "Invalid ICCID: 8944000000000000001."},
	} {
		text := ""
		if tc.do != nil {
			text = tc.do.Error()
		}
		if text != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, text, tc.want)
		}
	}
	relaytest.NoError(t, s.Attach(ctx, 1, "p1", []ICCID{firstSIM}))
	detach := func() error { return s.join(ctx, 1, "p1", "a call", []ICCID{firstSIM}) }
	for range 2 { // the caller repeats a call whose answer was lost
		if err := detach(); err != nil {
			t.Errorf("a detachment that comes twice: %v", err)
		}
	}
	relaytest.NoError(t, s.Attach(ctx, 1, "p1", []ICCID{firstSIM}))
	relaytest.NoError(t, detach())
	relaytest.Equal(t, "a detachment that comes after an attachment", relaytest.Must(s.Get(ctx, 1, firstSIM))(t).Pool, "p1")
	relaytest.NoError(t, s.Detach(ctx, 1, "p1", []ICCID{firstSIM, firstSIM}))
	countsAgree(t, db)
	q := Query{Page: relay.Page{Number: 1, PerPage: 10}}
	got, total, err := s.List(ctx, 1, Scope{Pool: "p1"}, q)
	if err != nil || total != 1 || !slices.Equal(named(got), []ICCID{secondSIM}) || got[0].Pool != "p1" {
		t.Errorf("%v of %d, %v", got, total, err)
	}
	relaytest.Equal(t, "result of Get, Pool", relaytest.Must(s.Get(ctx, 1, firstSIM))(t).Pool, "")
}

func scanFindsAll(t *testing.T, open func(t *testing.T) *db.DB) {
	s, ctx := NewSIMs(open(t)), t.Context()
	var want []ICCID
	for i := range 25 {
		one := declared(ICCID("89440000000000" + strconv.Itoa(10000+i)))
		relaytest.NoError(t, s.Declare(ctx, 1, []SIM{one}, false))
		want = append(want, one.ICCID)
	}
	var got []ICCID
	for after := ICCID(""); ; after = got[len(got)-1] {
		some, err := s.Scan(ctx, 1, Scope{}, after, 10)
		relaytest.NoError(t, err)
		if len(some) == 0 {
			break
		}
		got = append(got, some...)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

func searchFinds(t *testing.T, open func(t *testing.T) *db.DB) {
	db := open(t)
	s, pools, ctx := NewSIMs(db), NewPools(db), t.Context()
	relaytest.NoError(t, s.Declare(ctx, 1, []SIM{declared(firstSIM), declared(secondSIM)}, false))
	relaytest.NoError(t, s.Declare(ctx, 2, []SIM{declared(firstSIM), declared(thirdSIM)}, false))
	relaytest.NoError(t, pools.Put(ctx, 1, Pool{ID: "p1", Name: "Meters"}))
	relaytest.NoError(t, s.Attach(ctx, 1, "p1", []ICCID{secondSIM}))
	_, err := s.Change(ctx, 2, thirdSIM, func(one *SIM) error { one.State, one.Requested = Active, Active; return nil })
	relaytest.NoError(t, err)
	for name, tc := range map[string]struct {
		f    Search
		want string
	}{
		"all":                   {Search{}, "1/1 1/2 2/1 2/3"},
		"of an account":         {Search{Account: 2}, "2/1 2/3"},
		"a part of the ICCID":   {Search{Text: "0000001"}, "1/1 2/1"},
		"a part of the MSISDN":  {Search{Text: "447700900003"}, "2/3"},
		"a part of the IMSI":    {Search{Text: "150000000002"}, "1/2"},
		"the pool as a text":    {Search{Text: "p1"}, "1/2"},
		"a pool":                {Search{Pool: "p1"}, "1/2"},
		"a state":               {Search{State: Active}, "2/3"},
		"nothing like it":       {Search{Text: "%"}, ""},
		"after one":             {Search{After: Ref{Account: 1, ICCID: firstSIM}, Limit: 2}, "1/2 2/1"},
		"after, of one account": {Search{Account: 2, After: Ref{Account: 2, ICCID: firstSIM}}, "2/3"},
	} {
		tc.f.Limit = cmp.Or(tc.f.Limit, 10)
		found, err := s.Find(ctx, tc.f)
		relaytest.NoError(t, err)
		var got []string
		for _, one := range found {
			got = append(got, one.Account.String()+"/"+string(one.ICCID[18:]))
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: %v, want %s", name, got, tc.want)
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
		name string
		q    Query
		want []string
	}{
		{"all, as they came", Query{}, []string{"0", "1", "2", "3"}},
		{"by surname, the last first", Query{OrderBy: "surname", Descending: true}, []string{"0", "3", "2", "1"}},
		{"a surname in any case", Query{Filters: []Filter{{Column: "surname", Value: "SMITH"}}}, []string{"1", "2"}},
		{"the beginning of one, by forename", Query{OrderBy: "forename", Descending: true, Filters: []Filter{{Column: "surname", Match: Begins, Value: "smith"}}}, []string{"3", "2", "1"}},
		{"any but one", Query{Filters: []Filter{{Column: "surname", Match: Differs, Value: "öhlund"}}}, []string{"1", "2", "3"}},
		{"two filters", Query{Filters: []Filter{{Column: "surname", Value: "smith"}, {Column: "forename", Match: Differs, Value: "bo"}}}, []string{"2"}},
	} {
		tc.q.Page = relay.Page{Number: 1, PerPage: 10}
		found, total, err := s.List(ctx, 1, tc.q)
		var got []string
		for _, who := range found {
			got = append(got, who.ID)
		}
		if err != nil || total != len(tc.want) || !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v of %d, %v", tc.name, got, total, err)
		}
	}
	if _, err := s.Get(ctx, 2, "0"); relay.KindOf(err) != relay.KindNotFound {
		t.Error(err)
	}
}

func subscribersArePutAgain(t *testing.T, open func(t *testing.T) *db.DB) {
	s := NewSubscribers(open(t))
	for i := range 20 {
		for _, surname := range []string{"Smith", "Tab\ter", "Smythe"} { // a job that runs again says the same or other things
			relaytest.NoError(t, s.Put(t.Context(), 1, Subscriber{ID: strconv.Itoa(10 + i), Forename: "A", Surname: surname}))
		}
	}
	countsAgree(t, s.db)
	q := Query{Page: relay.Page{Number: 4, PerPage: 6}, Filters: []Filter{{Column: "surname", Match: Begins, Value: "SMYTH"}}}
	found, total, err := s.List(t.Context(), 1, q)
	if err != nil || total != 20 || len(found) != 2 || found[1].ID != "29" || found[1].Surname != "Smythe" {
		t.Errorf("%+v of %d, %v", found, total, err)
	}
}
