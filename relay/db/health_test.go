package db_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

// Check takes the write lock and does not write to the disk.
func TestCheckWritesNothing(t *testing.T) {
	dir := t.TempDir()
	database := dbtest.Open(t, db.Options{Dir: dir})
	database.Progress().Follow(func() map[string]uint64 { return nil })
	relaytest.NoError(t, database.Invalidate(t.Context())) // as penstock recover does
	commits := func() string {
		return string(relaytest.Must(os.ReadFile(filepath.Join(dir, db.File+db.CommitsSuffix)))(t))
	}
	oldCommits := commits()
	relaytest.NoError(t, database.Check(t.Context()))
	relaytest.Equal(t, "the number of writes", commits(), oldCommits)
}

// TestDamagedPagesAreFound changes the database file of a stopped gateway.
func TestDamagedPagesAreFound(t *testing.T) {
	closedDir := t.TempDir()
	database := openSQLite(t, closedDir)
	page, err := db.Value[int](t.Context(), database, "test", "SELECT rootpage FROM sqlite_schema WHERE name = 'event_mark'")
	relaytest.NoError(t, err, database.Run(t.Context(), "test", "INSERT INTO setting (name, value) VALUES ('testname', 'aaaaaaaa')"), database.Close())
	for _, tc := range []struct {
		name   string
		change func(b []byte) []byte
		want   string // part of the error; empty for no error
	}{
		{"the file is unchanged", func(b []byte) []byte { return b }, ""},
		{"the header of a page is damaged", func(b []byte) []byte { b[(page-1)*4096] ^= 0xff; return b }, "the database file is damaged"},
		{"the cells of a page are damaged", func(b []byte) []byte {
			copy(b[(page-1)*4096+1:], "\xff\xff\xff\xff\xff\xff\xff")
			return b
		}, "the database file is damaged"},
		{"a key differs between table and index, which quick_check does not find", func(b []byte) []byte {
			return bytes.Replace(b, []byte("testname"), []byte("testnale"), 1)
		}, "integrity check: "},
		{"a changed value is not found", func(b []byte) []byte { return bytes.Replace(b, []byte("aaaaaaaa"), []byte("bbbbbbbb"), 1) }, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			b, err := os.ReadFile(filepath.Join(closedDir, db.File))
			relaytest.NoError(t, err, os.WriteFile(filepath.Join(dir, db.File), tc.change(b), 0o600))
			database := openSQLite(t, dir)
			relaytest.NoError(t, database.Check(t.Context()))
			err = database.CheckIntegrity(t.Context())
			damaged := false
			select {
			case <-database.Damaged():
				damaged = true
			default:
			}
			if tc.want == "" {
				relaytest.NoError(t, err, database.Check(t.Context()))
				relaytest.Equal(t, "whether damage is found", damaged, false)
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want %q", err, tc.want)
			}
			relaytest.Equal(t, "whether damage is found", damaged, true)
			relaytest.Equal(t, "the error of Check", fmt.Sprint(database.Check(t.Context())), fmt.Sprint(err))
		})
	}
}

func TestAFileThatIsReplacedIsNoticed(t *testing.T) {
	for name, replace := range map[string]func(path string) error{
		"removed": func(path string) error { return os.Rename(path, path+".old") },
		"replaced": func(path string) error {
			return errors.Join(os.Rename(path, path+".old"), os.WriteFile(path, nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			database := openSQLite(t, dir)
			relaytest.NoError(t, database.Check(t.Context()), replace(filepath.Join(dir, db.File)))
			if err := database.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "put the file back or run `penstock restore`") {
				t.Errorf("error of Check = %v, want a missing file", err)
			}
		})
	}
}
