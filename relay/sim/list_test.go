package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

// model is the SIMs of an account, without any index.
type model struct {
	sims []SIM
	rnd  *rand.Rand
}

// newModel makes SIMs whose numbers begin alike, as those of operators do, some
// without IMSI or MSISDN, in pools and with subscribers.
func newModel(n int) *model {
	m := &model{rnd: rand.New(rand.NewPCG(1, 2))}
	for i := range n {
		s := SIM{
			ICCID: ICCID(fmt.Sprintf("89%d%015d", 44+m.rnd.IntN(2), i*7919%n)), State: Active,
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

// column returns a SIM's value of a column.
func column(s SIM, name string) string {
	return map[string]string{"iccid": string(s.ICCID), "imsi": s.IMSI, "msisdn": s.MSISDN}[name]
}

// list answers a query by looking at everything.
func (m *model) list(in Scope, q Query) ([]SIM, int) {
	var found []SIM
	for _, s := range m.sims {
		ok := (in.Pool == "" || s.Pool == in.Pool) && (in.Subscriber == "" || s.Subscriber == in.Subscriber)
		for _, f := range q.Filters {
			ok = ok && f.Holds(column(s, f.Column))
		}
		if ok {
			found = append(found, s)
		}
	}
	by := Columns()[q.Order(Columns())]
	slices.SortFunc(found, func(a, b SIM) int {
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
func (m *model) query() Query {
	q := Query{OrderBy: append([]string{""}, Columns()...)[m.rnd.IntN(4)], Descending: m.rnd.IntN(2) == 0}
	q.Page = relay.Page{Number: 1 + m.rnd.IntN(4), PerPage: 1 + m.rnd.IntN(40)}
	for _, name := range Columns() {
		if m.rnd.IntN(5) < 3 {
			continue
		}
		f := Filter{Column: name, Match: Match(m.rnd.IntN(3)), Value: column(m.sims[m.rnd.IntN(len(m.sims))], name)}
		if f.Match == Begins {
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
		_, total := m.list(Scope{}, q)
		q.Number = 1 + m.rnd.IntN(q.Pages(total)+1)
	}
	return q
}

func listsAgreeWithAModel(t *testing.T, open func(t *testing.T) *db.DB) {
	m, ctx := newModel(200), t.Context()
	db := open(t)
	s := NewSIMs(db)
	relaytest.NoError(t, s.Declare(ctx, 1, m.sims, false))
	relaytest.NoError(t, s.Declare(ctx, 2, newModel(3).sims, false)) // whose are not seen
	for i := range m.sims {
		one := &m.sims[i]
		if one.Subscriber == "" {
			continue
		}
		_, err := s.Change(ctx, 1, one.ICCID, func(x *SIM) error { x.Subscriber = one.Subscriber; return nil })
		relaytest.NoError(t, err)
	}
	relaytest.NoError(t, NewPools(db).Put(ctx, 1, Pool{ID: "p"}))
	var pooled []ICCID
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
	var left []SIM
	var out []ICCID
	for i, one := range m.sims {
		switch i % 3 {
		case 0:
			relaytest.NoError(t, s.Delete(t.Context(), 1, one.ICCID))
			continue
		case 1:
			one.MSISDN, one.Subscriber = fmt.Sprintf("4478%08d", i), "s1"
			_, err := s.Change(t.Context(), 1, one.ICCID, func(x *SIM) error {
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
	in := []Scope{{}, {}, {Pool: "p"}, {Subscriber: "s0"}, {Subscriber: "s1"}}[m.rnd.IntN(5)]
	want, wantTotal := m.list(in, q)
	got, total, err := s.List(t.Context(), 1, in, q)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "total", total, wantTotal)
	relaytest.Equal(t, "records of the page", named(got), named(want))
}

func named(all []SIM) []ICCID {
	out := make([]ICCID, len(all))
	for i, s := range all {
		out[i] = s.ICCID
	}
	return out
}

// countsAgree compares the counters of each account with a count of its records.
func countsAgree(t *testing.T, database *db.DB) {
	t.Helper()
	for table, query := range map[string]string{
		simTable:        "SELECT account, count(*) FROM sim GROUP BY account",
		subscriberTable: "SELECT account, count(*) FROM sim_subscriber GROUP BY account",
	} {
		want := relaytest.Must(db.Map[relay.AccountID, int](t.Context(), database, "test", query))(t)
		got := relaytest.Must(db.Map[relay.AccountID, int](t.Context(), database, "test",
			"SELECT account, n FROM sim_count WHERE list = $1 AND n <> 0", table))(t)
		relaytest.Equal(t, "counters of "+table, got, want)
	}
}

// fill declares so many SIMs with numbers that follow each other.
func fill(t testing.TB, s *SIMs, acct relay.AccountID, n int) []ICCID {
	t.Helper()
	all, iccids := make([]SIM, n), make([]ICCID, n)
	for i := range all {
		all[i] = declared(ICCID(fmt.Sprintf("894400000000%07d", i)))
		iccids[i] = all[i].ICCID
	}
	if err := s.Declare(t.Context(), acct, all, false); err != nil {
		t.Fatal(err)
	}
	return iccids
}

// TestPagesReadIndexes expects that SQLite finds the ids of a page in an index that has
// all columns of the query, and sorts nothing in the order that a client asks for.
func TestPagesReadIndexes(t *testing.T) {
	database := dbtest.Open(t, db.Options{})
	for _, scope := range []Scope{{}, {Pool: "p"}, {Subscriber: "s"}} {
		for _, column := range Columns() {
			for name, filters := range map[string][]Filter{
				"no filter":                    nil,
				"a filter on the order":        {{Column: column, Match: Begins, Value: "4"}},
				"a filter that excludes a SIM": {{Column: "imsi", Match: Differs, Value: "4"}},
			} {
				l, q := simsOf(1, scope), Query{OrderBy: column, Filters: filters, Page: relay.Page{Number: 1, PerPage: 100}}
				where := l.conditions(filters)
				plan := explain(t, database, l.pageOf(q, "iccid", where), where.Args())
				if !slices.ContainsFunc(plan, func(step string) bool {
					return strings.Contains(step, "COVERING INDEX sim_by_") || strings.Contains(step, "PRIMARY KEY (account=?") && column == "iccid"
				}) {
					t.Errorf("%+v by %s with %s: %q", scope, column, name, plan)
				}
			}
		}
	}
}

// explain returns the steps of SQLite's plan.
func explain(t *testing.T, database *db.DB, statement string, args []any) []string {
	t.Helper()
	var skip any
	plan, err := db.List(t.Context(), database, "test", "EXPLAIN QUERY PLAN "+statement, func(step *string) []any {
		return []any{&skip, &skip, &skip, step}
	}, args...)
	relaytest.NoError(t, err)
	return plan
}
