package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"regexp"
	"slices"
)

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
	type size struct {
		table string
		bytes int64
	}
	all, err := List(ctx, d, "database sizes", query, func(rows *sql.Rows, s *size) error {
		return rows.Scan(&s.table, &s.bytes)
	})
	if err != nil {
		return nil, err
	}
	out := make(map[string]int64, len(domains))
	for _, s := range all {
		out[cmp.Or(domains[s.table], "core")] += s.bytes
	}
	return out, nil
}

var createTable = regexp.MustCompile(`(?m)^CREATE TABLE (\w+)`)

// domains is the domain of every table.
func domains() (map[string]string, error) {
	names, err := steps()
	if err != nil {
		return nil, err
	}
	out := make(map[string]string)
	for _, version := range slices.Sorted(maps.Keys(names)) {
		text, err := migrations.ReadFile(fmt.Sprintf("migrations/%04d_%s.sql", version, names[version]))
		if err != nil {
			return nil, err
		}
		for _, table := range createTable.FindAllSubmatch(text, -1) {
			out[string(table[1])] = names[version]
		}
	}
	return out, nil
}
