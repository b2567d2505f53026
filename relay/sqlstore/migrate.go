package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/penstock/penstock/relay"
)

// migrations are the steps of the schema, NNNN_what.sql. One that was released
// never changes. {serial}, {clustered} and {busy} are the engines' words, see
// dialect.go; a line that ends with "-- only sqlite" or "-- only postgresql" is
// for that engine.
//
//go:embed migrations/*.sql
var migrations embed.FS

// Migration is a step of the schema.
type Migration struct {
	Version int64
	Name    string
	Applied bool
}

// migrate brings the schema to the newest version; on PostgreSQL under a lock, so
// that of several gateways that start one does it.
func (d *DB) migrate(ctx context.Context) error {
	p, err := d.provider()
	if err != nil {
		return err
	}
	if err := d.notNewer(ctx, p); err != nil {
		return err
	}
	if _, err := p.Up(ctx); err != nil {
		return Wrap("database: schema", err)
	}
	return nil
}

// notNewer refuses a schema that the program does not know.
func (d *DB) notNewer(ctx context.Context, p *goose.Provider) error {
	is, err := p.GetDBVersion(ctx)
	if err != nil {
		return Wrap("database: schema version", err)
	}
	sources := p.ListSources()
	if last := sources[len(sources)-1].Version; is > last {
		return relay.Errorf(relay.KindUnexpected, "database: its schema has version %d, this program knows %d: use a newer program", is, last)
	}
	return nil
}

// Migrations lists the steps and which of them were applied.
func (d *DB) Migrations(ctx context.Context) ([]Migration, error) {
	p, err := d.provider()
	if err != nil {
		return nil, err
	}
	all, err := p.Status(ctx)
	if err != nil {
		return nil, Wrap("database: schema", err)
	}
	steps, err := steps()
	if err != nil {
		return nil, err
	}
	out := make([]Migration, len(all))
	for i, m := range all { // oldest first, as steps are
		out[i] = Migration{Version: m.Source.Version, Name: steps[i].name, Applied: m.State == goose.StateApplied}
	}
	return out, nil
}

// step is a migration as it is written.
type step struct {
	version int64
	name    string
	text    string
}

// steps reads the migrations, oldest first.
func steps() (all []step, err error) {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		version, err := goose.NumericComponent(file)
		if err != nil {
			return nil, fmt.Errorf("migration %s: %w", file, err)
		}
		text, err := migrations.ReadFile(file)
		if err != nil {
			return nil, err
		}
		_, name, _ := strings.Cut(strings.TrimSuffix(file, ".sql"), "_")
		all = append(all, step{version, name, string(text)})
	}
	return all, nil
}

func (d *DB) provider() (*goose.Provider, error) {
	steps, err := steps()
	if err != nil {
		return nil, err
	}
	all := make([]*goose.Migration, len(steps))
	for i, step := range steps {
		all[i] = goose.NewGoMigration(step.version, &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, d.dialect.schema(step.text))
			return err
		}}, nil)
	}
	o := []goose.ProviderOption{
		goose.WithGoMigrations(all...), goose.WithDisableGlobalRegistry(true), goose.WithTableName("schema_version"),
		goose.WithLogger(goose.NopLogger()),
	}
	kind := goose.DialectSQLite3
	if d.writer == nil {
		kind = goose.DialectPostgres
		locker, err := lock.NewPostgresSessionLocker()
		if err != nil {
			return nil, err
		}
		o = append(o, goose.WithSessionLocker(locker))
	}
	p, err := goose.NewProvider(kind, d.write, nil, o...)
	if err != nil {
		return nil, fmt.Errorf("database: schema: %w", err)
	}
	return p, nil
}

// Sizes is how many bytes the database takes on disk, with its indexes, by the
// domain that the migrations are named after. SQLite reads the whole file for it.
func (d *DB) Sizes(ctx context.Context) (map[string]int64, error) {
	domains, err := domains()
	if err != nil {
		return nil, err
	}
	query := `SELECT relname, pg_total_relation_size(oid) FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace`
	if d.writer != nil {
		query = `SELECT s.tbl_name, SUM(t.pgsize) FROM dbstat t JOIN sqlite_schema s ON s.name = t.name WHERE t.aggregate = 1 GROUP BY 1`
	}
	tables, err := Map[string, int64](ctx, d, "database sizes", query)
	if err != nil {
		return nil, err
	}
	out := make(map[string]int64, len(domains))
	for table, bytes := range tables {
		out[cmp.Or(domains[table], "core")] += bytes
	}
	return out, nil
}

var createTable = regexp.MustCompile(`(?m)^CREATE TABLE (\w+)`)

// domains is the domain of every table.
func domains() (map[string]string, error) {
	all, err := steps()
	if err != nil {
		return nil, err
	}
	out := make(map[string]string)
	for _, step := range all {
		for _, table := range createTable.FindAllStringSubmatch(step.text, -1) {
			out[table[1]] = step.name
		}
	}
	return out, nil
}
