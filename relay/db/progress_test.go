package db_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestLostTransactionsAreFound damages the files that a killed process leaves.
func TestLostTransactionsAreFound(t *testing.T) {
	const writes = 10
	killedDir, earlierDir := t.TempDir(), ""
	database := openSQLite(t, killedDir)
	relaytest.NoError(t, database.Close()) // moves the schema to the main file
	database = openSQLite(t, killedDir)
	written := uint64(0)
	database.Progress().Follow(func() map[string]uint64 { return map[string]uint64{"uplink": written} })
	for ; written < writes; written++ {
		if written == writes/2 {
			earlierDir = t.TempDir()
			relaytest.NoError(t, os.CopyFS(earlierDir, os.DirFS(killedDir)))
		}
		relaytest.NoError(t, database.Write(t.Context(), "test", func(ctx context.Context, tx *db.Tx) error {
			return tx.Run(ctx, "test", "INSERT INTO version (name, n) VALUES ($1, 1)", fmt.Sprint("w", written))
		}))
		relaytest.NoError(t, database.Check(t.Context())) // a transaction without changes is not counted
	}

	wal := db.File + "-wal"
	for _, tc := range []struct {
		name   string
		damage func(t *testing.T, dir string)
		found  bool
	}{
		{"nothing is damaged", func(*testing.T, string) {}, false},
		{"the WAL is deleted", func(t *testing.T, dir string) { relaytest.NoError(t, os.Remove(filepath.Join(dir, wal))) }, true},
		{"the WAL is empty", func(t *testing.T, dir string) { relaytest.NoError(t, os.Truncate(filepath.Join(dir, wal), 0)) }, true},
		{"a page of the WAL is damaged", flipBytes(wal, 2, 1), true},
		{"the header of the last page of the WAL is damaged", flipBytes(wal, 1, 4096), true},
		{"the checksum of the last page of the WAL is damaged", flipBytes(wal, 1, 4096+8), true},
		{"an earlier copy is restored", func(t *testing.T, dir string) {
			for _, name := range []string{db.File, wal} {
				relaytest.NoError(t, os.Remove(filepath.Join(dir, name)))
				b, err := os.ReadFile(filepath.Join(earlierDir, name))
				relaytest.NoError(t, err, os.WriteFile(filepath.Join(dir, name), b, 0o600))
			}
		}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			relaytest.NoError(t, os.CopyFS(dir, os.DirFS(killedDir)))
			relaytest.NoError(t, os.RemoveAll(filepath.Join(dir, db.File+"-shm")))
			tc.damage(t, dir)
			for range 2 { // a loss is found again until Follow is called
				database := openSQLite(t, dir)
				loss := database.Progress().Loss()
				relaytest.Equal(t, "whether a loss is found", loss.Found, tc.found)
				remaining, err := db.Value[uint64](t.Context(), database, "test", "SELECT count(*) FROM version WHERE name LIKE 'w%'")
				relaytest.NoError(t, err)
				if position := loss.Positions["uplink"]; (remaining == writes) == tc.found || position > remaining || remaining > position+1 {
					t.Errorf("%d of %d writes remain, the position is %d", remaining, writes, position)
				}
				relaytest.NoError(t, database.Run(t.Context(), "test", "DELETE FROM version WHERE name = 'w0'"),
					database.Run(t.Context(), "test", "INSERT INTO version (name, n) VALUES ('w0', 1)"), database.Close())
				if remaining == 0 {
					return
				}
			}
			database := openSQLite(t, dir)
			database.Progress().Follow(func() map[string]uint64 { return nil })
			relaytest.NoError(t, database.Run(t.Context(), "test", "DELETE FROM version WHERE name = 'w0'"), database.Close())
			relaytest.Equal(t, "whether a loss is found after Follow", openSQLite(t, dir).Progress().Loss().Found, false)
		})
	}
}

// TestALossIsUnknownWithoutTheCount damages the file with the number of transactions.
func TestALossIsUnknownWithoutTheCount(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"deleted": os.Remove,
		"empty":   func(path string) error { return os.Truncate(path, 0) },
		"cut":     func(path string) error { return os.Truncate(path, 20) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			database := openSQLite(t, dir)
			relaytest.Equal(t, "whether a new database has a loss", database.Progress().Loss().Found || database.Progress().Loss().Unknown, false)
			database.Progress().Follow(func() map[string]uint64 { return map[string]uint64{"sms": 7} })
			relaytest.NoError(t, database.Run(t.Context(), "test", "INSERT INTO version (name, n) VALUES ('w', 1)"), database.Close())
			relaytest.NoError(t, damage(filepath.Join(dir, db.File+db.CommitsSuffix)))
			loss := openSQLite(t, dir).Progress().Loss()
			relaytest.Equal(t, "whether the loss is unknown", loss.Unknown, true)
			relaytest.Equal(t, "the positions", loss.Positions, map[string]uint64{"sms": 7})
			relaytest.Equal(t, "whether the time of the last transaction is missing", loss.Since.IsZero(), false)
		})
	}
}

func openSQLite(t *testing.T, dir string) *db.DB {
	t.Helper()
	database, err := db.Open(t.Context(), db.Options{Dir: dir})
	relaytest.NoError(t, err)
	t.Cleanup(func() { _ = database.Close() })
	return database
}

// flipBytes returns a function that flips 8 bytes of a file, from len/divisor - distance on.
func flipBytes(name string, divisor, distance int64) func(t *testing.T, dir string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		path := filepath.Join(dir, name)
		b, err := os.ReadFile(path)
		relaytest.NoError(t, err)
		start := int64(len(b))/divisor - distance
		for i := range min(8, int64(len(b))-start) {
			b[start+i] ^= 0xff
		}
		relaytest.NoError(t, os.WriteFile(path, b, 0o600))
	}
}
