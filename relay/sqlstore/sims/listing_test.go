package sims

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/sim"
	"github.com/penstock/penstock/relay/sqlstore"
	"github.com/penstock/penstock/relay/sqlstore/sqltest"
)

// model is the SIMs of an account, without any index.
type model struct {
	sims []sim.SIM
	rnd  *rand.Rand
}

// newModel makes SIMs whose numbers begin alike, as those of operators do, some
// without IMSI or MSISDN, in pools and with subscribers.
func newModel(n int) *model {
	m := &model{rnd: rand.New(rand.NewPCG(1, 2))}
	for i := range n {
		s := sim.SIM{
			ICCID: sim.ICCID(fmt.Sprintf("89%d%015d", 44+m.rnd.IntN(2), i*7919%n)), State: sim.Active,
			IMSI: fmt.Sprintf("23%d15%07d", 4+m.rnd.IntN(2), i), MSISDN: fmt.Sprintf("44%d%08d", 77+m.rnd.IntN(3), m.rnd.IntN(100_000_000)),
		}
		if i%11 == 0 {
			s.IMSI = ""
		}
		if i%7 == 0 {
			s.MSISDN = ""
		}
		if i%3 == 0 {
			s.Subscriber = fmt.Sprintf("s%d", i%2)
		}
		m.sims = append(m.sims, s)
	}
	return m
}

func column(s sim.SIM, name string) string { return columnValues(s)[slices.Index(sim.Columns(), name)] }

// list answers a query by looking at everything.
func (m *model) list(in sim.Scope, q sim.Query) ([]sim.SIM, int) {
	var found []sim.SIM
	for _, s := range m.sims {
		ok := (in.Pool == "" || s.Pool == in.Pool) && (in.Subscriber == "" || s.Subscriber == in.Subscriber)
		for _, f := range q.Filters {
			ok = ok && f.Holds(column(s, f.Column))
		}
		if ok {
			found = append(found, s)
		}
	}
	by := sim.Columns()[q.Order(sim.Columns())]
	slices.SortFunc(found, func(a, b sim.SIM) int {
		if c := strings.Compare(column(a, by), column(b, by)); c != 0 {
			return c
		}
		return strings.Compare(string(a.ICCID), string(b.ICCID))
	})
	if q.Descending {
		slices.Reverse(found)
	}
	from := min(q.Offset(), len(found))
	return found[from:min(from+q.PerPage, len(found))], len(found)
}

// query is any query: filters on some columns, that hold of many, of few or of
// none, in any order, and a page that there may be none of.
func (m *model) query() sim.Query {
	q := sim.Query{OrderBy: append([]string{""}, sim.Columns()...)[m.rnd.IntN(4)], Descending: m.rnd.IntN(2) == 0}
	q.Page = relay.Page{Number: 1 + m.rnd.IntN(4), PerPage: 1 + m.rnd.IntN(40)}
	for _, name := range sim.Columns() {
		if m.rnd.IntN(5) < 3 {
			continue
		}
		f := sim.Filter{Column: name, Match: sim.Match(m.rnd.IntN(3)), Value: column(m.sims[m.rnd.IntN(len(m.sims))], name)}
		if f.Match == sim.Begins {
			f.Value = f.Value[:min(len(f.Value), m.rnd.IntN(8))]
		}
		if m.rnd.IntN(10) == 0 {
			f.Value += "9"
		}
		if f.Value != "" {
			q.Filters = append(q.Filters, f)
		}
	}
	if q.Filters == nil || m.rnd.IntN(4) == 0 {
		_, total := m.list(sim.Scope{}, q)
		q.Number = 1 + m.rnd.IntN(q.Pages(total)+1)
	}
	return q
}

func listsAgreeWithAModel(t *testing.T, open func(t *testing.T) *sqlstore.DB) {
	m, ctx := newModel(200), t.Context()
	db := open(t)
	s := smallSIMs(db)
	relaytest.NoError(t, s.Declare(ctx, 1, m.sims, false))
	relaytest.NoError(t, s.Declare(ctx, 2, newModel(3).sims, false)) // whose are not seen
	for i := range m.sims {
		one := &m.sims[i]
		if one.Subscriber == "" {
			continue
		}
		_, err := s.Change(ctx, 1, one.ICCID, func(x *sim.SIM) error { x.Subscriber = one.Subscriber; return nil })
		relaytest.NoError(t, err)
	}
	relaytest.NoError(t, NewPools(db).Put(ctx, 1, sim.Pool{ID: "p"}))
	var pooled []sim.ICCID
	for i := range m.sims {
		if i%4 == 0 {
			m.sims[i].Pool = "p"
			pooled = append(pooled, m.sims[i].ICCID)
		}
	}
	relaytest.NoError(t, s.Attach(ctx, 1, "p", pooled))
	countsAgree(t, db)
	for range 300 {
		agree(t, s, m)
	}
	m.churn(t, s)
	countsAgree(t, db)
	for range 100 {
		agree(t, s, m)
	}
}

// churn deletes a third of the SIMs, renumbers another, and takes some out of their
// pool.
func (m *model) churn(t *testing.T, s *SIMs) {
	t.Helper()
	var left []sim.SIM
	var out []sim.ICCID
	for i, one := range m.sims {
		switch i % 3 {
		case 0:
			relaytest.NoError(t, s.Delete(t.Context(), 1, one.ICCID))
			continue
		case 1:
			one.MSISDN, one.Subscriber = fmt.Sprintf("4478%08d", i), "s1"
			_, err := s.Change(t.Context(), 1, one.ICCID, func(x *sim.SIM) error {
				x.MSISDN, x.Subscriber = one.MSISDN, one.Subscriber
				return nil
			})
			relaytest.NoError(t, err)
		}
		if one.Pool != "" && i%2 == 0 {
			one.Pool, out = "", append(out, one.ICCID)
		}
		left = append(left, one)
	}
	relaytest.NoError(t, s.Detach(t.Context(), 1, "p", out))
	m.sims = left
}

func agree(t *testing.T, s *SIMs, m *model) {
	t.Helper()
	q := m.query()
	in := []sim.Scope{{}, {}, {Pool: "p"}, {Subscriber: "s0"}, {Subscriber: "s1"}}[m.rnd.IntN(5)]
	want, wantTotal := m.list(in, q)
	got, total, err := s.List(t.Context(), 1, in, q)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "total", total, wantTotal)
	relaytest.Equal(t, "records of the page", named(got), named(want))
}

func named(all []sim.SIM) []sim.ICCID {
	out := make([]sim.ICCID, len(all))
	for i, s := range all {
		out[i] = s.ICCID
	}
	return out
}

// Lists that are too long to sort, and what is left out by places, need more
// records than the comparison above can have.
func TestPlansOfLongLists(t *testing.T) {
	m := newModel(2 * maxUnlimited)
	db := sqltest.Open(t, sqlstore.Options{})
	s := NewSIMs(db)
	relaytest.NoError(t, s.Declare(t.Context(), 1, m.sims, false))
	countsAgree(t, db)
	for _, tc := range []struct {
		name    string
		filters []sim.Filter
	}{
		{"half of the records, in another order", []sim.Filter{{Column: "imsi", Match: sim.Begins, Value: "234"}}},
		{"two filters that hold of half each", []sim.Filter{{Column: "imsi", Match: sim.Begins, Value: "234"}, {Column: "msisdn", Match: sim.Begins, Value: "4477"}}},
		{"all but one", []sim.Filter{{Column: "imsi", Match: sim.Differs, Value: m.sims[5].IMSI}}},
	} {
		for _, by := range []string{"iccid", "msisdn"} {
			for _, number := range []int{1, 7, 20, 99} {
				for _, down := range []bool{false, true} {
					q := sim.Query{Page: relay.Page{Number: number, PerPage: 500}, OrderBy: by, Descending: down, Filters: tc.filters}
					want, wantTotal := m.list(sim.Scope{}, q)
					got, total, err := s.List(t.Context(), 1, sim.Scope{}, q)
					if err != nil || total != wantTotal || !slices.Equal(named(got), named(want)) {
						t.Errorf("%s, page %d by %s, descending %v: %d of %d, want %d of %d, %v", tc.name, number, by, down, len(got), total, len(want), wantTotal, err)
					}
				}
			}
		}
	}
}

func TestALongListWaitsOnlySoLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := make(readLimit, 1)
		end, err := one.acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := one.acquire(t.Context()); relay.KindOf(err) != relay.KindUnavailable {
			t.Errorf("while another is read: %v", err)
		}
		time.AfterFunc(time.Second, end)
		if end, err := one.acquire(t.Context()); err != nil {
			t.Error(err)
		} else {
			end()
		}
	})
}

// What a gateway remembers of a list must not outlive a change, its own or another
// gateway's.
func TestRememberedPlacesFollowChanges(t *testing.T) {
	m := newModel(4 * maxCounted)
	db := sqltest.Open(t, sqlstore.Options{})
	here, elsewhere := NewSIMs(db), NewSIMs(db)
	relaytest.NoError(t, here.Declare(t.Context(), 1, m.sims, false))
	half := sim.Filter{Column: "imsi", Match: sim.Begins, Value: "234"}
	agree := func(when string) {
		t.Helper()
		for _, filters := range [][]sim.Filter{nil, {half}, {half, {Column: "iccid", Match: sim.Begins, Value: "8944"}}} {
			for _, number := range []int{1, 5, 9} {
				q := sim.Query{Page: relay.Page{Number: number, PerPage: 100}, OrderBy: "msisdn", Filters: filters}
				want, wantTotal := m.list(sim.Scope{}, q)
				got, total, err := here.List(t.Context(), 1, sim.Scope{}, q)
				if err != nil || total != wantTotal || !slices.Equal(named(got), named(want)) {
					t.Errorf("%s, %d filters, page %d: %d of %d, want %d of %d, %v", when, len(filters), number, len(got), total, len(want), wantTotal, err)
				}
			}
		}
	}
	agree("at first")
	agree("once more")
	if n := len(here.cache.entries); n < 3 {
		t.Errorf("%d queries are cached, want the list, one filter and two", n)
	}
	for i, s := range []*SIMs{here, elsewhere} {
		relaytest.NoError(t, s.Delete(t.Context(), 1, m.sims[0].ICCID))
		m.sims = m.sims[1:]
		agree(fmt.Sprintf("after deletion %d", i))
		one := &m.sims[10+i]
		one.MSISDN, one.IMSI = "440", "2340"
		_, err := s.Change(t.Context(), 1, one.ICCID, func(x *sim.SIM) error { x.MSISDN, x.IMSI = one.MSISDN, one.IMSI; return nil })
		relaytest.NoError(t, err)
		agree(fmt.Sprintf("after change %d", i))
	}
}

func TestTheOldestPlacesAreForgotten(t *testing.T) {
	k := newPositionCache()
	for i := range 4 {
		k.put(fmt.Sprint(i), &entry{positions: make([]position, maxCached/3)})
		k.get("0")
	}
	if k.get("0") == nil || k.get("1") != nil || k.get("2") != nil || k.get("3") == nil || k.size > maxCached {
		t.Errorf("%d positions of %d queries", k.size, len(k.entries))
	}
}
