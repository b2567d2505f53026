package database

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func spec() Spec {
	return Spec{File: "a?b#c.db", Version: 2, Schema: "CREATE TABLE IF NOT EXISTS t (n INTEGER);", Readers: 2}
}

func count(t *testing.T, d *DB) (n int) {
	t.Helper()
	if err := d.Read.QueryRow("SELECT COUNT(*) FROM t").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestAChangeIsMadeWholeOrNotAtAll(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "er")
	d, err := Open(t.Context(), dir, spec())
	if err != nil {
		t.Fatal(err)
	}
	no := errors.New("no")
	for _, end := range []error{nil, no} {
		err := d.Change(t.Context(), func(tx *sql.Tx) error {
			_, err := tx.Exec("INSERT INTO t VALUES (1)")
			return errors.Join(err, end)
		})
		if !errors.Is(err, end) {
			t.Error(err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d, err = Open(t.Context(), dir, spec())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	if n := count(t, d); n != 1 {
		t.Errorf("%d rows", n)
	}
	if info, err := os.Stat(filepath.Join(dir, spec().File)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := d.Read.Exec("INSERT INTO t VALUES (2)"); err == nil {
		t.Error("a reader can write")
	}
}

func TestWhatCannotBeOpened(t *testing.T) {
	dir := t.TempDir()
	d, err := Open(t.Context(), dir, spec())
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	older := spec()
	older.Version = 1
	if _, err := Open(t.Context(), dir, older); err == nil || !strings.Contains(err.Error(), "newer version (2)") {
		t.Errorf("a newer one: %v", err)
	}
	if _, err := Open(t.Context(), filepath.Join(dir, spec().File), spec()); err == nil {
		t.Error("a directory that is a file")
	}
	broken := spec()
	broken.Schema = "CREATE;"
	if _, err := Open(t.Context(), dir, broken); err == nil {
		t.Error("a schema that is none")
	}
}
