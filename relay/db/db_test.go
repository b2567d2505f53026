package db_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestMain(m *testing.M) { relaytest.ManyAtOnce(m) }

func TestTransactions(t *testing.T) {
	dbtest.OnEvery(t, func(t *testing.T, open func(t *testing.T) *db.DB) {
		t.Run("a failed transaction is rolled back without the others", func(t *testing.T) { failuresAreRolledBack(t, open(t)) })
		t.Run("Invalidate sets new versions", func(t *testing.T) { invalidationsSetNewVersions(t, open(t)) })
		t.Run("a refused writer can read the conflicting row", func(t *testing.T) { conflictsAreReadable(t, open(t)) })
		t.Run("a batch keeps its order and any text", func(t *testing.T) { batchesKeepTheirOrder(t, open(t)) })
		t.Run("migrations are listed", func(t *testing.T) { migrationsAreListed(t, open(t)) })
		t.Run("sizes are reported by domain", func(t *testing.T) { sizesAreReportedByDomain(t, open(t)) })
		t.Run("Check accepts the database", func(t *testing.T) {
			if err := open(t).Check(t.Context()); err != nil {
				t.Error(err)
			}
		})
	})
}

// invalidationsSetNewVersions checks that each invalidation sets versions that were not used before,
// including that of a name without a row.
func invalidationsSetNewVersions(t *testing.T, database *db.DB) {
	type seenVersion struct {
		name string
		n    int64
	}
	ctx, seen := t.Context(), map[seenVersion]bool{}
	checkVersions := func() {
		t.Helper()
		versionsByName := relaytest.Must(db.Versions(ctx, database, []string{"counted", "other"}))(t)
		n := relaytest.Must(db.Version(ctx, database, "counted"))(t)
		relaytest.Equal(t, "the version by db.Version", n, versionsByName["counted"])
		for name, n := range versionsByName {
			if v := (seenVersion{name, n}); seen[v] {
				t.Errorf("version %d of %s was used before", n, name)
			} else {
				seen[v] = true
			}
		}
	}
	relaytest.NoError(t, database.Write(ctx, "test", func(ctx context.Context, tx *db.Tx) error { return tx.Bump(ctx, "counted") }))
	checkVersions()
	for range 3 {
		relaytest.NoError(t, database.Invalidate(ctx))
		checkVersions()
	}
}

func failuresAreRolledBack(t *testing.T, database *db.DB) {
	errRefused := errors.New("no")
	dbtest.RunConcurrently(100, func(i int) {
		err := database.Write(t.Context(), "test", func(ctx context.Context, tx *db.Tx) error {
			if err := tx.Bump(ctx, "counted"); err != nil {
				return err
			}
			if i%4 == 0 {
				return errRefused
			}
			if i%4 == 1 {
				return tx.Run(ctx, "test", "INSERT INTO version (name, n) VALUES ('counted', 1)")
			}
			return nil
		})
		switch {
		case i%4 == 0 && !errors.Is(err, errRefused), i%4 == 1 && relay.KindOf(err) != relay.KindUnexpected, i%4 > 1 && err != nil:
			t.Errorf("transaction %d: error = %v", i, err)
		}
	})
	if n, err := db.Version(t.Context(), database, "counted"); err != nil || n != 50 {
		t.Errorf("version = %d, error = %v, want 50", n, err)
	}
}

func conflictsAreReadable(t *testing.T, database *db.DB) {
	errTaken := errors.New("taken")
	for round := range 50 {
		name := fmt.Sprint("round", round)
		dbtest.RunConcurrently(4, func(_ int) {
			err := database.Write(t.Context(), "test", func(ctx context.Context, tx *db.Tx) error {
				n, err := tx.Exec(ctx, "test", "INSERT INTO version (name, n) VALUES ($1, 1) ON CONFLICT DO NOTHING", name)
				if err == nil && n == 0 {
					err = errTaken
				}
				return err
			})
			if err == nil {
				return
			}
			if !errors.Is(err, errTaken) {
				t.Error(err)
			}
			if n, err := db.Version(t.Context(), database, name); err != nil || n != 1 {
				t.Errorf("version of %s after the refusal = %d, error = %v, want 1", name, n, err)
			}
		})
	}
}

func batchesKeepTheirOrder(t *testing.T, database *db.DB) {
	texts := []string{"", "plain", `"quoted" \ é`, "tab\tnew\nline\x1f", "nul\x00", "bad\xff", strings.Repeat("x", 100_000), "{for} $1 ?"}
	b := db.NewBatch("name, amount")
	for i, text := range texts {
		b.Add(text, int64(i)<<55)
	}
	got, err := db.Values[string](t.Context(), database, "test", "SELECT name FROM batch WHERE amount = (n - 1) * $1 ORDER BY n", int64(1)<<55, b)
	if err != nil || len(got) != len(texts) {
		t.Fatalf("%d rows, error = %v, want %d rows", len(got), err, len(texts))
	}
	for i, text := range texts {
		want := strings.NewReplacer("\x00", "\ufffd", "\xff", "\ufffd").Replace(text)
		if got[i] != want {
			t.Errorf("row %d = %q, want %q", i, got[i], want)
		}
	}
}

func migrationsAreListed(t *testing.T, db *db.DB) {
	migrations, err := db.Migrations(t.Context())
	if err != nil || len(migrations) == 0 || migrations[0].Name != "schema" {
		t.Fatalf("migrations = %+v, error = %v, want schema first", migrations, err)
	}
	for _, m := range migrations {
		if !m.Applied {
			t.Errorf("migration %d_%s is not applied", m.Version, m.Name)
		}
	}
}

// TestGatewaysMigrateAtTheSameTime starts several gateways on an empty PostgreSQL database.
func TestGatewaysMigrateAtTheSameTime(t *testing.T) {
	t.Parallel()
	o := db.Options{URL: dbtest.Shared(t).NewDatabase(t)}
	database := dbtest.Open(t, o)
	for _, statement := range []string{"DROP SCHEMA public CASCADE", "CREATE SCHEMA public"} {
		relaytest.NoError(t, database.Run(t.Context(), "empty the database", statement))
	}
	dbtest.RunConcurrently(4, func(i int) {
		gateway, err := db.Open(t.Context(), o)
		if err != nil {
			t.Errorf("gateway %d: %v", i, err)
			return
		}
		if err := gateway.Close(); err != nil {
			t.Errorf("gateway %d: %v", i, err)
		}
	})
	migrationsAreListed(t, database)
	rows, err := db.Value[int](t.Context(), database, "test", "SELECT COUNT(*) FROM message_id")
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of rows of message_id", rows, 1)
}

// A write during Close succeeds or fails. It does not block.
func TestWritesDuringCloseReturn(t *testing.T) {
	database := dbtest.Open(t, db.Options{Dir: t.TempDir()})
	dbtest.RunConcurrently(50, func(i int) {
		if i == 25 {
			relaytest.NoError(t, database.Close())
		}
		err := database.Run(t.Context(), "test", "UPDATE version SET n = n WHERE name = ''")
		if err != nil && relay.KindOf(err) != relay.KindUnavailable {
			t.Errorf("write %d: %v", i, err)
		}
	})
}

func TestErrorsOfOpenNameTheCause(t *testing.T) {
	server := dbtest.Shared(t)
	for name, tc := range map[string]struct{ url, want string }{
		"no URL":           {"mysql://h/d", "expected postgres://"},
		"an invalid URL":   {"postgres://u:secret@h:port/d", "does not parse"},
		"no such database": {server.URL + "none", "does not exist"},
		"no server":        {"postgres://u:secret@127.0.0.1:1/d", "cannot be reached"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := db.Open(t.Context(), db.Options{URL: tc.url})
			text := fmt.Sprint(err, relay.FieldsOf(err))
			if err == nil || !strings.Contains(text, tc.want) || strings.Contains(text, "secret") {
				t.Errorf("error = %s, want %q and no password", text, tc.want)
			}
		})
	}
}

func sizesAreReportedByDomain(t *testing.T, db *db.DB) {
	sizes, err := db.Sizes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	relaytest.Equal(t, "the domains", slices.Sorted(maps.Keys(sizes)), []string{
		"accounts", "audit", "calls", "core", "deliveries", "devices", "files", "gateways", "inbound",
		"jobs", "ledgers", "messages", "rules", "sims", "usage", "users",
	})
	for domain, bytes := range sizes {
		if bytes < 4096 {
			t.Errorf("size of %s = %d bytes, want 4096 or more", domain, bytes)
		}
	}
}
