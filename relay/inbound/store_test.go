package inbound

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

// rig is a store with a clock that tests advance.
type rig struct {
	*Store
	clock atomic.Int64 // ms after dbtest.TimeAt(0)
	url   string       // of PostgreSQL; empty for SQLite
}

func (r *rig) now() time.Time {
	return dbtest.TimeAt(0).Add(time.Duration(r.clock.Load()) * time.Millisecond)
}
func (r *rig) advance(d time.Duration) { r.clock.Add(d.Milliseconds()) }

func openRig(t *testing.T, url string) *rig {
	t.Helper()
	r := &rig{url: url}
	r.Store = NewStore(dbtest.Open(t, db.Options{URL: url, Now: r.now}))
	return r
}

// secondStore returns another gateway's store on the same database.
func (r *rig) secondStore(t *testing.T) *Store {
	t.Helper()
	if r.url == "" {
		return r.Store // SQLite has one gateway
	}
	return NewStore(dbtest.Open(t, db.Options{URL: r.url, Now: r.now}))
}

// cases are tests by name, each for an empty store.
type cases map[string]func(*testing.T, *rig)

func TestStore(t *testing.T) {
	casesBySubject := map[string]cases{"relays": relayCases(), "claims": claimCases(), "inbox": inboxCases(), "parts": partCases()}
	run := func(t *testing.T, open func(t *testing.T) *rig) {
		for subject, tests := range casesBySubject {
			for name, test := range tests {
				t.Run(subject+" "+name, func(t *testing.T) { test(t, open(t)) })
			}
		}
	}
	t.Run("on SQLite", func(t *testing.T) {
		run(t, func(t *testing.T) *rig { return openRig(t, "") })
	})
	t.Run("on PostgreSQL", func(t *testing.T) {
		url := dbtest.Shared(t).NewDatabase(t)
		run(t, func(t *testing.T) *rig {
			r := openRig(t, url)
			r.empty(t)
			return r
		})
	})
}

// empty deletes all rows of the store.
func (r *rig) empty(t *testing.T) {
	t.Helper()
	for _, table := range []string{"relay", "carrier_id", "inbox", "part_group", "part", "part_ready", "part_parked"} {
		_, err := r.db.Exec(t.Context(), table, "DELETE FROM "+table)
		relaytest.NoError(t, err)
	}
}

// rows returns the number of rows of a table.
func (r *rig) rows(t *testing.T, table string) int {
	t.Helper()
	n, err := db.Value[int](t.Context(), r.db, table, "SELECT count(*) FROM "+table)
	relaytest.NoError(t, err)
	return n
}

// sweep deletes expired rows and returns the number of remaining rows in tables.
func (r *rig) sweep(t *testing.T, tables ...string) (n int) {
	t.Helper()
	relaytest.NoError(t, r.Sweep(t.Context(), r.now()))
	for _, table := range tables {
		n += r.rows(t, table)
	}
	return n
}

func TestOperationsAreUnavailableWithoutTheDatabase(t *testing.T) {
	server := dbtest.StartPostgres(t)
	s := openRig(t, server.NewDatabase(t))
	server.Kill()
	_, versionErr := s.Version(t.Context())
	for versionErr == nil { // a backend outlives its server for a moment
		_, versionErr = s.Version(t.Context())
	}
	_, candidatesErr := s.Candidates(t.Context(), []string{"44"})
	_, claimErr := s.Claim(t.Context(), []Claim{{Key: "a", MessageID: "b"}}, time.Hour)
	_, addErr := s.Add(t.Context(), []PartArrival{arrival(groupA, 1, 2, "e1", "a")}, Times{Now: s.now()})
	putErr := s.Put(t.Context(), relayOf(1, VirtualNumber, "v1", "44"))
	for name, err := range map[string]error{"Version": versionErr, "Candidates": candidatesErr, "Claim": claimErr, "Add": addErr, "Put": putErr} {
		if relay.KindOf(err) != relay.KindUnavailable {
			t.Errorf("error of %s = %v, want unavailable", name, err)
		}
	}
}
