package sqlstore

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strconv"
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
	names, err := steps()
	if err != nil {
		return nil, err
	}
	out := make([]Migration, len(all))
	for i, m := range all {
		out[i] = Migration{Version: m.Source.Version, Name: names[m.Source.Version], Applied: m.State == goose.StateApplied}
	}
	return out, nil
}

// steps names the migrations by their version.
func steps() (map[int64]string, error) {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	out := make(map[int64]string, len(files))
	for _, file := range files {
		number, name, _ := strings.Cut(strings.TrimSuffix(path.Base(file), ".sql"), "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("migration %s: %w", file, err)
		}
		out[version] = name
	}
	return out, nil
}

func (d *DB) provider() (*goose.Provider, error) {
	names, err := steps()
	if err != nil {
		return nil, err
	}
	var all []*goose.Migration
	for version, name := range names {
		text, err := migrations.ReadFile(fmt.Sprintf("migrations/%04d_%s.sql", version, name))
		if err != nil {
			return nil, err
		}
		all = append(all, goose.NewGoMigration(version, &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, d.dialect.schema(string(text)))
			return err
		}}, nil))
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
