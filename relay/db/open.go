package db

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// File is the name of the SQLite database in the data directory.
const File = "penstock.db"

// Options configures a DB. The zero value is SQLite in the working directory.
type Options struct {
	// URL is postgres://…, with several hosts if the database has standbys; empty means
	// SQLite in Dir.
	URL string
	// Dir is the directory of the SQLite database.
	Dir string
	// MaxConns is the maximum number of connections to PostgreSQL (0 means 16) or of readers
	// of SQLite (0 means 4).
	MaxConns int
	// Timeout limits each transaction on PostgreSQL, and each statement outside of a
	// transaction; 0 means 10 s.
	Timeout time.Duration
	// Admit returns an error if connections to a PostgreSQL server must not be used. It is
	// called for each new connection and before each reuse of a connection; nil admits every
	// server.
	Admit func(Server) error
	// Retention is the time for which finished messages and deliveries are kept; 0 means 30 days.
	Retention time.Duration
	// DeadRetention is the time for which dead deliveries are kept; 0 means until a replay.
	DeadRetention time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Logger logs retries and damage; nil means slog.Default.
	Logger *slog.Logger
	// Observe is called with the duration of each transaction ("write") and of each
	// statement outside of a transaction ("read"), unless it is nil.
	Observe func(operation string, duration time.Duration)
}

// DB is an open database of records. It is safe for concurrent use.
type DB struct {
	dialect   dialect
	readPool  *sql.DB
	writePool *sql.DB  // the same as readPool on PostgreSQL
	writer    *writer  // nil on PostgreSQL
	servers   *servers // nil on SQLite
	// progress is nil on PostgreSQL and before the schema is migrated.
	progress *Progress
	opts     Options
	keys     Sealer // nil stores sealed columns unencrypted

	queries sync.Map // statement → statement with the words of the engine
	stmts   sync.Map // statement → *sql.Stmt; only on SQLite
	health  *Health  // nil on PostgreSQL
	// onConnect checks new connections to PostgreSQL; nil before OnConnect.
	onConnect atomic.Pointer[func(context.Context, QueryRow) error]
}

// QueryRow reads one row on a connection.
type QueryRow func(ctx context.Context, query string, args []any, dest ...any) error

// OnConnect sets a function that is called for each new connection to PostgreSQL before it is
// used. A connection for which check fails is closed. check must not use the DB.
func (d *DB) OnConnect(check func(ctx context.Context, query QueryRow) error) {
	d.onConnect.Store(&check)
}

// Open opens the database and migrates its schema to the newest version. It returns an error
// for an invalid URL, a database that cannot be reached or refuses the user, and a schema
// that is newer than the program.
func Open(ctx context.Context, o Options) (*DB, error) {
	d, err := Connect(ctx, o)
	if err != nil {
		return nil, err
	}
	err = d.Migrate(ctx)
	if err == nil && d.writer != nil {
		d.progress, err = OpenProgress(ctx, d.writePool, filepath.Join(d.opts.Dir, File+CommitsSuffix), d.opts.Now)
		err = Wrap(File, err)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// Progress returns the progress of a SQLite database, or nil on PostgreSQL.
func (d *DB) Progress() *Progress { return d.progress }

// Connect opens the database without changing its schema. A SQLite database that was opened
// by Connect must not be written to.
func Connect(ctx context.Context, o Options) (*DB, error) {
	o.Timeout = cmp.Or(max(o.Timeout, 0), 10*time.Second)
	o.Retention = cmp.Or(max(o.Retention, 0), 30*24*time.Hour)
	o.DeadRetention = max(o.DeadRetention, 0)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	d := &DB{opts: o}
	open := d.openSQLite
	if o.URL != "" {
		open = d.openPostgres
	}
	if err := open(ctx); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func (d *DB) openSQLite(ctx context.Context) (err error) {
	d.dialect = sqlite{}
	d.readPool, d.writePool, err = OpenSQLite(ctx, filepath.Join(d.opts.Dir, File), cmp.Or(max(d.opts.MaxConns, 0), 4))
	if err != nil {
		return Wrap(File, err)
	}
	d.writer = &writer{
		db: d, queue: make(chan *pendingWrite, maxJoined), quit: make(chan struct{}), done: make(chan struct{}), stmts: make(map[string]*sql.Stmt),
	}
	go d.writer.run()
	d.health, err = NewHealth(filepath.Join(d.opts.Dir, File))
	return err
}

// Checkpoint moves the content of SQLite's write-ahead log to the database file, except the
// part that a reader still needs.
func (d *DB) Checkpoint(ctx context.Context) error {
	_, err := d.readPool.ExecContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)")
	return d.wrap("checkpoint", err)
}

// CheckIntegrity reads the whole SQLite database and returns an error if it is damaged. Later
// calls of Check return the same error. It must not be called on PostgreSQL.
func (d *DB) CheckIntegrity(ctx context.Context) error {
	return d.health.CheckIntegrity(ctx, d.readPool)
}

// Damaged returns a channel that is closed when damage of the SQLite database is found. It must
// not be called on PostgreSQL.
func (d *DB) Damaged() <-chan struct{} { return d.health.Damaged() }

// OpenSQLite opens a SQLite database, or creates an empty one that only the owner can read.
// readPool has up to maxReaders connections, writePool has one. A transaction of writePool locks
// the database when it begins, and is on disk when it is committed.
func OpenSQLite(ctx context.Context, path string, maxReaders int) (readPool, writePool *sql.DB, err error) {
	if path, err = filepath.Abs(path); err != nil {
		return nil, nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, nil, err
	}
	if err := f.Close(); err != nil {
		return nil, nil, err
	}
	writePool, err = sql.Open("sqlite", sqliteDSN(path, "immediate", "auto_vacuum(2)", "journal_mode(WAL)", "synchronous(FULL)",
		"foreign_keys(1)", "wal_autocheckpoint(4000)", "journal_size_limit(67108864)", "cache_size(-32768)", "temp_store(2)"))
	if err != nil {
		return nil, nil, err
	}
	writePool.SetMaxOpenConns(1)
	if err := writePool.PingContext(ctx); err != nil {
		return nil, nil, errors.Join(err, writePool.Close())
	}
	readPool, err = sql.Open("sqlite", sqliteDSN(path, "deferred", "query_only(1)", "cache_size(-4096)"))
	if err != nil {
		return nil, nil, errors.Join(err, writePool.Close())
	}
	readPool.SetMaxOpenConns(maxReaders)
	readPool.SetMaxIdleConns(maxReaders)
	return readPool, writePool, nil
}

// OpenSQLiteCopy opens a copy of a SQLite database for reading. It changes and creates no files.
// No program may write to the copy while it is open.
func OpenSQLiteCopy(path string) (*sql.DB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	return sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: "immutable=1&mode=ro"}).String())
}

// sqliteDSN returns a data source name with the pragmas of each connection. The path is part
// of a URL, which escapes special characters.
func sqliteDSN(path, lock string, pragmas ...string) string {
	query := url.Values{"_txlock": {lock}, "_pragma": append([]string{"busy_timeout(10000)"}, pragmas...)}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}).String()
}

// Check returns an error if the database is not reliable. On SQLite it checks that the database
// accepts writes, that no damage was found, and that the file was neither removed nor replaced. On
// PostgreSQL it checks that the schema exists, that the server is a primary of version 13 or later
// with the encoding UTF8, and that no setting loses committed transactions.
func (d *DB) Check(ctx context.Context) error {
	if d.writer != nil {
		if err := d.health.Check(); err != nil {
			return err
		}
		return d.Run(ctx, "database", "UPDATE version SET n = n WHERE n < 0") // changes no row
	}
	if _, err := Values[int64](ctx, d, "database", "SELECT n FROM version WHERE name = ''"); err != nil {
		return d.withHost(err)
	}
	settings, err := Map[string, string](ctx, d, "database", `SELECT name, setting FROM pg_settings
WHERE name IN ('server_version_num', 'server_encoding', 'fsync', 'full_page_writes', 'synchronous_commit', 'transaction_read_only')`)
	if err != nil {
		return d.withHost(err)
	}
	var errs []error
	if v := settings["server_version_num"]; len(v) < 6 || v < "130000" {
		errs = append(errs, fmt.Errorf("database: PostgreSQL %s is too old; 13 or later is needed", v))
	}
	if !strings.EqualFold(settings["server_encoding"], "UTF8") {
		errs = append(errs, fmt.Errorf("database: the encoding is %s; create it with ENCODING 'UTF8'", settings["server_encoding"]))
	}
	for _, name := range []string{"fsync", "full_page_writes", "synchronous_commit"} {
		if settings[name] == "off" {
			errs = append(errs, fmt.Errorf("database: %s is off, which loses acknowledged data when the server crashes; set it to on", name))
		}
	}
	if settings["transaction_read_only"] == "on" {
		errs = append(errs, errors.New("database: this PostgreSQL is a read-only standby; database.url must reach the primary"))
	}
	return d.withHost(errors.Join(errs...))
}

// Engine returns the name of the engine: sqlite or postgresql.
func (d *DB) Engine() string { return d.dialect.name() }

// Now returns the time of the database's clock.
func (d *DB) Now() time.Time { return d.opts.Now() }

// Retention returns Options.Retention.
func (d *DB) Retention() time.Duration { return d.opts.Retention }

// DeadRetention returns Options.DeadRetention.
func (d *DB) DeadRetention() time.Duration { return d.opts.DeadRetention }

// Close waits for running and queued writes and closes every connection.
func (d *DB) Close() error {
	var errs []error
	if d.writer != nil {
		d.writer.close()
	}
	if d.progress != nil {
		errs = append(errs, d.progress.Close())
	}
	d.stmts.Range(func(_, stmt any) bool {
		errs = append(errs, stmt.(*sql.Stmt).Close())
		return true
	})
	if d.readPool != nil {
		errs = append(errs, d.readPool.Close())
	}
	if d.writePool != nil && d.writePool != d.readPool {
		errs = append(errs, d.writePool.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("database: close: %w", err)
	}
	return nil
}
