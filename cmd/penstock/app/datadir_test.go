package app

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/client"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/ledger/vault"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestNoCommandCreatesALostDatabase runs commands that read records in a data directory without
// penstock.db.
func TestNoCommandCreatesALostDatabase(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]func(client.Environment) error{
		"ledger verify":    verifyCommand{}.Run,
		"migrate --status": migrateCommand{Status: true}.Run,
		"backup":           backupCommand{Dir: filepath.Join(t.TempDir(), "backup")}.Run,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			relaytest.NoError(t, os.WriteFile(filepath.Join(dir, databaseFile), []byte("{}"), 0o600))
			relaytest.NoError(t, os.WriteFile(filepath.Join(dir, ledgerKeyFile), []byte(vault.NewMasterKey()), 0o600))
			got := ""
			if err := run(client.Environment{Context: t.Context(), Variables: []string{"PENSTOCK_DATA_DIR=" + dir}, Stdout: io.Discard, Stderr: io.Discard}); err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, "penstock.db is missing or empty") || !strings.Contains(got, "penstock restore") {
				t.Errorf("error = %q, want the missing file and `penstock restore`", got)
			}
			if _, err := os.Stat(filepath.Join(dir, db.File)); err == nil {
				t.Error("the command created an empty database")
			}
		})
	}
}
