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

// The settings of a connection do not depend on the form of the URL.
func TestConnectionsHaveTheSameSettings(t *testing.T) {
	t.Parallel()
	pair := dbtest.StartPair(t)
	pairURL := pair.NewDatabase(t)
	for name, tc := range map[string]struct {
		url      string
		prepares string
	}{
		"one host":                    {pair.Primary.NewDatabase(t), "true"},
		"one host, without TLS":       {pair.Primary.NewDatabase(t) + "?sslmode=disable", "true"},
		"two hosts":                   {pairURL, "true"},
		"the standby first":           {swapped(pairURL), "true"},
		"without prepared statements": {pair.Primary.NewDatabase(t) + "?default_query_exec_mode=cache_describe", "false"},
	} {
		t.Run(name, func(t *testing.T) {
			database := dbtest.Open(t, db.Options{URL: tc.url, MaxConns: 1})
			err := database.Write(t.Context(), "settings", func(ctx context.Context, tx *db.Tx) error {
				for setting, want := range map[string]string{"application_name": "penstock", "TimeZone": "UTC", "transaction_read_only": "off"} {
					got, err := db.Value[string](ctx, tx, "settings", "SELECT current_setting($1)", setting)
					if err != nil || got != want {
						t.Errorf("%s = %q, error = %v, want %q", setting, got, err, want)
					}
				}
				prepares, err := db.Value[string](ctx, tx, "settings", "SELECT (count(*) > 0)::text FROM pg_prepared_statements WHERE name <> ''")
				if err != nil || prepares != tc.prepares {
					t.Errorf("the connection has prepared statements: %s, error = %v, want %s", prepares, err, tc.prepares)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// swapped returns a URL with its two hosts in reverse order.
func swapped(url string) string {
	user, hostsAndPath, _ := strings.Cut(url, "@")
	hosts, database, _ := strings.Cut(hostsAndPath, "/")
	host1, host2, _ := strings.Cut(hosts, ",")
	return fmt.Sprintf("%s@%s,%s/%s", user, host2, host1, database)
}

// A newer gateway may migrate tables for which this gateway has prepared statements.
func TestPreparedStatementsSurviveAMigration(t *testing.T) {
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
			t.Errorf("n before %s = %s, error = %v, want 7", statement, n, err)
		}
		change(newer, statement)
	}
	if n, err := read(); n != "7" || err != nil {
		t.Errorf("n after the migrations = %s, error = %v, want 7", n, err)
	}
}

// A generic plan that was made for an empty table would read the whole table for each row of a
// batch.
func TestNoGenericPlanIsUsed(t *testing.T) {
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
		t.Errorf("generic plans = %s, error = %v, want 0 of true", plans, err)
	}
}

// PostgreSQL has no statistics about rows that were just inserted.
func TestRowsOfABatchAreFoundByTheIndex(t *testing.T) {
	database := dbtest.Open(t, db.Options{URL: dbtest.Shared(t).NewDatabase(t)})
	relaytest.NoError(t, database.Run(t.Context(), "test", `
INSERT INTO part (grp, id, number, digest, message, doc)
SELECT 'g' || i, 'p' || i, 1, 'd', '', '{}' FROM generate_series(1, 20000) AS i`))
	plan := dbtest.Plan(t, database, `
WITH batch(grp, n) AS MATERIALIZED (SELECT * FROM unnest($1::text[]) WITH ORDINALITY)
SELECT id FROM part WHERE grp IN (SELECT grp FROM batch)`, "{"+strings.Repeat("g1,", 199)+"g1}")
	if strings.Contains(plan, "Seq Scan on part") {
		t.Errorf("the plan reads all parts for a batch:\n%s", plan)
	}
}
