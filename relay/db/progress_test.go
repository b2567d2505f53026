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

// TestADatabaseThatLostTransactionsSaysFromWhere damages the files of a database as a
// process that was killed leaves them.
func TestADatabaseThatLostTransactionsSaysFromWhere(t *testing.T) {
	const writes = 10
	killed, earlier := t.TempDir(), ""
	database := openSQLite(t, killed)
	relaytest.NoError(t, database.Close()) // which moves the schema to the main file
	database = openSQLite(t, killed)
	written := uint64(0)
	database.Progress().Follow(func() map[string]uint64 { return map[string]uint64{"uplink": written} })
	for ; written < writes; written++ {
		if written == writes/2 {
			earlier = t.TempDir()
			relaytest.NoError(t, os.CopyFS(earlier, os.DirFS(killed)))
		}
		relaytest.NoError(t, database.Write(t.Context(), "test", func(ctx context.Context, tx *db.Tx) error {
			return tx.Run(ctx, "test", "INSERT INTO version (name, n) VALUES ($1, 1)", fmt.Sprint("w", written))
		}))
		relaytest.NoError(t, database.Check(t.Context())) // a transaction that changes nothing is not counted
	}

	wal := db.File + "-wal"
	for _, tc := range []struct {
		name   string
		damage func(t *testing.T, dir string)
		found  bool
	}{
		{"nothing is damaged", func(*testing.T, string) {}, false},
		{"the log is deleted", func(t *testing.T, dir string) { relaytest.NoError(t, os.Remove(filepath.Join(dir, wal))) }, true},
		{"the log is empty", func(t *testing.T, dir string) { relaytest.NoError(t, os.Truncate(filepath.Join(dir, wal), 0)) }, true},
		{"a page of the log is damaged", flipBytes(wal, 2, 1), true},
		{"the head of the log's last page is damaged", flipBytes(wal, 1, 4096), true},
		{"the checksum of the log's last page is damaged", flipBytes(wal, 1, 4096+8), true},
		{"an earlier copy is put back", func(t *testing.T, dir string) {
			for _, name := range []string{db.File, wal} {
				relaytest.NoError(t, os.Remove(filepath.Join(dir, name)))
				b, err := os.ReadFile(filepath.Join(earlier, name))
				relaytest.NoError(t, err, os.WriteFile(filepath.Join(dir, name), b, 0o600))
			}
		}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			relaytest.NoError(t, os.CopyFS(dir, os.DirFS(killed)))
			relaytest.NoError(t, os.RemoveAll(filepath.Join(dir, db.File+"-shm")))
			tc.damage(t, dir)
			for range 2 { // what was lost is noticed again until it is followed
				database := openSQLite(t, dir)
				loss := database.Progress().Loss()
				relaytest.Equal(t, "the loss is found", loss.Found, tc.found)
				left, err := db.Value[uint64](t.Context(), database, "test", "SELECT count(*) FROM version WHERE name LIKE 'w%'")
				relaytest.NoError(t, err)
				if position := loss.Positions["uplink"]; (left == writes) == tc.found || position > left || left > position+1 {
					t.Errorf("%d of %d writes are left, the position is %d", left, writes, position)
				}
				relaytest.NoError(t, database.Run(t.Context(), "test", "DELETE FROM version WHERE name = 'w0'"),
					database.Run(t.Context(), "test", "INSERT INTO version (name, n) VALUES ('w0', 1)"), database.Close())
				if left == 0 {
					return
				}
			}
			database := openSQLite(t, dir)
			database.Progress().Follow(func() map[string]uint64 { return nil })
			relaytest.NoError(t, database.Run(t.Context(), "test", "DELETE FROM version WHERE name = 'w0'"), database.Close())
			relaytest.Equal(t, "the loss is found once more", openSQLite(t, dir).Progress().Loss().Found, false)
		})
	}
}

// TestTheNumberOfTransactionsIsDamaged loses the file with the number.
func TestTheNumberOfTransactionsIsDamaged(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"deleted": os.Remove,
		"empty":   func(path string) error { return os.Truncate(path, 0) },
		"cut":     func(path string) error { return os.Truncate(path, 20) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			database := openSQLite(t, dir)
			relaytest.Equal(t, "the loss of a new database", database.Progress().Loss().Found || database.Progress().Loss().Unknown, false)
			database.Progress().Follow(func() map[string]uint64 { return map[string]uint64{"sms": 7} })
			relaytest.NoError(t, database.Run(t.Context(), "test", "INSERT INTO version (name, n) VALUES ('w', 1)"), database.Close())
			relaytest.NoError(t, damage(filepath.Join(dir, db.File+db.CommitsSuffix)))
			loss := openSQLite(t, dir).Progress().Loss()
			relaytest.Equal(t, "the loss is unknown", loss.Unknown, true)
			relaytest.Equal(t, "the positions", loss.Positions, map[string]uint64{"sms": 7})
			relaytest.Equal(t, "the time of the last transaction is known", loss.Since.IsZero(), false)
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

// flipBytes flips 8 bytes of a file: at a part of its length, a number of bytes earlier.
func flipBytes(name string, part, before int64) func(t *testing.T, dir string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		path := filepath.Join(dir, name)
		b, err := os.ReadFile(path)
		relaytest.NoError(t, err)
		first := int64(len(b))/part - before
		for i := range min(8, int64(len(b))-first) {
			b[first+i] ^= 0xff
		}
		relaytest.NoError(t, os.WriteFile(path, b, 0o600))
	}
}
