package db

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

// migrations are the steps of the schema, NNNN_name.sql. A released step never changes.
// {serial}, {clustered} and {busy} are replaced by words of the engine, see dialect.go.
// A line that ends with "-- only sqlite" or "-- only postgresql" exists for that engine only. The
// tables below a line "-- Domain: accounts" belong to that domain.
//
//go:embed migrations/*.sql
var migrations embed.FS

// Migration is a step of the schema.
type Migration struct {
	Version    int64
	Name       string
	Applied    bool
	statements string
}

// Migrate migrates the schema to the newest version. On PostgreSQL it takes a lock, so that only
// one of several gateways that start at the same time migrates.
func (d *DB) Migrate(ctx context.Context) error {
	p, err := d.provider()
	if err != nil {
		return err
	}
	version, err := p.GetDBVersion(ctx)
	if err != nil {
		return Wrap("database: schema version", err)
	}
	sources := p.ListSources()
	if newest := sources[len(sources)-1].Version; version > newest {
		return relay.Errorf(relay.KindUnexpected, "database: its schema has version %d, this program supports %d: use a newer program", version, newest)
	}
	_, err = p.Up(ctx)
	return Wrap("database: schema", err)
}

// Migrations returns the steps, oldest first.
func (d *DB) Migrations(ctx context.Context) ([]Migration, error) {
	p, err := d.provider()
	if err != nil {
		return nil, err
	}
	states, err := p.Status(ctx)
	if err != nil {
		return nil, Wrap("database: schema", err)
	}
	list := steps() // oldest first, like states
	for i := range list {
		list[i].Applied = states[i].State == goose.StateApplied
	}
	return list, nil
}

// steps reads the migrations, oldest first. The files are embedded and their names are valid,
// so the errors are always nil; goose refuses version 0.
func steps() (list []Migration) {
	files, _ := fs.Glob(migrations, "migrations/*.sql")
	for _, file := range files {
		version, _ := goose.NumericComponent(file)
		statements, _ := migrations.ReadFile(file)
		_, name, _ := strings.Cut(strings.TrimSuffix(file, ".sql"), "_")
		list = append(list, Migration{Version: version, Name: name, statements: string(statements)})
	}
	return list
}

func (d *DB) provider() (*goose.Provider, error) {
	var list []*goose.Migration
	for _, step := range steps() {
		list = append(list, goose.NewGoMigration(step.Version, &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, d.dialect.schema(step.statements))
			return err
		}}, nil))
	}
	options := []goose.ProviderOption{
		goose.WithGoMigrations(list...), goose.WithDisableGlobalRegistry(true), goose.WithTableName("schema_version"),
		goose.WithLogger(goose.NopLogger()),
	}
	kind := goose.DialectSQLite3
	if d.writer == nil {
		kind = goose.DialectPostgres
		locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300)) // seconds, tries
		if err != nil {
			return nil, err
		}
		options = append(options, goose.WithSessionLocker(locker))
	}
	p, err := goose.NewProvider(kind, d.writePool, nil, options...)
	if err != nil {
		return nil, fmt.Errorf("database: schema: %w", err)
	}
	return p, nil
}

// Sizes returns the disk usage of the database in bytes, with its indexes, by the domains
// that the migrations name. SQLite reads the whole file to compute them.
func (d *DB) Sizes(ctx context.Context) (map[string]int64, error) {
	query := `SELECT relname, pg_total_relation_size(oid) FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace`
	if d.writer != nil {
		query = `SELECT s.tbl_name, SUM(t.pgsize) FROM dbstat t JOIN sqlite_schema s ON s.name = t.name WHERE t.aggregate = 1 GROUP BY 1`
	}
	tables, err := Map[string, int64](ctx, d, "database sizes", query)
	if err != nil {
		return nil, err
	}
	domainByTable := make(map[string]string)
	for _, step := range steps() {
		domain := ""
		for _, match := range domainOrTable.FindAllStringSubmatch(step.statements, -1) {
			if table := match[2]; table != "" {
				domainByTable[table] = domain
			} else {
				domain = match[1]
			}
		}
	}
	sizes := make(map[string]int64)
	for table, bytes := range tables {
		sizes[cmp.Or(domainByTable[table], "core")] += bytes
	}
	return sizes, nil
}

// domainOrTable matches the lines of a migration that start a domain or a table.
var domainOrTable = regexp.MustCompile(`(?m)^(?:-- Domain: (\w+)|CREATE TABLE (\w+))`)
