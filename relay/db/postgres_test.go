package db_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

// What a connection is like does not depend on how the URL names the server.
func TestSettingsOfAConnection(t *testing.T) {
	t.Parallel()
	pair := dbtest.StartPair(t)
	both := pair.NewDatabase(t)
	for name, c := range map[string]struct {
		url      string
		prepares string
	}{
		"one host":                    {pair.Primary.NewDatabase(t), "true"},
		"one host, without TLS":       {pair.Primary.NewDatabase(t) + "?sslmode=disable", "true"},
		"two hosts":                   {both, "true"},
		"the standby first":           {swapped(both), "true"},
		"without prepared statements": {pair.Primary.NewDatabase(t) + "?default_query_exec_mode=cache_describe", "false"},
	} {
		t.Run(name, func(t *testing.T) {
			database := dbtest.Open(t, db.Options{URL: c.url, MaxConns: 1})
			err := database.Write(t.Context(), "settings", func(ctx context.Context, tx *db.Tx) error {
				for setting, want := range map[string]string{"application_name": "penstock", "TimeZone": "UTC", "transaction_read_only": "off"} {
					got, err := db.Value[string](ctx, tx, "settings", "SELECT current_setting($1)", setting)
					if err != nil || got != want {
						t.Errorf("%s is %q, %v, want %q", setting, got, err, want)
					}
				}
				prepares, err := db.Value[string](ctx, tx, "settings", "SELECT (count(*) > 0)::text FROM pg_prepared_statements WHERE name <> ''")
				if err != nil || prepares != c.prepares {
					t.Errorf("it prepares statements: %s, %v, want %s", prepares, err, c.prepares)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// swapped is a URL of two hosts in the other order.
func swapped(url string) string {
	before, rest, _ := strings.Cut(url, "@")
	hosts, database, _ := strings.Cut(rest, "/")
	one, other, _ := strings.Cut(hosts, ",")
	return fmt.Sprintf("%s@%s,%s/%s", before, other, one, database)
}

// A newer gateway may migrate what statements of this one are prepared for.
func TestMigrationUnderPreparedStatements(t *testing.T) {
	url := dbtest.Shared(t).NewDatabase(t)
	database := dbtest.Open(t, db.Options{URL: url, MaxConns: 1})
	newer := dbtest.Open(t, db.Options{URL: url})
	change := func(database *db.DB, statement string) {
		if err := database.Run(t.Context(), "migration", statement); err != nil {
			t.Fatal(err)
		}
	}
	read := func() (n string, err error) {
		err = database.Write(t.Context(), "read", func(ctx context.Context, tx *db.Tx) error {
			n, err = db.Value[string](ctx, tx, "read", "SELECT n FROM migrated")
			return err
		})
		return n, err
	}
	change(newer, "CREATE TABLE migrated (n INTEGER)")
	change(newer, "INSERT INTO migrated VALUES (7)")
	for _, statement := range []string{"ALTER TABLE migrated ALTER n TYPE BIGINT", "ALTER TABLE migrated ALTER n TYPE TEXT"} {
		if n, err := read(); n != "7" || err != nil {
			t.Errorf("before %s: %s, %v, want 7", statement, n, err)
		}
		change(newer, statement)
	}
	if n, err := read(); n != "7" || err != nil {
		t.Errorf("after the migrations: %s, %v, want 7", n, err)
	}
}

// A plan that PostgreSQL keeps from when a table was empty reads all of the table for
// each row of a batch.
func TestNoPlanIsKept(t *testing.T) {
	database := dbtest.Open(t, db.Options{URL: dbtest.Shared(t).NewDatabase(t), MaxConns: 1})
	for range 20 {
		batch := db.NewBatch("name")
		batch.Add("x")
		if _, err := db.Values[string](t.Context(), database, "version", "SELECT v.name FROM batch JOIN version v ON v.name = batch.name", batch); err != nil {
			t.Fatal(err)
		}
	}
	plans, err := db.Value[string](t.Context(), database, "plans", `SELECT sum(generic_plans)::text || ' of ' || (sum(custom_plans) >= 20)::text
FROM pg_prepared_statements WHERE statement LIKE '%unnest(%JOIN version%' AND statement NOT LIKE '%generic_plans%'`)
	if err != nil || plans != "0 of true" {
		t.Errorf("kept plans: %s, %v", plans, err)
	}
}

// PostgreSQL has no statistics of a table that has just been filled.
func TestRowsOfABatchAreFoundByTheIndex(t *testing.T) {
	database := dbtest.Open(t, db.Options{URL: dbtest.Shared(t).NewDatabase(t)})
	relaytest.NoError(t, database.Run(t.Context(), "test", `
INSERT INTO part (grp, id, number, digest, message, doc)
SELECT 'g' || i, 'p' || i, 1, 'd', '', '{}' FROM generate_series(1, 20000) AS i`))
	plan := dbtest.Plan(t, database, `
WITH batch(grp, n) AS MATERIALIZED (SELECT * FROM unnest($1::text[]) WITH ORDINALITY)
SELECT id FROM part WHERE grp IN (SELECT grp FROM batch)`, "{"+strings.Repeat("g1,", 199)+"g1}")
	if strings.Contains(plan, "Seq Scan on part") {
		t.Errorf("all parts are read for a batch:\n%s", plan)
	}
}
