// Package dbtest gives tests of the record store a database of each engine: a
// new SQLite file, and a new database on a PostgreSQL server that all tests share.
//
// A missing postgres fails the test, unless PENSTOCK_TEST_SKIP_REAL=1 is set, for which real
// servers are to be skipped.
package dbtest

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/relaytest"
)

// At is a time of the tests, s seconds after their beginning.
func At(s float64) time.Time {
	return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC).Add(time.Duration(s * float64(time.Second)))
}

// OnEvery runs a suite on each engine; open makes a new database.
func OnEvery(t *testing.T, suite func(t *testing.T, open func(t *testing.T) *db.DB)) {
	t.Run("on SQLite", func(t *testing.T) {
		suite(t, func(t *testing.T) *db.DB { return Open(t, db.Options{}) })
	})
	t.Run("on PostgreSQL", func(t *testing.T) {
		suite(t, func(t *testing.T) *db.DB { return Open(t, db.Options{URL: Shared(t).NewDatabase(t)}) })
	})
}

// Each runs tests by name on each engine, with a store over a new database for each.
func Each[S any](t *testing.T, store func(*db.DB) S, tests map[string]func(*testing.T, S)) {
	OnEvery(t, func(t *testing.T, open func(t *testing.T) *db.DB) {
		for name, test := range tests {
			t.Run(name, func(t *testing.T) { test(t, store(open(t))) })
		}
	})
}

// BenchEach runs a benchmark on each engine.
func BenchEach[S any](b *testing.B, store func(*db.DB) S, bench func(*testing.B, S)) {
	b.Run("on SQLite", func(b *testing.B) { bench(b, store(Open(b, db.Options{}))) })
	b.Run("on PostgreSQL", func(b *testing.B) {
		bench(b, store(Open(b, db.Options{URL: Shared(b).NewDatabase(b), Timeout: time.Minute})))
	})
}

// Two returns the stores of two gateways on one new database.
func Two[S any](t testing.TB, store func(*db.DB) S) [2]S {
	t.Helper()
	o := db.Options{URL: Shared(t).NewDatabase(t)}
	return [2]S{store(Open(t, o)), store(Open(t, o))}
}

// WantKind checks that there is an error of a kind.
func WantKind(t testing.TB, err error, kind relay.Kind) {
	t.Helper()
	if err == nil || relay.KindOf(err) != kind {
		t.Errorf("want %s, got %v", kind, err)
	}
}

// Together calls do with the numbers below n, all at the same time.
func Together(n int, do func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { do(i) })
	}
	all.Wait()
}

// Plan returns the steps by which the engine runs a statement without a batch.
func Plan(t testing.TB, database *db.DB, statement string, args ...any) string {
	t.Helper()
	explain, columns := "EXPLAIN ", db.Self[string]
	if database.Engine() == "sqlite" {
		explain, columns = "EXPLAIN QUERY PLAN ", func(step *string) []any { return []any{new(any), new(any), new(any), step} }
	}
	steps, err := db.List(t.Context(), database, "plan", explain+statement, columns, args...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(steps, "\n")
}

// Open opens a store, in a directory of the test unless the options say where,
// and closes it when the test ends.
func Open(t testing.TB, o db.Options) *db.DB {
	t.Helper()
	if o.URL == "" && o.Dir == "" {
		o.Dir = t.TempDir()
	}
	database, err := db.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := database.Close(); err != nil {
			t.Error(err)
		}
	})
	return database
}

// NewDatabase makes a database on the server, with the schema in it, and returns
// its URL.
func (s *Postgres) NewDatabase(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("test%x", rand.Uint64()) // other processes use the server, too
	s.makeTemplate(t)
	s.do(t, "CREATE DATABASE "+name+" TEMPLATE penstock")
	t.Cleanup(func() {
		s.asSuperuser(t, func(ctx context.Context, admin *sql.DB) { // who may be gone or read-only by then
			_, _ = admin.ExecContext(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
		})
	})
	return s.URL + name
}

// templates are the URLs of the servers of which this process knows that they have the
// template.
var templates sync.Map

// makeTemplate makes the database that the others are copies of, unless the server has
// it: a copy takes a tenth of the time of all migrations. It becomes a template when it is
// complete.
func (s *Postgres) makeTemplate(t testing.TB) {
	t.Helper()
	if _, ok := templates.Load(s.URL); ok {
		return
	}
	s.asSuperuser(t, func(ctx context.Context, admin *sql.DB) {
		conn := relaytest.Must(admin.Conn(ctx))(t)
		defer conn.Close() // and unlocks
		run := func(statement string) {
			t.Helper()
			_, err := conn.ExecContext(ctx, statement)
			relaytest.NoError(t, err)
		}
		run("SELECT pg_advisory_lock(1)")
		var complete bool
		err := conn.QueryRowContext(ctx, "SELECT count(*) = 1 FROM pg_database WHERE datname = 'penstock' AND datistemplate").Scan(&complete)
		relaytest.NoError(t, err)
		if complete {
			return
		}
		run("DROP DATABASE IF EXISTS penstock")
		run("CREATE DATABASE penstock")
		database, err := db.Open(ctx, db.Options{URL: s.URL + "penstock"})
		relaytest.NoError(t, err)
		relaytest.NoError(t, database.Close())
		// Nobody connects to it any more, or it could not be copied.
		run("ALTER DATABASE penstock WITH ALLOW_CONNECTIONS false IS_TEMPLATE true")
	})
	templates.Store(s.URL, true)
}
