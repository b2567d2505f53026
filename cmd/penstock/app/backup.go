package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/penstock/penstock/cmd/penstock/client"
	"github.com/penstock/penstock/config"
	"github.com/penstock/penstock/delivery/embedded/readings"
	"github.com/penstock/penstock/ingest/journal"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/ledger"
	"github.com/penstock/penstock/relay/ledger/vault"
)

// backupCommand copies the databases of the data directory, even while the gateway runs. It does
// not copy keys and tokens, so that a reader of the backup can neither open sealed values nor use
// the APIs.
type backupCommand struct {
	Dir    string `arg:"" help:"The directory to create; it must be missing or empty." placeholder:"DIR"`
	Config string `help:"The configuration file." placeholder:"FILE"`
}

// databases returns the paths of the SQLite files in a data directory.
func databases() []string {
	return []string{db.File, filepath.Join(readingsDir, readings.File)}
}

// Run copies the files, and prints the back ends that need a separate backup.
func (b backupCommand) Run(env client.Environment) error {
	cfg, err := config.Load(b.Config, env.Variables)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(b.Dir, 0o700); err != nil {
		return err
	}
	if entries, err := os.ReadDir(b.Dir); err != nil {
		return err
	} else if len(entries) > 0 {
		return fmt.Errorf("backup: %s is not empty: name a directory that is missing or empty", b.Dir)
	}
	if err := checkDatabases(cfg); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	dir := filepath.Join(cfg.DataDir, readingsDir)
	if _, err := os.Stat(dir); err == nil && cfg.Influx.URL == "" && isMissing(filepath.Join(dir, readings.File)) {
		return fmt.Errorf("backup: %s is missing or empty: start the gateway, which restores it from the journal", filepath.Join(dir, readings.File))
	}
	for _, name := range databases() {
		if err := copyDatabase(env.Context, filepath.Join(cfg.DataDir, name), filepath.Join(b.Dir, name)); err != nil {
			return fmt.Errorf("backup: %s: %w", name, db.AdviseDamage(err))
		}
	}
	if err := copyFile(filepath.Join(cfg.DataDir, nodeFile), filepath.Join(b.Dir, nodeFile)); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	key := masterKeyPath(cfg)
	if len(cfg.Ledger.MasterKeys()) > 0 {
		key = "ledger.master_key (PENSTOCK_LEDGER_MASTER_KEY)"
	}
	_, err = fmt.Fprintf(env.Stdout, "backed up %s to %s, without the journal, keys and tokens\n"+
		"the records cannot be read without the master key: copy %s separately, and do not store it with the backup\n%s", cfg.DataDir, b.Dir, key, otherBackups(cfg))
	return err
}

// checkMasterKey returns an error if the gateway lacks the master key with which the records of a
// backup are sealed.
func checkMasterKey(ctx context.Context, cfg config.Config, dir string) error {
	file := filepath.Join(dir, db.File)
	if isMissing(file) {
		return nil // the records are in PostgreSQL
	}
	database, err := db.OpenSQLiteCopy(file)
	if err != nil {
		return err
	}
	defer func() { _ = database.Close() }()
	keysets, err := ledger.KeysetsOf(ctx, database)
	if err != nil {
		return err
	}
	keys, err := masterKeys(cfg)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	id, err := vault.MissingKey(keys, keysets)
	if err == nil && id != "" {
		err = fmt.Errorf("the master key %s, which sealed the records of %s, is missing: copy the file ledger-key of the gateway that was backed up to %s, or set ledger.master_key to its content",
			id, dir, masterKeyPath(cfg))
	}
	return err
}

// otherBackups returns instructions for back ends outside the data directory.
func otherBackups(cfg config.Config) string {
	var builder strings.Builder
	if cfg.Database.URL != "" {
		builder.WriteString("the records are in PostgreSQL: back them up with pg_dump -Fc, or with pg_basebackup and its write-ahead log\n")
	}
	if cfg.Influx.URL != "" {
		builder.WriteString("the readings are in InfluxDB: back them up with influxd backup -portable, or influx backup\n")
	}
	return builder.String()
}

// copyDatabase makes a consistent copy of a SQLite database that may be in use. It does nothing if
// the file is missing.
func copyDatabase(ctx context.Context, src, dst string) error {
	if _, err := os.Stat(src); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(dst), 0o700); err != nil {
		return err
	}
	read, write, err := db.OpenSQLite(ctx, src, 1)
	if err != nil {
		return err
	}
	defer func() { _ = errors.Join(read.Close(), write.Close()) }()
	// VACUUM INTO fails on a read-only connection.
	if _, err := write.ExecContext(ctx, "VACUUM INTO ?", dst); err != nil {
		return err
	}
	if err := os.Chmod(dst, 0o600); err != nil {
		return err
	}
	file, err := os.OpenFile(dst, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// copyFile copies a file durably. It does nothing if the file is missing.
func copyFile(src, dst string) error {
	source, err := os.Open(src)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	target, err := os.OpenFile(dst, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Sync(), target.Close())
}

// restoreCommand copies a backup to the data directory of a stopped gateway. The journal stays.
type restoreCommand struct {
	Dir    string `arg:"" help:"The directory that the backup command created." placeholder:"DIR"`
	Config string `help:"The configuration file." placeholder:"FILE"`
}

// Run copies the files and prints the next step.
func (r restoreCommand) Run(env client.Environment) error {
	cfg, err := config.Load(r.Config, env.Variables)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(r.Dir, nodeFile)); err != nil {
		return fmt.Errorf("restore: %s is not a backup of a gateway: name a directory that `penstock backup` created: %w", r.Dir, err)
	}
	unlock, err := lockJournals(cfg.DataDir)
	if err != nil {
		return fmt.Errorf("restore: stop the gateway first: %w", err)
	}
	defer unlock()
	if err := checkMasterKey(env.Context, cfg, r.Dir); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	for _, name := range append(databases(), nodeFile) {
		if err := restoreFile(r.Dir, cfg.DataDir, name); err != nil {
			return fmt.Errorf("restore: %s: %w", name, err)
		}
	}
	if err := outdateWitness(cfg.DataDir); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	_, err = fmt.Fprintf(env.Stdout, "restored %s to %s. Start the gateway, then run `penstock recover`: "+
		"it processes the journal entries since the backup\n%s", r.Dir, cfg.DataDir, otherBackups(cfg))
	return err
}

// lockJournals locks the journals of a data directory, so that no gateway can use the directory.
func lockJournals(dataDir string) (unlock func(), err error) {
	var locks []*os.File
	unlock = func() {
		for _, l := range locks {
			_ = l.Close()
		}
	}
	for _, kind := range event.Kinds() {
		dir := filepath.Join(dataDir, "journal", string(kind))
		if err := os.MkdirAll(dir, 0o750); err != nil {
			unlock()
			return nil, err
		}
		l, err := journal.LockDir(dir)
		if err != nil {
			unlock()
			return nil, err
		}
		locks = append(locks, l)
	}
	return unlock, nil
}

// restoreFile copies a file of a backup, and removes the write-ahead log of the database that it
// replaces.
func restoreFile(src, dst, name string) error {
	if _, err := os.Stat(filepath.Join(src, name)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	target := filepath.Join(dst, name)
	if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		return err
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Remove(target + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return copyFile(filepath.Join(src, name), target)
}
