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
	"github.com/penstock/penstock/relay/db"
)

// The files of the data directory that the program itself keeps.
const (
	nodeFile    = "node"
	readingsDir = "readings"
)

// kept returns the random text in a file of the data directory, which it creates if it is
// missing or empty.
func kept(dir, name string, length int) (text string, err error) {
	if text, err = stored(dir, name); err != nil || text != "" {
		return text, err
	}
	text = strings.ToLower(rand.Text())[:length]
	if err := durable.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("data directory: %w", err)
	}
	return text, nil
}

// keptToken is kept for a token. It refuses one that can be guessed.
func keptToken(dir, name string) (token string, err error) {
	if token, err = storedToken(dir, name); err != nil || token != "" {
		return token, err
	}
	return kept(dir, name, 26)
}

// stored returns the text in a file of the data directory; empty if it is missing or empty.
func stored(dir, name string) (text string, err error) {
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("data directory: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// storedToken is stored for a token. It refuses one that can be guessed.
func storedToken(dir, name string) (token string, err error) {
	if token, err = stored(dir, name); err != nil || token == "" {
		return "", err
	}
	if problem := config.TokenProblem(token); problem != "" {
		return "", fmt.Errorf("%s: %s; write another token to the file, or remove it to have one generated", filepath.Join(dir, name), problem)
	}
	return token, nil
}

// checkDatabases returns an error if the SQLite database of the records that this data
// directory was used with is missing or empty. SQLite would begin a new one in its place.
func checkDatabases(cfg config.Config) error {
	if _, err := os.Stat(filepath.Join(cfg.DataDir, databaseFile)); errors.Is(err, fs.ErrNotExist) {
		return nil // a new data directory
	}
	if path := filepath.Join(cfg.DataDir, db.File); cfg.Database.URL == "" && missing(path) {
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
