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

// Options says where the records are. The zero value is SQLite in the working
// directory.
type Options struct {
	// URL is postgres://…, with several hosts if there are standbys; empty means
	// SQLite in Dir.
	URL string
	// Dir is the directory of the SQLite database.
	Dir string
	// MaxConns is the most connections to PostgreSQL, or readers of SQLite; 0
	// means 16 and 4.
	MaxConns int
	// Timeout bounds each statement on PostgreSQL; 0 means 10 s.
	Timeout time.Duration
	// Admit returns an error if connections to a PostgreSQL server must not be used. It is
	// called for each new connection, and before one is used again; nil admits every
	// server.
	Admit func(Server) error
	// Retention is the time for which a record is kept after its end; 0 means 30 days.
	Retention time.Duration
	// DeadRetention is the same for a dead delivery; 0 means until it is replayed.
	DeadRetention time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Logger reports retries; nil means slog.Default.
	Logger *slog.Logger
	// Observe is called with the time of each transaction ("write") and of each
	// statement outside of one ("read"); nil is not called.
	Observe func(operation string, took time.Duration)
}

// DB is an open database of records. It is safe for concurrent use.
type DB struct {
	dialect dialect
	read    *sql.DB
	write   *sql.DB
	writer  *writer  // nil on PostgreSQL
	servers *servers // nil on SQLite
	// progress is nil on PostgreSQL and until the schema is there.
	progress *Progress
	o        Options
	sealed   Sealer // nil keeps sealed columns as they are

	queries sync.Map // text as written → text as the engine takes it
	stmts   sync.Map // prepared → *sql.Stmt; only on SQLite
	health  *Health  // nil on PostgreSQL
	// onConnect checks new connections to PostgreSQL; nil before OnConnect.
	onConnect atomic.Pointer[func(context.Context, QueryRow) error]
}

// QueryRow reads one row on a connection.
type QueryRow func(ctx context.Context, query string, args []any, dest ...any) error

// OnConnect has check called for each new connection to PostgreSQL before it is used. A
// connection for which check fails is closed. check must not use the DB.
func (d *DB) OnConnect(check func(ctx context.Context, query QueryRow) error) {
	d.onConnect.Store(&check)
}

// Open opens the database and brings its schema to the newest version. It fails
// with the reason for a URL that does not parse, a database that cannot be
// reached or does not let us in, and a schema that is newer than the program.
func Open(ctx context.Context, o Options) (*DB, error) {
	d, err := Connect(ctx, o)
	if err != nil {
		return nil, err
	}
	err = d.Migrate(ctx)
	if err == nil && d.writer != nil {
		d.progress, err = OpenProgress(ctx, d.write, filepath.Join(d.o.Dir, File+CommitsSuffix), d.o.Now)
		err = Wrap(File, err)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// Progress returns the progress of a SQLite database; nil on PostgreSQL.
func (d *DB) Progress() *Progress { return d.progress }

// Connect opens the database and leaves its schema as it is. A SQLite database that was
// opened with it takes no writes.
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
	d := &DB{o: o}
	open := d.openSQLite
	if o.URL != "" {
		open = d.openPostgres
	}
	if err := open(ctx); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// openSQLite opens the database in the data directory.
func (d *DB) openSQLite(ctx context.Context) (err error) {
	d.dialect = sqlite{}
	d.read, d.write, err = OpenSQLite(ctx, filepath.Join(d.o.Dir, File), cmp.Or(max(d.o.MaxConns, 0), 4))
	if err != nil {
		return Wrap(File, err)
	}
	d.writer = &writer{
		db: d, queue: make(chan *pendingWrite, maxJoined), quit: make(chan struct{}), done: make(chan struct{}), stmts: make(map[string]*sql.Stmt),
	}
	go d.writer.run()
	d.health, err = NewHealth(filepath.Join(d.o.Dir, File))
	return err
}

// Checkpoint moves what SQLite's write-ahead log has into the database file, as far as no
// reader still needs it.
func (d *DB) Checkpoint(ctx context.Context) error {
	_, err := d.read.ExecContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)")
	return d.wrap("checkpoint", err)
}

// CheckIntegrity reads the whole of a SQLite database, and returns what is damaged; Check
// reports it from then on.
func (d *DB) CheckIntegrity(ctx context.Context) error { return d.health.CheckIntegrity(ctx, d.read) }

// Damaged is closed when damage of a SQLite database was found.
func (d *DB) Damaged() <-chan struct{} { return d.health.Damaged() }

// OpenSQLite opens a SQLite database, or makes an empty one that only the owner
// can read: for reads with so many connections, and for writes with one.
// Transactions of the latter begin with the lock; what is committed is on disk.
func OpenSQLite(ctx context.Context, path string, readers int) (read, write *sql.DB, err error) {
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
	write, err = sql.Open("sqlite", sqliteDSN(path, "immediate", "auto_vacuum(2)", "journal_mode(WAL)", "synchronous(FULL)",
		"foreign_keys(1)", "wal_autocheckpoint(4000)", "journal_size_limit(67108864)", "cache_size(-32768)", "temp_store(2)"))
	if err != nil {
		return nil, nil, err
	}
	write.SetMaxOpenConns(1)
	if err := write.PingContext(ctx); err != nil {
		return nil, nil, errors.Join(err, write.Close())
	}
	read, err = sql.Open("sqlite", sqliteDSN(path, "deferred", "query_only(1)", "cache_size(-4096)"))
	if err != nil {
		return nil, nil, errors.Join(err, write.Close())
	}
	read.SetMaxOpenConns(readers)
	read.SetMaxIdleConns(readers)
	return read, write, nil
}

// OpenSQLiteCopy opens a copy of a SQLite database, that is not written, for reading. It
// leaves the file as it is, and creates none next to it.
func OpenSQLiteCopy(path string) (*sql.DB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	return sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: "immutable=1&mode=ro"}).String())
}

// sqliteDSN names the file as an address, so that no character in its path means
// anything, with the pragmas of each connection.
func sqliteDSN(path, lock string, pragmas ...string) string {
	query := url.Values{"_txlock": {lock}, "_pragma": append([]string{"busy_timeout(10000)"}, pragmas...)}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}).String()
}

// Check reports whether the database can be relied on: that it takes writes, that no
// damage was found, that its file is in its place and, on PostgreSQL, that it has our
// tables, that its version is 13 or later and no setting loses what was committed.
func (d *DB) Check(ctx context.Context) error {
	if d.writer != nil {
		if err := d.health.Check(); err != nil {
			return err
		}
		return d.Run(ctx, "database", "UPDATE version SET n = n WHERE n < 0") // there is none
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
		errs = append(errs, fmt.Errorf("database: its encoding is %s; create it with ENCODING 'UTF8'", settings["server_encoding"]))
	}
	for _, name := range []string{"fsync", "full_page_writes", "synchronous_commit"} {
		if settings[name] == "off" {
			errs = append(errs, fmt.Errorf("database: %s is off, which loses what was acknowledged when the server crashes; set it to on", name))
		}
	}
	if settings["transaction_read_only"] == "on" {
		errs = append(errs, errors.New("database: this PostgreSQL is a read-only standby; database.url must reach the primary"))
	}
	return d.withHost(errors.Join(errs...))
}

// Engine names the engine: sqlite or postgresql.
func (d *DB) Engine() string { return d.dialect.name() }

// Now is the store's clock.
func (d *DB) Now() time.Time { return d.o.Now() }

// Retention is the time for which a record is kept after its end.
func (d *DB) Retention() time.Duration { return d.o.Retention }

// DeadRetention is the time for which a dead delivery is kept; 0 means until it is replayed.
func (d *DB) DeadRetention() time.Duration { return d.o.DeadRetention }

// Close waits for running writes and closes every connection.
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
	if d.read != nil {
		errs = append(errs, d.read.Close())
	}
	if d.write != nil && d.write != d.read {
		errs = append(errs, d.write.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("database: close: %w", err)
	}
	return nil
}
