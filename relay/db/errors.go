package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	sqlitedriver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/penstock/penstock/relay"
)

// Wrap adds a label and a kind to an error, see the package's documentation. It returns nil
// for nil, and an error that has a kind unchanged.
func Wrap(label string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*relay.Error](err); ok {
		return err
	}
	if errors.Is(err, sql.ErrNoRows) {
		return NotFound(label)
	}
	if advice, down := unavailable(err); down {
		return relay.Errorf(relay.KindUnavailable, "%s: %s%w", label, advice, err)
	}
	return relay.Errorf(relay.KindUnexpected, "%s: %w", label, err)
}

// unavailable reports whether the database cannot do the operation now, in contrast to an
// operation that is invalid, and returns advice for the operator.
func unavailable(err error) (advice string, down bool) {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return postgresDown(pg)
	}
	if lite, ok := errors.AsType[*sqlitedriver.Error](err); ok {
		return sqliteDown(lite.Code())
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return "PostgreSQL cannot be reached: ", true
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return "", true
	}
	connectionErrors := []error{
		driver.ErrBadConn, sql.ErrConnDone, sql.ErrTxDone, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, os.ErrDeadlineExceeded,
		context.DeadlineExceeded, context.Canceled,
	}
	if slices.ContainsFunc(connectionErrors, func(target error) bool { return errors.Is(err, target) }) {
		return "", true
	}
	// database/sql has no error values for a database that is closed while it is used.
	messages := []string{"database is closed", "statement is closed", "conn closed"}
	return "", slices.ContainsFunc(messages, func(message string) bool { return strings.Contains(err.Error(), message) })
}

func postgresDown(err *pgconn.PgError) (advice string, down bool) {
	const incomplete = "the database lacks tables of Penstock, it was emptied or replaced: restore a backup, or restart the gateway, " +
		"which creates them; then run `penstock recover`: "
	adviceByCode := map[string]string{
		"3D000": "the database of database.url does not exist: ",
		"42501": "the user of database.url lacks a right: ",
		"42P01": incomplete, "42703": incomplete, "3F000": incomplete, // see IsSchemaMissing
		"25006": "this PostgreSQL is a read-only standby, database.url must reach the primary: ",
		"53100": "PostgreSQL's disk is full, free disk space there: ",
		"53300": "PostgreSQL accepts no more connections, raise max_connections: ",
	}
	class := err.Code[:min(2, len(err.Code))]
	if class == "28" {
		return "PostgreSQL refused the user or password of database.url: ", true
	}
	advice, down = adviceByCode[err.Code]
	return advice, down || slices.Contains([]string{"08", "40", "53", "57", "58"}, class)
}

// IsSchemaMissing reports whether an error means that PostgreSQL lacks the schema, a table or a
// column.
func IsSchemaMissing(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (pg.Code == "42P01" || pg.Code == "42703" || pg.Code == "3F000")
}

// damagedAdvice is the advice for a damaged SQLite database. Such a database counts as
// unavailable, so that requests are refused and events wait instead of being quarantined.
const damagedAdvice = "the database file is damaged: stop the gateway, keep a copy of the data directory, " +
	"then run `penstock restore` with a backup, start the gateway and run `penstock recover`: "

// IsDamaged reports whether an error means that a SQLite database is damaged.
func IsDamaged(err error) bool {
	lite, ok := errors.AsType[*sqlitedriver.Error](err)
	return ok && (lite.Code()&0xff == sqlite3.SQLITE_CORRUPT || lite.Code()&0xff == sqlite3.SQLITE_NOTADB)
}

// AdviseDamage adds advice to the error of a damaged SQLite database, and returns any other
// error unchanged.
func AdviseDamage(err error) error {
	if !IsDamaged(err) {
		return err
	}
	return fmt.Errorf("%s%w", damagedAdvice, err)
}

// wrap adds a label and a kind to an error of this database, see Wrap. It records damage,
// which Check returns from then on.
func (d *DB) wrap(label string, err error) error {
	err = Wrap(label, d.explain(err))
	if err != nil && IsDamaged(err) && d.health.Note(err) {
		d.opts.Logger.Error("the database is damaged", "error", err)
	}
	return err
}

func (t *Tx) wrap(label string, err error) error { return t.db.wrap(label, err) }

func sqliteDown(code int) (advice string, down bool) {
	switch code & 0xff {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return damagedAdvice, true
	case sqlite3.SQLITE_FULL:
		return "the disk is full, free disk space: ", true
	case sqlite3.SQLITE_READONLY:
		return "the database cannot be written to: ", true
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return "another program has locked the database: ", true
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_INTERRUPT:
		return "", true
	}
	return "", false
}

// IsLoginRefused reports whether a server refuses the user of database.url or does not have the
// database, so that waiting does not help.
func IsLoginRefused(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (strings.HasPrefix(pg.Code, "28") || pg.Code == "3D000" || pg.Code == "42501")
}

// conflicted reports whether a transaction failed because of a concurrent transaction, or
// because a migration changed the result of a prepared statement. Such a transaction may
// succeed when it is run again.
func conflicted(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (pg.Code == "40001" || pg.Code == "40P01" || pg.Code == "0A000" && strings.Contains(pg.Message, "cached plan"))
}
