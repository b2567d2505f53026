package sqlstore_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/sqlstore"
)

// TestADatabaseThatLostTransactionsSaysFromWhere damages the files of a database as a
// process that was killed leaves them.
func TestADatabaseThatLostTransactionsSaysFromWhere(t *testing.T) {
	const writes = 10
	killed, earlier := t.TempDir(), ""
	db := openSQLite(t, killed)
	relaytest.NoError(t, db.Close()) // which moves the schema to the main file
	db = openSQLite(t, killed)
	written := uint64(0)
	db.Progress().Follow(func() map[string]uint64 { return map[string]uint64{"uplink": written} })
	for ; written < writes; written++ {
		if written == writes/2 {
			earlier = t.TempDir()
			relaytest.NoError(t, os.CopyFS(earlier, os.DirFS(killed)))
		}
		relaytest.NoError(t, db.Write(t.Context(), "test", func(ctx context.Context, tx *sqlstore.Tx) error {
			return tx.Run(ctx, "test", "INSERT INTO version (name, n) VALUES ($1, 1)", fmt.Sprint("w", written))
		}))
		relaytest.NoError(t, db.Check(t.Context())) // a transaction that changes nothing is not counted
	}

	wal := sqlstore.File + "-wal"
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
			for _, name := range []string{sqlstore.File, wal} {
				relaytest.NoError(t, os.Remove(filepath.Join(dir, name)))
				b, err := os.ReadFile(filepath.Join(earlier, name))
				relaytest.NoError(t, err, os.WriteFile(filepath.Join(dir, name), b, 0o600))
			}
		}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			relaytest.NoError(t, os.CopyFS(dir, os.DirFS(killed)))
			relaytest.NoError(t, os.RemoveAll(filepath.Join(dir, sqlstore.File+"-shm")))
			tc.damage(t, dir)
			for range 2 { // what was lost is noticed again until it is followed
				db := openSQLite(t, dir)
				loss := db.Progress().Loss()
				relaytest.Equal(t, "the loss is found", loss.Found, tc.found)
				left, err := sqlstore.Value[uint64](t.Context(), db, "test", "SELECT count(*) FROM version WHERE name LIKE 'w%'")
				relaytest.NoError(t, err)
				if position := loss.Positions["uplink"]; (left == writes) == tc.found || position > left || left > position+1 {
					t.Errorf("%d of %d writes are left, the position is %d", left, writes, position)
				}
				relaytest.NoError(t, db.Run(t.Context(), "test", "DELETE FROM version WHERE name = 'w0'"),
					db.Run(t.Context(), "test", "INSERT INTO version (name, n) VALUES ('w0', 1)"), db.Close())
				if left == 0 {
					return
				}
			}
			db := openSQLite(t, dir)
			db.Progress().Follow(func() map[string]uint64 { return nil })
			relaytest.NoError(t, db.Run(t.Context(), "test", "DELETE FROM version WHERE name = 'w0'"), db.Close())
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
			db := openSQLite(t, dir)
			relaytest.Equal(t, "the loss of a new database", db.Progress().Loss().Found || db.Progress().Loss().Unknown, false)
			db.Progress().Follow(func() map[string]uint64 { return map[string]uint64{"sms": 7} })
			relaytest.NoError(t, db.Run(t.Context(), "test", "INSERT INTO version (name, n) VALUES ('w', 1)"), db.Close())
			relaytest.NoError(t, damage(filepath.Join(dir, sqlstore.File+sqlstore.CommitsSuffix)))
			loss := openSQLite(t, dir).Progress().Loss()
			relaytest.Equal(t, "the loss is unknown", loss.Unknown, true)
			relaytest.Equal(t, "the positions", loss.Positions, map[string]uint64{"sms": 7})
			relaytest.Equal(t, "the time of the last transaction is known", loss.Since.IsZero(), false)
		})
	}
}

func openSQLite(t *testing.T, dir string) *sqlstore.DB {
	t.Helper()
	db, err := sqlstore.Open(t.Context(), sqlstore.Options{Dir: dir})
	relaytest.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
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
