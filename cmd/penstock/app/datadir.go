package app

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/penstock/penstock/config"
	"github.com/penstock/penstock/delivery/durable"
	"github.com/penstock/penstock/relay/sqlstore"
)

// The files of the data directory that the program itself keeps.
const (
	nodeFile    = "node"
	readingsDir = "readings"
)

// kept returns the random text in a file of the data directory, which it creates at the
// first start, and whether it is new.
func kept(dir, name string, length int) (text string, fresh bool, err error) {
	path := filepath.Join(dir, name)
	b, err := os.ReadFile(path)
	if err == nil && len(strings.TrimSpace(string(b))) > 0 {
		return strings.TrimSpace(string(b)), false, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", false, fmt.Errorf("data directory: %w", err)
	}
	text = strings.ToLower(rand.Text())[:length]
	if err := durable.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o600); err != nil {
		return "", false, fmt.Errorf("data directory: %w", err)
	}
	return text, true, nil
}

// checkDatabases returns an error if the SQLite database of the records that this data
// directory was used with is missing or empty. SQLite would begin a new one in its place.
func checkDatabases(cfg config.Config) error {
	if _, err := os.Stat(filepath.Join(cfg.DataDir, databaseFile)); errors.Is(err, fs.ErrNotExist) {
		return nil // a new data directory
	}
	if path := filepath.Join(cfg.DataDir, sqlstore.File); cfg.Database.URL == "" && missing(path) {
		return fmt.Errorf("%s is missing or empty, although the gateway was used with a database: "+
			"run `penstock restore` with a backup; to begin with an empty database, run `penstock migrate`; then start the gateway and run `penstock recover`", path)
	}
	return nil
}

// missing reports whether a file does not exist or is empty.
func missing(path string) bool {
	info, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0
}
