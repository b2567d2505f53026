package readings

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
)

//go:embed schema/1.sql
var schema1 string

//go:embed schema/2.sql
var schema2 string

//go:embed schema/3.sql
var schema3 string

// schema returns the steps to the newest version of the tables; version n is the result
// of the first n steps.
func schema() []string { return []string{schema1, schema2, schema3} }

// applicationID marks the file as a store of readings ("PsRd").
const applicationID = 0x50735264

// migrate upgrades the tables to the newest version, in one transaction.
func migrate(ctx context.Context, db *sql.DB, steps []string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	version, err := version(ctx, tx)
	switch {
	case err != nil:
		return err
	case version > len(steps):
		return fmt.Errorf("schema version %d: this program knows %d; use a newer one", version, len(steps))
	case version == len(steps):
		return nil
	}
	for _, step := range steps[version:] {
		if _, err := tx.ExecContext(ctx, step); err != nil {
			return fmt.Errorf("schema: %w", err)
		}
	}
	// A pragma takes no parameters; both numbers are constants.
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, len(steps))); err != nil {
		return err
	}
	return tx.Commit()
}

// version returns the version of the tables: 0 in a new file.
func version(ctx context.Context, tx *sql.Tx) (int, error) {
	var id, version, tables int
	err := errors.Join(
		tx.QueryRowContext(ctx, "PRAGMA application_id").Scan(&id),
		tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version),
		tx.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables),
	)
	if err == nil && id != applicationID && (tables > 0 || version > 0) {
		err = errors.New("the file belongs to another program")
	}
	return version, err
}
