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
		t.Run("a failed one is undone and takes no other with it", func(t *testing.T) { failuresAreApart(t, open(t)) })
		t.Run("invalidated versions are new numbers", func(t *testing.T) { invalidationsAreNew(t, open(t)) })
		t.Run("what one was refused for can be read", func(t *testing.T) { refusalsCanBeRead(t, open(t)) })
		t.Run("a batch comes back in its order, whatever its texts hold", func(t *testing.T) { batchesComeBack(t, open(t)) })
		t.Run("the schema is listed", func(t *testing.T) { schemaIsListed(t, open(t)) })
		t.Run("sizes are by domain", func(t *testing.T) { sizesAreByDomain(t, open(t)) })
		t.Run("the database is as it must be", func(t *testing.T) {
			if err := open(t).Check(t.Context()); err != nil {
				t.Error(err)
			}
		})
	})
}

// invalidationsAreNew holds that a version is a new number after each invalidation, also
// one that was never counted up, and in a database that went back.
func invalidationsAreNew(t *testing.T, database *db.DB) {
	type seenVersion struct {
		name string
		n    int64
	}
	ctx, seen := t.Context(), map[seenVersion]bool{}
	versions := func() {
		t.Helper()
		all := relaytest.Must(db.Versions(ctx, database, []string{"counted", "other"}))(t)
		n := relaytest.Must(db.Version(ctx, database, "counted"))(t)
		relaytest.Equal(t, "the version counted", n, all["counted"])
		for name, n := range all {
			if v := (seenVersion{name, n}); seen[v] {
				t.Errorf("%s has the version %d again", name, n)
			} else {
				seen[v] = true
			}
		}
	}
	relaytest.NoError(t, database.Write(ctx, "test", func(ctx context.Context, tx *db.Tx) error { return tx.Bump(ctx, "counted") }))
	versions()
	for range 3 {
		relaytest.NoError(t, database.Invalidate(ctx))
		versions()
	}
}

func failuresAreApart(t *testing.T, database *db.DB) {
	refused := errors.New("no")
	dbtest.Together(100, func(i int) {
		err := database.Write(t.Context(), "test", func(ctx context.Context, tx *db.Tx) error {
			if err := tx.Bump(ctx, "counted"); err != nil {
				return err
			}
			if i%4 == 0 {
				return refused
			}
			if i%4 == 1 {
				return tx.Run(ctx, "test", "INSERT INTO version (name, n) VALUES ('counted', 1)")
			}
			return nil
		})
		switch {
		case i%4 == 0 && !errors.Is(err, refused), i%4 == 1 && relay.KindOf(err) != relay.KindUnexpected, i%4 > 1 && err != nil:
			t.Errorf("%d: %v", i, err)
		}
	})
	if n, err := db.Version(t.Context(), database, "counted"); err != nil || n != 50 {
		t.Errorf("counted %d, %v", n, err)
	}
}

func refusalsCanBeRead(t *testing.T, database *db.DB) {
	taken := errors.New("taken")
	for round := range 50 {
		name := fmt.Sprint("round", round)
		dbtest.Together(4, func(_ int) {
			err := database.Write(t.Context(), "test", func(ctx context.Context, tx *db.Tx) error {
				n, err := tx.Exec(ctx, "test", "INSERT INTO version (name, n) VALUES ($1, 1) ON CONFLICT DO NOTHING", name)
				if err == nil && n == 0 {
					err = taken
				}
				return err
			})
			if err == nil {
				return
			}
			if !errors.Is(err, taken) {
				t.Error(err)
			}
			if n, err := db.Version(t.Context(), database, name); err != nil || n != 1 {
				t.Errorf("%s is refused and %d, %v", name, n, err)
			}
		})
	}
}

func batchesComeBack(t *testing.T, database *db.DB) {
	texts := []string{"", "plain", `"quoted" \ é`, "tab\tnew\nline\x1f", "nul\x00", "bad\xff", strings.Repeat("x", 100_000), "{for} $1 ?"}
	b := db.NewBatch("name, amount")
	for i, text := range texts {
		b.Add(text, int64(i)<<55)
	}
	found, err := db.Values[string](t.Context(), database, "test", "SELECT name FROM batch WHERE amount = (n - 1) * $1 ORDER BY n", int64(1)<<55, b)
	if err != nil || len(found) != len(texts) {
		t.Fatalf("%d rows, %v", len(found), err)
	}
	for i, text := range texts {
		want := strings.NewReplacer("\x00", "\ufffd", "\xff", "\ufffd").Replace(text)
		if found[i] != want {
			t.Errorf("row %d: %q, want %q", i, found[i], want)
		}
	}
}

func schemaIsListed(t *testing.T, db *db.DB) {
	all, err := db.Migrations(t.Context())
	if err != nil || len(all) == 0 || all[0].Name != "schema" {
		t.Fatalf("%+v, %v", all, err)
	}
	for _, m := range all {
		if !m.Applied {
			t.Errorf("%d_%s is not applied", m.Version, m.Name)
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
	dbtest.Together(4, func(i int) {
		gateway, err := db.Open(t.Context(), o)
		if err != nil {
			t.Errorf("gateway %d: %v", i, err)
			return
		}
		if err := gateway.Close(); err != nil {
			t.Errorf("gateway %d: %v", i, err)
		}
	})
	schemaIsListed(t, database)
	rows, err := db.Value[int](t.Context(), database, "test", "SELECT COUNT(*) FROM message_id")
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of rows of message_id", rows, 1)
}

// A write that meets the end of the store is made or refused, and none waits for ever.
func TestWritesWhileTheStoreCloses(t *testing.T) {
	database := dbtest.Open(t, db.Options{Dir: t.TempDir()})
	dbtest.Together(50, func(i int) {
		if i == 25 {
			relaytest.NoError(t, database.Close())
		}
		err := database.Run(t.Context(), "test", "UPDATE version SET n = n WHERE name = ''")
		if err != nil && relay.KindOf(err) != relay.KindUnavailable {
			t.Errorf("write %d: %v", i, err)
		}
	})
}

func TestErrorsSayWhatToDo(t *testing.T) {
	server := dbtest.Shared(t)
	for name, tc := range map[string]struct{ url, says string }{
		"no URL":           {"mysql://h/d", "want postgres://"},
		"a broken URL":     {"postgres://u:secret@h:port/d", "does not parse"},
		"no such database": {server.URL + "none", "does not exist"},
		"nobody there":     {"postgres://u:secret@127.0.0.1:1/d", "cannot be reached"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := db.Open(t.Context(), db.Options{URL: tc.url})
			text := fmt.Sprint(err, relay.FieldsOf(err))
			if err == nil || !strings.Contains(text, tc.says) || strings.Contains(text, "secret") {
				t.Errorf("%s", text)
			}
		})
	}
}

func sizesAreByDomain(t *testing.T, db *db.DB) {
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
			t.Errorf("%s: %d bytes", domain, bytes)
		}
	}
}
