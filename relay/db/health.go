package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// Health records the first damage of an open SQLite database. It is safe for concurrent use.
type Health struct {
	path    string
	opened  os.FileInfo   // of the file that was opened
	damaged chan struct{} // closed by the first Note

	mu     sync.Mutex
	damage error
}

// NewHealth returns the health of the open database at path.
func NewHealth(path string) (*Health, error) {
	opened, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	return &Health{path: path, opened: opened, damaged: make(chan struct{})}, nil
}

// Note records err if it is the first damage, and reports whether it is.
func (h *Health) Note(err error) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.damage != nil {
		return false
	}
	h.damage = err
	close(h.damaged)
	return true
}

// Damaged returns a channel that is closed when damage is found.
func (h *Health) Damaged() <-chan struct{} { return h.damaged }

// Check returns the damage, or an error if the file was removed or replaced.
func (h *Health) Check() error {
	h.mu.Lock()
	damage := h.damage
	h.mu.Unlock()
	if damage != nil {
		return damage
	}
	if current, err := os.Stat(h.path); err != nil || !os.SameFile(h.opened, current) {
		return fmt.Errorf("%s was removed or replaced while the gateway uses it: stop the gateway, put the file back or run `penstock restore` with a backup, then start it", filepath.Base(h.path))
	}
	return nil
}

// CheckIntegrity reads the whole database, and records and returns its damage. It does not
// find changed bytes within a value.
func (h *Health) CheckIntegrity(ctx context.Context, db *sql.DB) error {
	const query = `
		SELECT COALESCE(group_concat(integrity_check, '; '), '')
		FROM (
		  SELECT integrity_check
		  FROM pragma_integrity_check
		  WHERE integrity_check <> 'ok'
		  LIMIT 10)`
	var findings string
	err := db.QueryRowContext(ctx, query).Scan(&findings)
	switch {
	case IsDamaged(err):
		err = AdviseDamage(err)
	case err == nil && findings != "":
		err = errors.New(damagedAdvice + "integrity check: " + findings)
	default:
		return err
	}
	err = fmt.Errorf("%s: %w", filepath.Base(h.path), err)
	h.Note(err)
	return err
}
