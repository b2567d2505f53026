package app

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/client"
	"github.com/penstock/penstock/config"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/ledger/vault"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestCommandsDoNotReplaceAMissingDatabase runs commands that read records in a data directory without
// penstock.db.
func TestCommandsDoNotReplaceAMissingDatabase(t *testing.T) {
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

func TestOnlyADamagedFileMayBeRemoved(t *testing.T) {
	const advice = "remove the file"
	for _, tc := range []struct {
		name    string
		create  func(path string) error
		damaged bool
	}{
		{"the file has other content", func(path string) error { return os.WriteFile(path, []byte("{"), 0o600) }, true},
		{"the file cannot be read", func(path string) error { return os.Mkdir(path, 0o700) }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := config.Config{DataDir: t.TempDir(), Database: config.Database{URL: "postgres://h/d"}, Ledger: config.Ledger{MasterKey: "k"}}
			for _, file := range []string{primaryFile, databaseFile} {
				relaytest.NoError(t, tc.create(filepath.Join(cfg.DataDir, file)))
			}
			_, primaryErr := openPrimary(t.Context(), cfg, "one", slog.New(slog.DiscardHandler))
			_, witnessErr := loadWitness(cfg.DataDir)
			for _, err := range []error{primaryErr, witnessErr} {
				if err == nil || strings.Contains(err.Error(), advice) != tc.damaged {
					t.Errorf("error = %v, want the advice %q: %v", err, advice, tc.damaged)
				}
			}
		})
	}
}
