package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay/sqlstore"
	"github.com/penstock/penstock/relay/sqlstore/sqltest"
)

func scanText(row *sql.Rows, v *string) error { return row.Scan(v) }

// What a connection is like does not depend on how the URL names the server.
func TestSettingsOfAConnection(t *testing.T) {
	pair := sqltest.StartPair(t)
	both := pair.NewDatabase(t)
	for name, url := range map[string]string{
		"one host":              pair.Primary.NewDatabase(t),
		"one host, without TLS": pair.Primary.NewDatabase(t) + "?sslmode=disable",
		"two hosts":             both,
		"the standby first":     swapped(both),
	} {
		t.Run(name, func(t *testing.T) {
			db := sqltest.Open(t, sqlstore.Options{URL: url, MaxConns: 1})
			err := db.Write(t.Context(), "settings", func(ctx context.Context, tx *sqlstore.Tx) error {
				for setting, want := range map[string]string{"application_name": "penstock", "TimeZone": "UTC", "transaction_read_only": "off"} {
					got, err := sqlstore.One(ctx, tx, "settings", "SELECT current_setting($1)", scanText, setting)
					if err != nil || got != want {
						t.Errorf("%s is %q, %v, want %q", setting, got, err, want)
					}
				}
				named, err := sqlstore.One(ctx, tx, "settings", "SELECT count(*)::text FROM pg_prepared_statements WHERE name <> ''", scanText)
				if err != nil || named != "0" {
					t.Errorf("%s named statements, %v", named, err)
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
