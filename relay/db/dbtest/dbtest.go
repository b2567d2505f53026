// Package dbtest provides databases for tests: a new SQLite file, or a new database on a
// PostgreSQL server that all tests share.
//
// Without an installed PostgreSQL a test fails, or is skipped if PENSTOCK_TEST_SKIP_REAL=1.
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

// TimeAt returns a fixed time plus s seconds.
func TimeAt(s float64) time.Time {
	return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC).Add(time.Duration(s * float64(time.Second)))
}

// OnEvery runs a suite on each engine. open creates a database.
func OnEvery(t *testing.T, suite func(t *testing.T, open func(t *testing.T) *db.DB)) {
	t.Run("on SQLite", func(t *testing.T) {
		suite(t, func(t *testing.T) *db.DB { return Open(t, db.Options{}) })
	})
	t.Run("on PostgreSQL", func(t *testing.T) {
		suite(t, func(t *testing.T) *db.DB { return Open(t, db.Options{URL: Shared(t).NewDatabase(t)}) })
	})
}

// Each runs tests by name on each engine, each with a store on a new database.
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

// TwoGateways returns the stores of two gateways on one new database.
func TwoGateways[S any](t testing.TB, store func(*db.DB) S) [2]S {
	t.Helper()
	o := db.Options{URL: Shared(t).NewDatabase(t)}
	return [2]S{store(Open(t, o)), store(Open(t, o))}
}

// WantKind checks the kind of an error.
func WantKind(t testing.TB, err error, kind relay.Kind) {
	t.Helper()
	if err == nil || relay.KindOf(err) != kind {
		t.Errorf("error = %v, want kind %s", err, kind)
	}
}

// RunConcurrently calls do concurrently with each number from 0 to n-1 and waits for all calls.
func RunConcurrently(n int, do func(i int)) {
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() { do(i) })
	}
	running.Wait()
}

// Plan returns the engine's plan for a statement without a db.Batch, one step per line.
func Plan(t testing.TB, database *db.DB, statement string, args ...any) string {
	t.Helper()
	explain, columns := "EXPLAIN ", db.SingleColumn[string]
	if database.Engine() == "sqlite" {
		explain, columns = "EXPLAIN QUERY PLAN ", func(step *string) []any { return []any{new(any), new(any), new(any), step} }
	}
	steps, err := db.List(t.Context(), database, "plan", explain+statement, columns, args...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(steps, "\n")
}

// Open opens a database and closes it when the test ends. Without a URL and a Dir, the database
// is in a temporary directory.
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

// NewDatabase creates a database with the schema on the server and returns its URL.
func (p *Postgres) NewDatabase(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("test%x", rand.Uint64()) // other processes use the server too
	p.makeTemplate(t)
	p.do(t, "CREATE DATABASE "+name+" TEMPLATE penstock")
	t.Cleanup(func() {
		p.asSuperuser(t, func(ctx context.Context, admin *sql.DB) { // fails if the server has stopped or is read-only
			_, _ = admin.ExecContext(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
		})
	})
	return p.URL + name
}

// templates contains the URLs of the servers that have a complete template.
var templates sync.Map

// makeTemplate creates the template of the test databases unless the server has it. A copy
// takes a tenth of the time of the migrations. The database is marked as a template when it is
// complete.
func (p *Postgres) makeTemplate(t testing.TB) {
	t.Helper()
	if _, ok := templates.Load(p.URL); ok {
		return
	}
	p.asSuperuser(t, func(ctx context.Context, admin *sql.DB) {
		conn := relaytest.Must(admin.Conn(ctx))(t)
		defer conn.Close() // releases the lock
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
		database, err := db.Open(ctx, db.Options{URL: p.URL + "penstock"})
		relaytest.NoError(t, err)
		relaytest.NoError(t, database.Close())
		// PostgreSQL refuses to copy a database with connections.
		run("ALTER DATABASE penstock WITH ALLOW_CONNECTIONS false IS_TEMPLATE true")
	})
	templates.Store(p.URL, true)
}
