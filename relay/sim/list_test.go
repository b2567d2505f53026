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

// model has the SIMs of an account without an index.
type model struct {
	sims []SIM
	rnd  *rand.Rand
}

// newModel returns SIMs with common prefixes in their numbers, as an operator assigns them.
// Some have no IMSI or MSISDN, and some have a subscriber.
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

// column returns the value of a column of a SIM.
func column(s SIM, name string) string {
	return map[string]string{"iccid": string(s.ICCID), "imsi": s.IMSI, "msisdn": s.MSISDN}[name]
}

// list returns a page of the SIMs that match and their total number, by a scan of all SIMs.
func (m *model) list(scope Scope, q Query) ([]SIM, int) {
	var sims []SIM
	for _, s := range m.sims {
		ok := (scope.Pool == "" || s.Pool == scope.Pool) && (scope.Subscriber == "" || s.Subscriber == scope.Subscriber)
		for _, f := range q.Filters {
			ok = ok && f.Holds(column(s, f.Column))
		}
		if ok {
			sims = append(sims, s)
		}
	}
	orderBy := Columns()[q.Order(Columns())]
	slices.SortFunc(sims, func(a, b SIM) int {
		if c := strings.Compare(column(a, orderBy), column(b, orderBy)); c != 0 {
			return c
		}
		return strings.Compare(string(a.ICCID), string(b.ICCID))
	})
	if q.Descending {
		slices.Reverse(sims)
	}
	start := min(q.Offset(), len(sims))
	return sims[start:min(start+q.PerPage, len(sims))], len(sims)
}

// query returns a random query with filters that match many, few or no SIMs, any order and a
// page that may be past the end.
func (m *model) query() Query {
	q := Query{OrderBy: append([]string{""}, Columns()...)[m.rnd.IntN(4)], Descending: m.rnd.IntN(2) == 0}
	q.Page = relay.Page{Number: 1 + m.rnd.IntN(4), PerPage: 1 + m.rnd.IntN(40)}
	for _, name := range Columns() {
		if m.rnd.IntN(5) < 3 {
			continue
		}
		f := Filter{Column: name, Match: Match(m.rnd.IntN(3)), Value: column(m.sims[m.rnd.IntN(len(m.sims))], name)}
		if f.Match == StartsWith {
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
	sims := NewSIMs(db)
	relaytest.NoError(t, sims.Declare(ctx, 1, m.sims, false))
	relaytest.NoError(t, sims.Declare(ctx, 2, newModel(3).sims, false)) // another account
	for i := range m.sims {
		want := &m.sims[i]
		if want.Subscriber == "" {
			continue
		}
		_, err := sims.Change(ctx, 1, want.ICCID, func(s *SIM) error { s.Subscriber = want.Subscriber; return nil })
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
	relaytest.NoError(t, sims.Attach(ctx, 1, "p", pooled))
	checkCounts(t, db)
	for range 300 {
		checkList(t, sims, m)
	}
	m.churn(t, sims)
	checkCounts(t, db)
	for range 100 {
		checkList(t, sims, m)
	}
}

// churn deletes a third of the SIMs, renumbers another third and detaches some from their pool.
func (m *model) churn(t *testing.T, sims *SIMs) {
	t.Helper()
	var remaining []SIM
	var detached []ICCID
	for i, want := range m.sims {
		switch i % 3 {
		case 0:
			relaytest.NoError(t, sims.Delete(t.Context(), 1, want.ICCID))
			continue
		case 1:
			want.MSISDN, want.Subscriber = fmt.Sprintf("4478%08d", i), "s1"
			_, err := sims.Change(t.Context(), 1, want.ICCID, func(s *SIM) error {
				s.MSISDN, s.Subscriber = want.MSISDN, want.Subscriber
				return nil
			})
			relaytest.NoError(t, err)
		}
		if want.Pool != "" && i%2 == 0 {
			want.Pool, detached = "", append(detached, want.ICCID)
		}
		remaining = append(remaining, want)
	}
	relaytest.NoError(t, sims.Detach(t.Context(), 1, "p", detached))
	m.sims = remaining
}

// checkList compares the result of a random query with that of the model.
func checkList(t *testing.T, sims *SIMs, m *model) {
	t.Helper()
	q := m.query()
	scope := []Scope{{}, {}, {Pool: "p"}, {Subscriber: "s0"}, {Subscriber: "s1"}}[m.rnd.IntN(5)]
	want, wantTotal := m.list(scope, q)
	got, total, err := sims.List(t.Context(), 1, scope, q)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the total", total, wantTotal)
	relaytest.Equal(t, "the SIMs of the page", iccidsOf(got), iccidsOf(want))
}

func iccidsOf(sims []SIM) []ICCID {
	iccids := make([]ICCID, len(sims))
	for i, s := range sims {
		iccids[i] = s.ICCID
	}
	return iccids
}

// checkCounts compares the counters of each account with the numbers of its records.
func checkCounts(t *testing.T, database *db.DB) {
	t.Helper()
	for table, query := range map[string]string{
		simTable:        "SELECT account, count(*) FROM sim GROUP BY account",
		subscriberTable: "SELECT account, count(*) FROM sim_subscriber GROUP BY account",
	} {
		want := relaytest.Must(db.Map[relay.AccountID, int](t.Context(), database, "test", query))(t)
		got := relaytest.Must(db.Map[relay.AccountID, int](t.Context(), database, "test",
			"SELECT account, n FROM sim_count WHERE list = $1 AND n <> 0", table))(t)
		relaytest.Equal(t, "the counters of "+table, got, want)
	}
}

// declareSIMs declares n SIMs with consecutive numbers and returns their ICCIDs.
func declareSIMs(t testing.TB, store *SIMs, acct relay.AccountID, n int) []ICCID {
	t.Helper()
	sims, iccids := make([]SIM, n), make([]ICCID, n)
	for i := range sims {
		sims[i] = newSIM(ICCID(fmt.Sprintf("894400000000%07d", i)))
		iccids[i] = sims[i].ICCID
	}
	if err := store.Declare(t.Context(), acct, sims, false); err != nil {
		t.Fatal(err)
	}
	return iccids
}

// TestPagesReadIndexes checks that SQLite reads the ids of a page from an index with all columns
// of the query.
func TestPagesReadIndexes(t *testing.T) {
	database := dbtest.Open(t, db.Options{})
	for _, scope := range []Scope{{}, {Pool: "p"}, {Subscriber: "s"}} {
		for _, column := range Columns() {
			for name, filters := range map[string][]Filter{
				"no filter":                    nil,
				"a filter on the order":        {{Column: column, Match: StartsWith, Value: "4"}},
				"a filter that excludes a SIM": {{Column: "imsi", Match: NotEquals, Value: "4"}},
			} {
				l, q := simsOf(1, scope), Query{OrderBy: column, Filters: filters, Page: relay.Page{Number: 1, PerPage: 100}}
				where := l.conditions(filters)
				plan := explain(t, database, l.pageOf(q, "iccid", where), where.Args())
				if !slices.ContainsFunc(plan, func(step string) bool {
					return strings.Contains(step, "COVERING INDEX sim_by_") || strings.Contains(step, "PRIMARY KEY (account=?") && column == "iccid"
				}) {
					t.Errorf("scope %+v, order %s, %s: plan %q does not read a covering index", scope, column, name, plan)
				}
			}
		}
	}
}

// explain returns the steps of the query plan of SQLite.
func explain(t *testing.T, database *db.DB, statement string, args []any) []string {
	t.Helper()
	var skip any
	plan, err := db.List(t.Context(), database, "test", "EXPLAIN QUERY PLAN "+statement, func(step *string) []any {
		return []any{&skip, &skip, &skip, step}
	}, args...)
	relaytest.NoError(t, err)
	return plan
}
